#!/bin/sh
# coopr_service_manager.sh SERVICE ACTION: start, stop, restart, reload or status
# of a system service, with systemd or with init scripts.
service=$1
action=$2
case $service in
  '' | -* | */*) echo 'usage: coopr_service_manager.sh SERVICE start|stop|restart|reload|status' >&2; exit 2 ;;
esac
case $action in
  start | stop | restart | reload | status | force-reload | condrestart | try-restart) ;;
  *) echo "coopr_service_manager.sh: \"$action\" is no action; use start, stop, restart, reload or status" >&2; exit 2 ;;
esac
if [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; then
  exec systemctl "$action" "$service"
elif [ -x "/etc/init.d/$service" ]; then
  if command -v service >/dev/null 2>&1; then exec service "$service" "$action"; fi
  exec "/etc/init.d/$service" "$action"
elif command -v service >/dev/null 2>&1; then
  exec service "$service" "$action"
fi
echo "coopr_service_manager.sh: no systemd, no init script and no \"service\" command for $service" >&2
exit 1
