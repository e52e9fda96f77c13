# The machine's side of CONFIRM, run as root by sh between fail.sh and keys.sh.
# The last line of standard error says what went wrong. Everything here may run
# again on a machine that is set up.

if command -v cloud-init >/dev/null 2>&1; then
  limit=
  command -v timeout >/dev/null 2>&1 && limit='timeout 300'
  $limit cloud-init status --wait >/dev/null 2>&1 </dev/null
  code=$?
  [ $code = 124 ] && fail 'first-boot configuration (cloud-init) did not end within 300 s'
  [ $code = 0 ] || echo "warning: cloud-init status exited with $code"
fi

if [ "$LOOM_SELINUX" = permissive ] && command -v getenforce >/dev/null 2>&1 && [ "$(getenforce)" = Enforcing ]; then
  setenforce 0 || fail 'SELinux could not be set to permissive'
fi

if [ -n "$LOOM_CHECK" ]; then
  getent hosts "$LOOM_CHECK" >/dev/null || fail "the machine cannot resolve $LOOM_CHECK (connectivity_check)"
  if command -v bash >/dev/null 2>&1; then
    timeout 10 bash -c 'exec 3<>"/dev/tcp/$LOOM_CHECK/443"' 2>/dev/null </dev/null
  elif command -v python3 >/dev/null 2>&1; then
    python3 -c 'import os, socket; socket.create_connection((os.environ["LOOM_CHECK"], 443), 10)' 2>/dev/null </dev/null
  else
    echo "warning: neither bash nor python3 here, so only the name $LOOM_CHECK was checked"
  fi || fail "the machine cannot reach $LOOM_CHECK on port 443 (connectivity_check)"
fi

name=$LOOM_SET_HOSTNAME
if [ -n "$name" ]; then
  [ "${#name}" -le 64 ] || name=${name%%.*} # Linux takes no more
  read -r now 2>/dev/null </proc/sys/kernel/hostname || now=$(hostname)
  kept=
  [ -f /etc/hostname ] && read -r kept </etc/hostname
  if [ "$now" != "$name" ] || [ "$kept" != "$name" ]; then
    if ! { [ -d /run/systemd/system ] && command -v hostnamectl >/dev/null 2>&1 && hostnamectl set-hostname "$name" 2>/dev/null; }; then
      echo "$name" >/etc/hostname || fail 'the host name could not be written to /etc/hostname'
      # A machine that is a container, such as a local one that is given as a host, has its
      # name from outside.
      [ "$now" = "$name" ] || hostname "$name" || echo "warning: the machine may not change its host name while it runs: it is $now until it boots, then $name"
    fi
  fi
  if [ -d /etc/cloud/cloud.cfg.d ] && [ ! -f /etc/cloud/cloud.cfg.d/99-loom.cfg ]; then
    echo 'preserve_hostname: true' >/etc/cloud/cloud.cfg.d/99-loom.cfg
  fi
fi
