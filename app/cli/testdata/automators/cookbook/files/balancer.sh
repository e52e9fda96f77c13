set -eu
{
  cat <<CONF
defaults
    mode http
    timeout connect 3s
    timeout client 30s
    timeout server 30s

frontend public
    bind *:80
    default_backend web

frontend statistics
    bind *:8404
    stats enable
    stats uri /

backend web
    option httpchk GET /healthz
CONF
  for address in $BACKENDS; do
    echo "    server web-$address $address:80 check inter 1s"
  done
} >/etc/haproxy/haproxy.cfg
haproxy -c -q -f /etc/haproxy/haproxy.cfg
