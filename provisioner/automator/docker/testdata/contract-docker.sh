#!/bin/sh
# Stands in for docker: containers are directories, calls are written down. It knows
# the commands that the automator uses and refuses what docker refuses. No image runs,
# unless a test puts a program into /var/lib/stub/engine, which gets start or stop and
# the name of the image.
base=/var/lib/stub
{ for a in "$@"; do printf '%s|' "$a"; done; echo; } >>"$base/calls"
die() { echo "$1" >&2; exit "${2:-1}"; }
there() { [ -d "$base/containers/$1" ] || die "Error: No such container: $1"; }
engine() { [ ! -x "$base/engine" ] || "$base/engine" "$1" "$(cat "$base/containers/$2/image")" >&2 || die "Error response from daemon: failed to $1 container $2"; }
[ "$(id -u)" = 0 ] || die 'permission denied while trying to connect to the Docker daemon socket'
[ ! -e "$base/down" ] || die 'Cannot connect to the Docker daemon. Is the docker daemon running?'
command=$1
shift
case $command in
ps) [ "$*" = -q ] || die "unknown flags: $*" 125 ;;
image) [ "$1" = inspect ] && grep -qxF "$2" "$base/images" 2>/dev/null || die "Error: No such image: $2" ;;
pull)
  case $1 in missing/*) die "manifest unknown: $1" ;; esac
  echo "$1: Pulling"
  echo "$1" >>"$base/images" ;;
inspect)
  [ "$1" = --type ] && [ "$2" = container ] && [ $# = 3 ] || die "unknown flags: $*" 125
  there "$3"
  ports=$(tr '|' '\n' <"$base/containers/$3/args" | sed -n '/^-p$/ { n; s/^\([0-9]*\).*/{"HostPort": "\1"}/p; }' | paste -sd ,)
  printf '[{"Id": "%s", "Config": {"Labels": {"loom-spec": "%s"}}, "HostConfig": {"PortBindings": {"all": [%s]}}}]\n' "$(cat "$base/containers/$3/id")" "$(cat "$base/containers/$3/spec")" "$ports" ;;
run)
  args=
  name= env= spec=
  all=$(for a in "$@"; do printf '%s|' "$a"; done)
  while [ $# -gt 0 ]; do
    case $1 in
    -d) shift ;;
    --name) name=$2; shift 2 ;;
    --env-file) env=$2; shift 2 ;;
    --label) case $2 in loom-spec=*) spec=${2#*=} ;; esac; shift 2 ;;
    --restart | --link | -v | -p) shift 2 ;;
    -*) die "unknown flag: $1" 125 ;;
    *) break ;;
    esac
  done
  [ $# -gt 0 ] || die '"docker run" requires at least 1 argument.' 125
  grep -qxF "$1" "$base/images" 2>/dev/null || die "Unable to find image '$1' locally" 125
  [ ! -d "$base/containers/$name" ] || die "Conflict. The container name \"/$name\" is already in use" 125
  mkdir -p "$base/containers/$name"
  [ -z "$env" ] || cat "$env" >"$base/containers/$name/env"
  printf '%s\n' "$all" >"$base/containers/$name/args"
  echo "$spec" >"$base/containers/$name/spec"
  echo "$1" >"$base/containers/$name/image"
  engine start "$name"
  echo running >"$base/containers/$name/state"
  cat /proc/sys/kernel/random/uuid | tee "$base/containers/$name/id" ;;
start) there "$1"; engine start "$1"; echo running >"$base/containers/$1/state"; echo "$1" ;;
stop) there "$1"; engine stop "$1"; echo exited >"$base/containers/$1/state"; echo "$1" ;;
rm)
  while [ "${1#-}" != "$1" ]; do shift; done
  there "$1"
  engine stop "$1"
  rm -rf "$base/containers/$1"
  echo "$1" ;;
*) die "docker: '$command' is not a docker command." ;;
esac
