set -eu
command -v nginx >/dev/null
mkdir -p /var/www/loom
cat >/var/www/loom/index.html <<PAGE
<!doctype html>
<title>$TITLE</title>
<h1>$TITLE</h1>
<p>This page comes from <code>$HOST</code>.</p>
PAGE
echo ok >/var/www/loom/healthz
cat >/etc/nginx/conf.d/loom.conf <<CONF
server {
    listen 80 default_server;
    root /var/www/loom;
    add_header X-Served-By $HOST always;
}
CONF
rm -f /etc/nginx/sites-enabled/default
