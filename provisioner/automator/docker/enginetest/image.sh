# Makes the image IMAGE of a web server out of files of the machine's base root: nginx, what
# it loads, and a shell. Its page says TITLE and the name in /etc/machine-name.
set -e
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"
mkdir -p bin usr/sbin usr/bin etc/nginx run tmp var/log/nginx var/lib/nginx var/www
cp -L /bin/sh bin/
cp -L /bin/cat /bin/sleep usr/bin/
cp /usr/sbin/nginx usr/sbin/
for library in $(ldd /usr/sbin/nginx /bin/sh /bin/cat | grep -o '/[^ :]*' | sort -u | grep /lib); do
  mkdir -p ".${library%/*}"
  cp -L "$library" ".$library"
done
printf 'root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n' >etc/passwd
printf 'root:x:0:\nwww-data:x:33:\n' >etc/group
cat >etc/nginx/nginx.conf <<'END'
user www-data;
daemon off;
error_log stderr;
events {}
http {
  default_type text/html;
  access_log off;
  server {
    listen 80;
    root /var/www;
  }
}
END
cat >start <<END
#!/bin/sh
name=\$(cat /etc/machine-name 2>/dev/null || echo nobody)
echo "<h1>$TITLE</h1><p>This page comes from <code>\$name</code>.</p>" >/var/www/index.html
echo ok >/var/www/healthz
printf '%s\n' "\$GREETING" >/var/www/greeting
exec nginx
END
chmod 0755 start
tar -c . | docker import --change 'CMD ["/start"]' --change 'EXPOSE 80' --change 'ENV PATH=/usr/sbin:/usr/bin:/bin' - "$IMAGE"
