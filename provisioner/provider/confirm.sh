# The machine's side of CONFIRM, run as root by sh. Standard input holds the
# owner's public keys, one a line. The last line of standard error says what
# went wrong. Everything here may run again on a machine that is set up.
fail() { echo "$1" >&2; exit 1; }

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

work=$(mktemp -d) || fail 'no temporary directory could be made'
trap 'rm -rf "$work"' EXIT
cat >"$work/keys"
home=$(awk -F: -v u="$LOOM_SET_USER" '$1 == u { print $6; exit }' /etc/passwd)
[ -n "$home" ] || home=$(getent passwd "$LOOM_SET_USER" | cut -d: -f6)
[ -n "$home" ] || fail "user $LOOM_SET_USER has no home directory"
file=$home/.ssh/authorized_keys
begin='# loom begin owner'
end='# loom end owner'
if [ -s "$work/keys" ] || { [ -f "$file" ] && grep -qxF "$begin" "$file"; }; then
  owner=$(id -u "$LOOM_SET_USER"):$(id -g "$LOOM_SET_USER")
  [ -d "$home/.ssh" ] || { mkdir -p -m 0700 "$home/.ssh" && chown "$owner" "$home/.ssh"; } || fail "$home/.ssh could not be made"
  old=$file
  [ -f "$old" ] || old=/dev/null
  # Lines between the marks are replaced; a begin without an end is somebody's
  # edit, and then nothing after it may get lost.
  awk -v begin="$begin" -v end="$end" '
    part == "keys" { if ($2 != "") { line[++n] = $0; key[n] = $2; wanted[$2] = 1 } next }
    $0 == begin && !inside { inside = 1; held = 0; next }
    $0 == end && inside { inside = 0; held = 0; next }
    inside { hold[++held] = $0; next }
    { keep($0) }
    function keep(text,   word, words, i) {
      print text
      if (text ~ /^[ \t]*#/) return
      words = split(text, word)
      for (i = 1; i <= words; i++) if (word[i] in wanted) there[word[i]] = 1
    }
    END {
      if (inside) for (i = 1; i <= held; i++) keep(hold[i])
      for (i = 1; i <= n; i++) if (!(key[i] in there)) {
        if (!open) { print begin; open = 1 }
        print line[i]
      }
      if (open) print end
    }' part=keys "$work/keys" part=file "$old" >"$work/new" || fail 'the owner'"'"'s public keys could not be put together'
  if ! cmp -s "$work/new" "$old"; then
    next=$home/.ssh/.authorized_keys.loom
    rm -f "$next"
    { (umask 077; cat "$work/new" >"$next") && chown "$owner" "$next" && mv -f "$next" "$file"; } || fail "$file could not be written"
  fi
fi
