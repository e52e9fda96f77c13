#!/bin/sh
# The visit counter, run by an init script of our own. Usage: counter-app.sh ACTION
. ./loom-starter.sh

port=$(setting counter/port 8000)

configure() {
    primary=$(setting redis/primary "")
    [ -n "$primary" ] || fail "the configuration names no Redis (redis.primary)"
    write /etc/default/counter-app <<EOF
COUNTER_PORT=$port
REDIS_HOST=$primary
REDIS_PORT=$(setting redis/port 6379)
TITLE='$(setting counter/title Visits | tr -d "'")'
EOF
    write /etc/init.d/counter-app <<'EOF'
#!/bin/sh
### BEGIN INIT INFO
# Provides:          counter-app
# Required-Start:    $network
# Required-Stop:     $network
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
# Short-Description: visit counter
### END INIT INFO
. /etc/default/counter-app
pid=/run/counter-app.pid
case "$1" in
start)
    start-stop-daemon --start --oknodo --background --make-pidfile --pidfile $pid --chuid nobody \
        --exec /usr/bin/python3 -- /opt/counter-app/counter-app.py "$COUNTER_PORT" "$REDIS_HOST" "$REDIS_PORT" "$TITLE"
    ;;
stop) start-stop-daemon --stop --oknodo --retry 5 --remove-pidfile --pidfile $pid ;;
restart|reload|force-reload) "$0" stop; "$0" start ;;
status) start-stop-daemon --status --pidfile $pid ;;
*) echo "usage: $0 start|stop|restart|status" >&2; exit 2 ;;
esac
EOF
    chmod 755 /etc/init.d/counter-app
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
    if running counter-app; then unit counter-app restart; fi
}

case "$1" in
install)
    packages python3
    mkdir -p /opt/counter-app
    write /opt/counter-app/counter-app.py <counter-app.py
    ;;
configure) configure ;;
initialize)
    python3 /opt/counter-app/counter-app.py initialize "$(setting redis/primary "")" "$(setting redis/port 6379)" ||
        fail "the counter could not be set to zero in Redis"
    ;;
start)
    bring_up counter-app
    eventually 20 answers "http://127.0.0.1:$port/healthz" || fail "the visit counter does not answer on port $port, or Redis does not, after 20 s"
    echo "the visit counter answers on port $port"
    ;;
check) passes "the visit counter does not answer on port $port, or Redis does not" answers "http://127.0.0.1:$port/healthz" ;;
stop) take_down counter-app ;;
remove) rm -rf /opt/counter-app /etc/init.d/counter-app /etc/default/counter-app ;;
*) fail "unknown action “$1”; actions are install, configure, initialize, start, check, stop, remove" ;;
esac
