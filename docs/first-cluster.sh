#!/bin/sh
# A first cluster over REST: create a load-balanced web cluster, watch it, fetch
# its page through the balancer, delete it. Needs a running Loom, curl and:
#
#   export LOOM_URL=http://127.0.0.1:8080
#   export LOOM_TOKEN=$(bin/loom token create user --tenant demo --scope clusters:write)
#   docs/first-cluster.sh [MACHINES]
set -eu

: "${LOOM_URL:=http://127.0.0.1:8080}"
: "${LOOM_TOKEN:?make one with: bin/loom token create user --tenant demo --scope clusters:write}"
machines=${1:-3}

# call METHOD PATH [BODY]: one request; an error shows the answer, which says why.
call() {
    if ! curl -sS --fail-with-body -X "$1" -H "Authorization: Bearer $LOOM_TOKEN" ${3:+--data "$3"} "$LOOM_URL$2"; then
        echo >&2
        return 1
    fi
}

# field NAME: the first value of that name in the JSON on standard input.
field() {
    grep -o "\"$1\":\(\"[^\"]*\"\|[0-9]*\)" | head -n 1 | cut -d : -f 2- | tr -d '"'
}

# wait_for STATUS: follow the cluster until it has the status.
wait_for() {
    last=
    while :; do
        answer=$(call GET "/v2/clusters/$id/status")
        status=$(printf %s "$answer" | field status)
        line="$status: $(printf %s "$answer" | field stepscompleted) of $(printf %s "$answer" | field stepstotal) tasks"
        [ "$line" = "$last" ] || echo "  $line"
        last=$line
        case $status in
        "$1") return 0 ;;
        pending) sleep 0.3 ;;
        *) echo "the cluster is $status" >&2; call GET "/v2/clusters/$id/operations" >&2; return 1 ;;
        esac
    done
}

echo "Creating a web cluster of $machines machines"
id=$(call POST /v2/clusters "{\"name\": \"first\", \"clusterTemplate\": \"web-cluster\", \"numMachines\": $machines}" | field id)
echo "  cluster $id"
wait_for active

page=$(call GET "/v2/clusters/$id" | grep -o '"label":"Page","url":"http://[0-9.]*/"' | cut -d '"' -f 8)
echo "Fetching $page ten times"
answers=
for _ in 1 2 3 4 5 6 7 8 9 10; do
    answers="$answers$(curl -fsS "$page" | grep -o "comes from <code>[^<]*")
"
done
printf %s "$answers" | sed 's/<code>//' | sort | uniq -c

echo "Deleting it"
call DELETE "/v2/clusters/$id" >/dev/null
wait_for terminated
