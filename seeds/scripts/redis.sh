#!/bin/sh
# Redis as primary or replica. Usage: redis.sh ACTION primary|replica
. ./loom-starter.sh

role=$2
port=$(setting redis/port 6379)
primary=$(setting redis/primary "")

redis() {
    redis-cli -p "$port" "$@"
}

answers_ping() {
    [ "$(redis ping 2>/dev/null)" = PONG ]
}

configure() {
    {
        cat <<EOF
bind 0.0.0.0
protected-mode no
port $port
daemonize yes
supervised no
pidfile /run/redis/redis-server.pid
logfile /var/log/redis/redis-server.log
dir /var/lib/redis
appendonly yes
maxmemory $(setting redis/maxmemory 64mb)
maxmemory-policy noeviction
EOF
        if [ "$role" = replica ]; then
            [ -n "$primary" ] || fail "the configuration names no primary (redis.primary)"
            echo "replicaof $primary $port"
        fi
    } | write /etc/redis/redis.conf
    chown redis:redis /etc/redis/redis.conf
    if running redis-server; then unit redis-server restart; fi
}

# copied KEY VALUE: whether a value written on the primary has arrived here.
copied() {
    [ "$(redis get "$1" 2>/dev/null)" = "$2" ]
}

linked() {
    redis info replication 2>/dev/null | grep -q '^master_link_status:up'
}

check_replication() {
    key="loom:check:$LOOM_HOSTNAME"
    value=$(date +%s%N)
    redis-cli -h "$primary" -p "$port" set "$key" "$value" ex 3600 >/dev/null || fail "the primary $primary takes no writes"
    eventually 30 copied "$key" "$value" || fail "a value written on the primary $primary did not arrive within 30 s"
    echo "replication from $primary works"
}

case "$1" in
install) packages redis-server ;;
configure) configure ;;
initialize) install -d -o redis -g redis -m 750 /var/lib/redis /var/log/redis ;;
start)
    bring_up redis-server
    eventually 20 answers_ping || fail "redis does not answer on port $port after 20 s"
    echo "redis answers on port $port"
    if [ "$role" = replica ]; then check_replication; fi
    ;;
check)
    passes "redis does not answer on port $port" answers_ping
    if [ "$role" = replica ]; then passes "the link to the primary $primary is down" linked; fi
    ;;
stop) take_down redis-server ;;
remove) apt-get -y purge redis-server redis-tools ;;
*) fail "unknown action “$1”; actions are install, configure, initialize, start, check, stop, remove" ;;
esac
