# Puts Chef onto the machine, run as root by sh: what is there, else the operating
# system's package, else the distribution's install script. The last line of standard
# error says what went wrong. On a machine that has it nothing changes.
fail() { echo "$1" >&2; exit 1; }
have() {
  for p in chef-solo cinc-solo; do
    command -v $p >/dev/null 2>&1 || [ -x /opt/chef/bin/$p ] || [ -x /opt/cinc/bin/$p ] && return 0
  done
  return 1
}
mkdir -p /var/chef/cookbooks /var/chef/data_bags /var/chef/roles || fail 'the directories in /var/chef could not be made'
if have; then
  echo 'chef is there'
else
  [ "$LOOM_DISTRIBUTION" = preinstalled ] && fail 'there is no chef-solo on this machine, and chef_distribution is “preinstalled”'
  export DEBIAN_FRONTEND=noninteractive
  if command -v yum >/dev/null 2>&1; then
    yum -q -y install chef >/dev/null 2>&1 || true
  elif command -v apt-get >/dev/null 2>&1; then
    apt-get -qq update >/dev/null 2>&1
    candidate=$(apt-cache policy chef 2>/dev/null | sed -n 's/^ *Candidate: //p')
    # Cookbooks need 12.5; older packages are no use.
    if [ -n "$candidate" ] && [ "$candidate" != '(none)' ] && dpkg --compare-versions "$candidate" ge 12.5; then
      apt-get -qq install -y chef >/dev/null 2>&1 || true
    fi
  fi
  if ! have; then
    case $LOOM_DISTRIBUTION in cinc) url=https://omnitruck.cinc.sh/install.sh ;; *) url=https://omnitruck.chef.io/install.sh ;; esac
    url=${LOOM_INSTALLER:-$url}
    script=/var/cache/loom/chef-install.sh
    if command -v curl >/dev/null 2>&1; then curl -fsSL -o $script "$url"; else wget -q -O $script "$url"; fi || fail "the install script $url could not be fetched"
    sh $script ${LOOM_VERSION:+-v "$LOOM_VERSION"} || fail "the install script $url failed"
    rm -f $script
  fi
  have || fail 'chef-solo is still missing after it was installed'
  echo 'chef is installed'
fi
cat >/var/cache/loom/solo.rb.new <<'RB' && mv -f /var/cache/loom/solo.rb.new /var/cache/loom/solo.rb || fail 'solo.rb could not be written'
cookbook_path '/var/chef/cookbooks'
data_bag_path '/var/chef/data_bags'
role_path '/var/chef/roles'
log_location STDOUT
RB
exit 0
