# The balancer in front of the web servers, which Hiera names too.
class site::balancer {
  $backends = split(lookup('haproxy')['backends'], ' ')
  $servers = $backends.map |$address| { "    server web-${address} ${address}:80 check inter 1s\n" }
  $settings = @(CONF)
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
    | CONF
  package { 'haproxy': ensure => installed }
  -> file { '/etc/haproxy/haproxy.cfg': content => "${settings}${servers.join('')}" }
}
