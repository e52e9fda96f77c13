# The web server: its page and its configuration.
class site::web {
  $host = $facts['loom']['hostname']
  $title_of_page = $facts['loom']['cluster']['web']['title']
  package { 'nginx-light': ensure => installed }
  -> file {
    '/var/www/loom': ensure => directory;
    '/var/www/loom/index.html': content => "<!doctype html>\n<title>${title_of_page}</title>\n<h1>${title_of_page}</h1>\n<p>This page comes from <code>${host}</code>.</p>\n";
    '/var/www/loom/healthz': content => "ok\n";
    '/etc/nginx/conf.d/loom.conf': content => "server {\n    listen 80 default_server;\n    root /var/www/loom;\n    add_header X-Served-By ${host} always;\n}\n";
    '/etc/nginx/sites-enabled/default': ensure => absent;
  }
}
