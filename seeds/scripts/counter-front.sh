#!/bin/sh
# nginx that hands requests to the visit counter on the same machine. Usage: counter-front.sh ACTION
. ./loom-starter.sh

case "$1" in
install) packages nginx-light ;;
configure)
    write /etc/nginx/conf.d/counter-front.conf <<EOF
server {
    listen 80 default_server;
    location / {
        proxy_pass http://127.0.0.1:$(setting counter/port 8000);
        proxy_set_header Host \$host;
    }
    error_page 502 504 /sorry.html;
    location = /sorry.html {
        root /var/www/counter-front;
        internal;
    }
}
EOF
    rm -f /etc/nginx/sites-enabled/default
    nginx -t -q || fail "nginx refuses its configuration"
    if running nginx; then unit nginx reload; fi
    ;;
initialize)
    mkdir -p /var/www/counter-front
    [ -e /var/www/counter-front/sorry.html ] ||
        echo '<!doctype html><html lang="en"><title>Back soon</title><p>The visit counter is not running at the moment.</p></html>' |
        write /var/www/counter-front/sorry.html
    ;;
start)
    bring_up nginx
    eventually 20 answers http://127.0.0.1/healthz || fail "the visit counter does not answer through nginx after 20 s"
    echo "the visit counter answers through nginx"
    ;;
check) passes "the visit counter does not answer through nginx" answers http://127.0.0.1/healthz ;;
stop) take_down nginx ;;
remove) rm -f /etc/nginx/conf.d/counter-front.conf && apt-get -y purge nginx-light nginx-common ;;
*) fail "unknown action “$1”; actions are install, configure, initialize, start, check, stop, remove" ;;
esac
