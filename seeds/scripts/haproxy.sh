#!/bin/sh
# HAProxy in front of the web servers. Usage: haproxy.sh ACTION
. ./loom-starter.sh

port=80 # links of the catalog name both
statistics_port=8404

configure() {
    backends=$(setting haproxy/backends "")
    {
        cat <<EOF
global
    maxconn 2000
    user haproxy
    group haproxy
    daemon

defaults
    mode http
    timeout connect 3s
    timeout client 30s
    timeout server 30s
    option redispatch
    retries 2
    # A server that stops in the middle of a request: another one answers it.
    retry-on conn-failure empty-response

frontend public
    bind *:$port
    http-request disable-l7-retry unless METH_GET
    default_backend web

frontend statistics
    bind *:$statistics_port
    stats enable
    stats uri /
    stats refresh 5s
    stats show-legends

backend web
    balance roundrobin
    option httpchk GET /healthz
    default-server inter 1s fall 2 rise 1
EOF
        number=0
        for address in $backends; do
            number=$((number + 1))
            echo "    server web$number $address:80 check"
        done
    } | write /etc/haproxy/haproxy.cfg
    haproxy -c -q -f /etc/haproxy/haproxy.cfg || fail "haproxy refuses its configuration"
    if running haproxy; then unit haproxy reload; fi
}

case "$1" in
install) packages haproxy ;;
configure) configure ;;
initialize) install -d -o haproxy -g haproxy /run/haproxy ;;
start)
    bring_up haproxy
    eventually 20 answers "http://127.0.0.1:$statistics_port/" || fail "haproxy does not answer on port $statistics_port after 20 s"
    eventually 20 answers "http://127.0.0.1:$port/" || fail "no web server answers through haproxy on port $port after 20 s"
    echo "haproxy answers on port $port"
    ;;
check) passes "no web server answers through haproxy on port $port" answers "http://127.0.0.1:$port/" ;;
stop) take_down haproxy ;;
remove) apt-get -y purge haproxy ;;
*) fail "unknown action “$1”; actions are install, configure, initialize, start, check, stop, remove" ;;
esac
