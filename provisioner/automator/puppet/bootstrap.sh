# Puts Puppet onto the machine, run as root by sh: what is there, else the operating
# system's package, else that of the distribution. The last line of standard error
# says what went wrong. On a machine that has it nothing changes.
fail() { echo "$1" >&2; exit 1; }
have() { [ -x /opt/puppetlabs/bin/puppet ] || command -v puppet >/dev/null 2>&1; }
mkdir -p /var/cache/loom/puppet || fail 'the directory /var/cache/loom/puppet could not be made'
chmod 0750 /var/cache/loom/puppet
have && { echo 'puppet is there'; exit 0; }
[ "$LOOM_DISTRIBUTION" = preinstalled ] && fail 'there is no puppet on this machine, and puppet_distribution is “preinstalled”'
export DEBIAN_FRONTEND=noninteractive
fetch() {
  if command -v curl >/dev/null 2>&1; then curl -fsSL -o "$2" "$1"; else wget -q -O "$2" "$1"; fi || fail "the release package $1 could not be fetched"
}
case $LOOM_DISTRIBUTION in openvox) site=voxpupuli.org ;; *) site=puppet.com ;; esac
agent=$LOOM_DISTRIBUTION-agent
if command -v apt-get >/dev/null 2>&1; then
  apt-get -qq update >/dev/null 2>&1
  for p in puppet-agent puppet; do
    have || apt-get -qq install -y --no-install-recommends "$p" >/dev/null 2>&1 || true
  done
  if ! have; then
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    fetch "${LOOM_INSTALLER:-https://apt.$site/$LOOM_DISTRIBUTION$LOOM_MAJOR-release-$codename.deb}" /var/cache/loom/puppet/release.deb
    dpkg -i /var/cache/loom/puppet/release.deb && apt-get -qq update && apt-get -qq install -y "$agent" || fail "the package $agent could not be installed"
  fi
elif command -v yum >/dev/null 2>&1; then
  yum -q -y install puppet-agent >/dev/null 2>&1 || true
  if ! have; then
    major=$(. /etc/os-release && echo "${VERSION_ID%%.*}")
    fetch "${LOOM_INSTALLER:-https://yum.$site/$LOOM_DISTRIBUTION$LOOM_MAJOR-release-el-$major.noarch.rpm}" /var/cache/loom/puppet/release.rpm
    rpm -U --replacepkgs /var/cache/loom/puppet/release.rpm && yum -q -y install "$agent" || fail "the package $agent could not be installed"
  fi
else
  fail 'there is no puppet on this machine and neither apt-get nor yum to install it; use an image that has it'
fi
have || fail 'puppet is still missing after its package was installed'
# Loom applies manifests itself; an agent of its own must not run beside it.
for s in puppet pxp-agent; do
  if [ -d /run/systemd/system ]; then systemctl disable --now "$s" >/dev/null 2>&1; else service "$s" stop >/dev/null 2>&1; fi
done
echo 'puppet is installed'
exit 0
