#!/bin/sh
set -e
case "$1" in
directory) mkdir -p /var/lib/compare ;;
file) printf 'greeting = hello\n' >/var/lib/compare/app.conf ;;
line) grep -q '^compare' /etc/services || echo 'compare 4711/tcp' >>/etc/services ;;
link) ln -sf /var/lib/compare/app.conf /etc/compare.conf ;;
check) test "$(cat /etc/compare.conf)" = 'greeting = hello' ;;
*) exit 1 ;;
esac
