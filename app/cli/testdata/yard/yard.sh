#!/bin/sh
# A provider for tests: machines stand in a yard, a directory with a file for each.
# A node gets one by moving its file from free/<address> to taken/<key>@<address>,
# which only one of several that try can do. Files in faults/ make one call fail:
# <action>-busy before anything was done, <action>-lost after it.
set -u
[ "$1" = provider ] || exit 64
wanted=$(jq -r '.input | @sh "dir=\(.fields.dir) token=\(.fields.token) resource=\(.fields.ssh_key_resource) key=\(.idempotencyKey) user=\(.sshuser // "root")"') || exit 65
eval "$wanted"
[ "$token" = yard-t0ken ] || { echo "the yard refuses the token" >&2; exit 77; }
cd "$dir" || exit 65

strikes() { rm "faults/$1" 2>/dev/null; }
say() {
  type=$1 object=$2
  shift 2
  jq -cn --arg t "$type" "$@" "{t: \$t} + $object"
}

# mine sets address to that of the machine that the node has, empty without one.
mine() {
  address=
  for file in taken/"$key"@*; do
    [ -e "$file" ] && address=${file#*@}
  done
}

if strikes "$2-busy"; then
  echo "the yard is busy" >&2
  exit 75
fi
mine
case $2 in
create)
  for file in free/*; do
    [ -z "$address" ] && mv -T "$file" "taken/$key@${file#free/}" 2>/dev/null && mine
  done
  [ -n "$address" ] || { say result '{status: 202, message: "the yard is empty"}'; exit 1; }
  if strikes create-lost; then
    echo "the yard hung up" >&2
    exit 75
  fi
  say state '{result: {providerid: $a}}' --arg a "$address"
  say result '{status: 0, result: {providerid: $a, "ssh-auth": {user: $u, identityfile: ("ssh_keys/" + $r)}}}' --arg a "$address" --arg u "$user" --arg r "$resource"
  ;;
confirm)
  say progress '{msg: ("the machine is being washed with " + $token), percent: 50}' --arg token "$token"
  [ -n "$address" ] || { say result '{status: 1, message: "the machine is not in the yard"}'; exit 1; }
  say result '{status: 0, ipaddresses: {access_v4: $a, bind_v4: $a}}' --arg a "$address"
  ;;
delete)
  [ -z "$address" ] || mv -T "taken/$key@$address" "free/$address"
  if strikes delete-lost; then
    echo "the yard hung up" >&2
    exit 75
  fi
  say result '{status: 0}'
  ;;
*) exit 64 ;;
esac
