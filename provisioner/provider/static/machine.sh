# The machine's side of a reservation, run as root by sh. LOOM_DO says what to do,
# LOOM_KEY is the idempotency key of the node. Everything here may run again.
# Answers: the first line is free, mine, taken or foreign, then the record.
dir=/var/lib/loom-node
tell() {
  if [ ! -e "$dir" ]; then echo free
  elif [ ! -f "$dir/key" ]; then echo foreign
  elif [ "$(cat "$dir/key")" = "$LOOM_KEY" ]; then echo mine
  else echo taken
  fi
  if [ -f "$dir/record" ]; then cat "$dir/record"; fi
}
case $LOOM_DO in
look) tell ;;
take)
  # The record is complete before it gets its name, and taking the name fails
  # where another node has it: whoever looks sees all of a reservation or none.
  new=$(mktemp -d /var/lib/.loom-node.XXXXXX) || { echo 'no directory could be made in /var/lib' >&2; exit 1; }
  trap 'rm -rf "$new"' EXIT
  printf '%s\n' "$LOOM_KEY" >"$new/key" && cat >"$new/record" || { echo 'the reservation could not be written to /var/lib' >&2; exit 1; }
  chmod 0755 "$new"
  mv -T "$new" "$dir" 2>/dev/null
  tell
  ;;
give)
  [ "$(tell | head -n 1)" = mine ] || { tell; exit 0; }
  # The owner of the cluster loses his way in; other lines are the machine's own.
  home=$(awk -F: -v u="$LOOM_SET_USER" '$1 == u { print $6; exit }' /etc/passwd)
  file=$home/.ssh/authorized_keys
  if [ -n "$home" ] && [ -f "$file" ] && grep -qxF '# loom begin owner' "$file" && grep -qxF '# loom end owner' "$file"; then
    owner=$(stat -c %u:%g "$file")
    { (umask 077; awk '$0 == "# loom begin owner" { inside = 1 } !inside { print } $0 == "# loom end owner" { inside = 0 }' "$file" >"$file.loom") &&
      chown "$owner" "$file.loom" && mv -f "$file.loom" "$file"; } || { echo "$file could not be written" >&2; exit 1; }
  fi
  old=$(mktemp -d /var/lib/.loom-node.XXXXXX) && mv "$dir" "$old/" && rm -rf "$old" || { echo 'the reservation could not be removed' >&2; exit 1; }
  tell
  ;;
esac
