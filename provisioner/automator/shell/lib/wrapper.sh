#!/bin/sh
# wrapper.sh JSON SCRIPT [ARG...]: runs the script of a service action. The
# current directory is the one with the tenant's scripts. $0 of a script is its own
# path. Works with dash.
LOOM_TASK_JSON=$1
LOOM_TASK_PATHS=${1%.json}.paths
export LOOM_TASK_JSON LOOM_TASK_PATHS
script=$2
if [ -z "$script" ]; then
  echo 'wrapper.sh: no script named' >&2
  exit 2
fi
shift 2
lib=${0%/*}

file=
case $script in
  /*) [ -f "$script" ] && file=$script ;;
  *)
    if [ -f "$script" ]; then file=$PWD/$script
    elif [ -f "$lib/$script" ]; then file=$lib/$script
    fi ;;
esac
if [ -z "$file" ]; then
  command -v "$script" >/dev/null 2>&1 && exec "$script" "$@"
  echo "$script: no script resource, no file and no command of that name" >&2
  exit 127
fi

first=
IFS= read -r first 2>/dev/null <"$file"
case $first in
  '#!'*)
    set -f # the words of the first line are no patterns
    interpreter=${first#'#!'}
    name_of() {
      case ${1##*/} in env) shift; [ "$1" = -S ] && shift ;; esac
      echo "${1##*/}"
    }
    case $(name_of $interpreter) in
      sh | ash | bash | dash | ksh | ksh93 | mksh | zsh)
        # In its own shell, together with the functions, as if it had been called itself.
        shell=
        for word in $interpreter; do
          case $word in - | --) ;; *) shell="$shell $word" ;; esac # nothing to end: the options go on
        done
        # With -c a bash that counts as the first one of an SSH session reads its bashrc.
        SHLVL=1
        export SHLVL
        exec $shell -c '. "$1/functions.sh"; shift; . "$0"' "$file" "$lib" "$@" ;;
    esac
    [ -x "$file" ] && exec "$file" "$@"
    exec $interpreter "$file" "$@" ;;
esac
[ -x "$file" ] && exec "$file" "$@"
echo "$script: script must be executable or start with #!" >&2
exit 126
