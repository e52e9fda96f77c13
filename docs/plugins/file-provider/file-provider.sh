#!/bin/sh
# A provider whose machines are files. What it does with cloud.sh a real one does
# with the API of its cloud; everything else it would do as well.
# Needs jq.
set -u

# Anything but the actions that plugin.json names is refused before it is looked at.
[ "$1" = provider ] || exit 64
case $2 in create | confirm | delete | list) ;; *) exit 64 ;; esac
here=$(dirname "$0")

# All that is needed of the request, quoted for the shell by jq itself.
wanted=$(jq -r '.input | @sh "dir=\(.fields.dir // "") token=\(.fields.token // "") poll=\(.fields.poll_s // 2) key=\(.idempotencyKey // "")
  id=\(.providerid // "") name=\(.hostname // "") user=\(.sshuser // "root")"' 2>/dev/null) && [ -n "$wanted" ] || {
  echo "standard input holds no request" >&2
  exit 65
}
eval "$wanted"
[ -d "$dir" ] || {
  echo "field “dir”: there is no directory “$dir”" >&2
  exit 65
}

# say TYPE JQ-OBJECT [jq options]: one message, a JSON object on a line.
say() {
  type=$1 object=$2
  shift 2
  jq -cn --arg t "$type" "$@" "{t: \$t} + $object"
}

# cloud VERB...: one call of the API. The answer is in $answer, the status is 0, or
# 44 for “not found”; everything else ends the plugin with the status that tells
# Loom what to do. The token goes by a pipe: arguments are seen by everybody.
cloud() {
  tries=0
  while :; do
    answer=$(printf '%s\n' "$token" | "$here/cloud.sh" "$dir" "$@")
    code=$?
    case $code in
      0 | 44) return $code ;;
      29) # too many calls: again, a little later, but not for ever
        tries=$((tries + 1))
        [ $tries -le 5 ] || { echo "the cloud is busy" >&2; exit 75; }
        sleep "0.$tries"
        ;;
      41) echo "the cloud refuses the token" >&2; exit 77 ;;
      52) echo "the connection to the cloud was lost" >&2; exit 75 ;;
      *) echo "the cloud answered $code" >&2; exit 1 ;;
    esac
  done
}

# known sets id to the machine of this node that the cloud has already.
known() {
  cloud find "$key"
  id=${answer%% *}
}

case $2 in
  create)
    known
    if [ -z "$id" ]; then
      cloud create "$key" "$name"
      id=$answer
    fi
    # At once: if this process dies now, DELETE still finds the machine.
    say state '{result: {providerid: $id}}' --arg id "$id"
    say result '{status: 0, result: {providerid: $id, "ssh-auth": {user: $user}}}' --arg id "$id" --arg user "$user"
    ;;
  confirm)
    unseen=0
    while :; do
      if cloud show "$id"; then
        state=${answer%% *} address=${answer#* }
        [ "$state" = running ] && break
        say progress '{msg: ("the machine is " + $state)}' --arg state "$state"
      else
        # New machines may take a moment to show up.
        unseen=$((unseen + 1))
        [ $unseen -le 10 ] || { say result '{status: 1, message: "the machine vanished"}'; exit 1; }
        say progress '{msg: "the cloud does not show the machine yet"}'
      fi
      sleep "$poll"
    done
    say result '{status: 0, ipaddresses: {access_v4: $a, bind_v4: $a}}' --arg a "$address"
    ;;
  delete)
    [ -n "$id" ] || known
    # “Not found” is what was wanted.
    [ -z "$id" ] || cloud delete "$id" || :
    say result '{status: 0}'
    ;;
  list)
    cloud machines
    count=0
    while read -r id key state address; do
      [ -n "$id" ] || continue
      say machine '{id: $id, key: $key, state: $state, addresses: [$address]}' --arg id "$id" --arg key "$key" --arg state "$state" --arg address "$address"
      count=$((count + 1))
    done <<END
$answer
END
    # The number shows that none was lost on the way.
    say result '{status: 0, machines: $n}' --argjson n "$count"
    ;;
esac
