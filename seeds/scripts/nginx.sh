#!/bin/sh
# nginx with a page that names its machine. Usage: nginx.sh ACTION
. ./loom-starter.sh

port=80 # links of the catalog name it

configure() {
    title=$(setting web/title "Hello from Loom" | html)
    mkdir -p /var/www/loom
    write /var/www/loom/index.html <<EOF
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>$title</title>
<style>body{font:18px/1.6 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}code{font-size:1.1em}</style>
<h1>$title</h1>
<p>This page comes from <code>$LOOM_HOSTNAME</code>.</p>
<p>Put files of your own into <code>/var/www/loom/files</code>; they appear under <code>/files/</code>.</p>
</html>
EOF
    echo ok | write /var/www/loom/healthz
    write /etc/nginx/conf.d/loom.conf <<EOF
server {
    listen $port default_server;
    root /var/www/loom;
    add_header X-Served-By $LOOM_HOSTNAME always;
    access_log off;
    # Every machine has a page of its own under one address: a browser that asks whether
    # the page of another machine is still new would be told yes.
    location = /index.html {
        add_header X-Served-By $LOOM_HOSTNAME always;
        add_header Cache-Control no-store always;
        etag off;
        if_modified_since off;
    }
}
EOF
    rm -f /etc/nginx/sites-enabled/default
    nginx -t -q || fail "nginx refuses its configuration"
    if running nginx; then unit nginx reload; fi
}

case "$1" in
install) packages nginx-light ;;
configure) configure ;;
initialize) install -d /var/www/loom/files ;; # for files of one's own: configure leaves them alone
start)
    bring_up nginx
    eventually 20 answers "http://127.0.0.1:$port/healthz" || fail "nginx does not answer on port $port after 20 s"
    echo "nginx answers on port $port"
    ;;
check) passes "nginx does not answer on port $port" answers "http://127.0.0.1:$port/healthz" ;;
stop) take_down nginx ;;
remove) apt-get -y purge nginx-light nginx-common && rm -rf /var/www/loom ;;
*) fail "unknown action “$1”; actions are install, configure, initialize, start, check, stop, remove" ;;
esac
