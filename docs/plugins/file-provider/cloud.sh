#!/bin/sh
# The “cloud”: directories of plain files, one per machine. Its exit status stands
# for that of HTTP: 0 for 200, 29 for 429, 41 for 401, 44 for 404, 52 for a
# connection that broke. The token comes on standard input.
#
#   cloud.sh DIR create KEY NAME    prints the id
#   cloud.sh DIR show ID            prints “pending” or “running ADDRESS”
#   cloud.sh DIR find KEY           prints the ids of the machines with the key
#   cloud.sh DIR delete ID
#   cloud.sh DIR machines           prints a line “ID KEY STATE ADDRESS” for each machine
#
# Without a token, for tests:
#
#   cloud.sh DIR list               prints a line “KEY ID” for each machine
#   cloud.sh DIR fault NAME N       misbehaves N times from now on; 0: no more
set -u
dir=$1 verb=$2
shift 2
machines=$dir/machines faults=$dir/faults
mkdir -p "$machines" "$faults"
exec 9>"$dir/lock"
flock 9

# number FILE: what is in it, 0 without it.
number() { cat "$1" 2>/dev/null || echo 0; }

# spend FILE: takes one of the number in it; fails when there is none.
spend() {
  left=$(number "$1")
  [ "$left" -gt 0 ] && echo $((left - 1)) >"$1"
}

case $verb in
  list)
    for m in "$machines"/*/; do
      [ -e "$m/key" ] && echo "$(cat "$m/key") $(basename "$m")"
    done
    exit 0
    ;;
  fault)
    echo "$2" >"$faults/$1"
    # What ends here ends for machines that are there already, too.
    [ "$2" != 0 ] || rm -f "$machines"/*/"$1"
    exit 0
    ;;
esac

IFS= read -r token
case $token in file-*) ;; *) exit 41 ;; esac
if spend "$faults/throttled"; then exit 29; fi

# machine ID: its directory, or the end.
machine() {
  case $1 in '' | *[!a-z0-9-]*) exit 44 ;; esac
  [ -d "$machines/$1" ] || exit 44
  here=$machines/$1
}

case $verb in
  create)
    n=$(($(number "$dir/next") + 1))
    echo $n >"$dir/next"
    mkdir "$machines/file-$n"
    printf '%s' "$1" >"$machines/file-$n/key"
    printf '%s' "$2" >"$machines/file-$n/name"
    echo "192.0.2.$((n % 254 + 1))" >"$machines/file-$n/address"
    for fault in pending lagging; do
      [ "$(number "$faults/$fault")" = 0 ] || cp "$faults/$fault" "$machines/file-$n/$fault"
    done
    if spend "$faults/lost-answer"; then exit 52; fi
    echo "file-$n"
    ;;
  show)
    machine "$1"
    if spend "$here/lagging"; then exit 44; fi
    if spend "$here/pending"; then
      echo pending
    else
      echo "running $(cat "$here/address")"
    fi
    ;;
  find)
    for m in "$machines"/*/; do
      [ -e "$m/key" ] && [ "$(cat "$m/key")" = "$1" ] && printf '%s ' "$(basename "$m")"
    done
    exit 0
    ;;
  machines)
    for m in "$machines"/*/; do
      [ -e "$m/key" ] || continue
      state=running
      [ "$(number "$m/pending")" = 0 ] || state=other
      echo "$(basename "$m") $(cat "$m/key") $state $(cat "$m/address")"
    done
    exit 0
    ;;
  delete)
    machine "$1"
    rm -r "$here"
    ;;
  *) exit 40 ;;
esac
