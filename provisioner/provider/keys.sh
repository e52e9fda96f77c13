# Puts public keys on the machine, run as root by sh. Standard input holds them, one
# a line. The last line of standard error says what went wrong. All of it may run
# again: the keys between the marks become those of standard input, but for those that
# somebody has put elsewhere into the file.
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
      for (i = 1; i <= words; i++) if (word[i] in wanted) {
        there[word[i]] = 1
        if (i == 2) plain[word[i]] = 1
      }
    }
    END {
      if (inside) for (i = 1; i <= held; i++) keep(hold[i])
      for (i = 1; i <= n; i++) if (!(key[i] in there)) {
        if (!open) { print begin; open = 1 }
        print line[i]
      }
      if (open) print end
      for (i = 1; i <= n; i++) if ((key[i] in there) && !(key[i] in plain)) print "kept with its options: " key[i] >optioned
    }' optioned="$work/optioned" part=keys "$work/keys" part=file "$old" >"$work/new" || fail 'the public keys could not be put together'
  if ! cmp -s "$work/new" "$old"; then
    next=$home/.ssh/.authorized_keys.loom
    rm -f "$next"
    { (umask 077; cat "$work/new" >"$next") && chown "$owner" "$next" && mv -f "$next" "$file"; } || fail "$file could not be written"
  fi
  # Such a key may not open a session: it is reported as not put there.
  [ ! -s "$work/optioned" ] || cat "$work/optioned"
fi
