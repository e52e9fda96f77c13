#!/bin/sh
# chef_client_bootstrap.sh SERVER-URL [RUN-LIST]: makes the machine a client of a
# Chef server and runs the client once. The server's validation key must be at
# /etc/chef/validation.pem or among the scripts as validation.pem. Set
# CHEF_INSTALLER_URL to install the client from elsewhere.
url=$1
run_list=$2
case $url in
  http://* | https://*) ;;
  *) echo 'usage: chef_client_bootstrap.sh SERVER-URL [RUN-LIST]' >&2; exit 2 ;;
esac
if ! command -v chef-client >/dev/null 2>&1; then
  installer=$(mktemp) || exit 1
  trap 'rm -f "$installer"' EXIT
  from=${CHEF_INSTALLER_URL:-https://omnitruck.chef.io/install.sh}
  if command -v curl >/dev/null 2>&1; then curl -fsSL -o "$installer" "$from"; else wget -qO "$installer" "$from"; fi ||
    { echo "the installer could not be fetched from $from" >&2; exit 1; }
  sh "$installer" || exit 1
fi
mkdir -p /etc/chef
if [ ! -f /etc/chef/client.pem ] && [ ! -f /etc/chef/validation.pem ]; then
  [ -f validation.pem ] || { echo 'no validation key: upload it as the script resource validation.pem' >&2; exit 1; }
  (umask 077 && cat validation.pem >/etc/chef/validation.pem) || exit 1
fi
{
  echo "chef_server_url '$url'"
  echo "node_name '$(loom_lookup_key '^/config/hostname$')'"
  echo "validation_key '/etc/chef/validation.pem'"
  echo 'log_location STDOUT'
} >/etc/chef/client.rb || exit 1
if [ -n "$run_list" ]; then
  chef-client -c /etc/chef/client.rb -r "$run_list"
else
  chef-client -c /etc/chef/client.rb
fi
