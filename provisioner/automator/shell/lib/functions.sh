# Functions for scripts of service actions.

# loom_lookup_key KEY [DEFAULT] prints a value of the task. KEY is a regular expression
# matched against paths such as /config/nodes/<id>/hostname. Several matches are
# fine if they are the elements of one list; then they come on one line, those
# with blanks in double quotes. Where nothing matches it prints DEFAULT, if there is
# one, which may be empty. Status 1: nothing (without DEFAULT) or too much matches.
loom_lookup_key() {
  if [ $# -lt 1 ] || [ $# -gt 2 ] || [ -z "$1" ]; then
    echo 'usage: loom_lookup_key KEY [DEFAULT]' >&2
    return 1
  fi
  LOOM_LOOKUP_KEY=$1 LOOM_LOOKUP_DEFAULT=${2-} LOOM_LOOKUP_ARGS=$# awk -F '\t' '
    function plain(text,   out, i, c) {
      if (index(text, "\\") == 0) return text
      out = ""
      while ((i = index(text, "\\")) > 0) {
        c = substr(text, i + 1, 1)
        out = out substr(text, 1, i - 1) (c == "n" ? "\n" : c == "t" ? "\t" : c == "r" ? "\r" : c)
        text = substr(text, i + 2)
      }
      return out text
    }
    BEGIN { key = ENVIRON["LOOM_LOOKUP_KEY"]; list = 1 }
    $1 ~ key {
      n++
      value[n] = plain($3)
      parent = $1
      sub(/\/[^\/]*$/, "", parent)
      last = substr($1, length(parent) + 2)
      if (last !~ /^[0-9]+$/ || (parent !~ key && (parent "/") !~ key)) list = 0
      if (n > 1 && parent != before) list = 0
      before = parent
    }
    END {
      if (n == 0 && ENVIRON["LOOM_LOOKUP_ARGS"] == 2) { print ENVIRON["LOOM_LOOKUP_DEFAULT"]; exit 0 }
      if (n == 0) { print "key not found: " key | "cat >&2"; close("cat >&2"); exit 1 }
      if (n == 1) { print value[1]; exit 0 }
      if (!list) { print "non-unique key, multiple matches found: " key | "cat >&2"; close("cat >&2"); exit 1 }
      for (i = 1; i <= n; i++) {
        text = value[i]
        if (text ~ /[ \t]/) text = "\"" text "\""
        printf "%s%s", (i > 1 ? " " : ""), text
      }
      printf "\n"
    }' "$LOOM_TASK_PATHS"
}

# The name that older scripts use.
coopr_lookup_key() { loom_lookup_key "$@"; }

# loom_enable_at_boot NAME [COMMAND [ARG...]]: have something start when the machine
# boots again. With NAME alone, a service of the system such as nginx. With a command,
# that command: it runs as root, in the background, in the directory that is the current
# one now, and what it prints goes to /var/log/loom-NAME.log. It starts nothing now, and
# repeated it replaces what was there. Status 1: the machine cannot.
loom_enable_at_boot() {
  case ${1-} in
    '' | *[!A-Za-z0-9_.-]*) echo 'usage: loom_enable_at_boot NAME [COMMAND [ARG...]]' >&2; return 1 ;;
  esac
  (
    name=$1
    shift
    if [ $# -gt 0 ]; then
      command=
      for word; do command="$command $(loom_quote "$word")"; done
      log=/var/log/loom-$name.log directory=$(loom_quote "$PWD") text=$name name=loom-$name
      cat >"/etc/init.d/$name.new" <<END || exit 1
#!/bin/sh
### BEGIN INIT INFO
# Provides:          $name
# Required-Start:    \$network \$remote_fs
# Required-Stop:
# Default-Start:     2 3 4 5
# Default-Stop:
# Short-Description: $text
### END INIT INFO
# Written by loom_enable_at_boot.
[ "\$1" = start ] || exit 0
cd $directory || exit 1
setsid$command </dev/null >>$log 2>&1 &
END
      chmod 755 "/etc/init.d/$name.new" && mv "/etc/init.d/$name.new" "/etc/init.d/$name" || exit 1
    fi
    if [ ! -d /run/systemd/system ]; then
      update-rc.d "$name" defaults >/dev/null && update-rc.d "$name" enable >/dev/null
      exit
    fi
    if [ $# -gt 0 ]; then
      cat >"/etc/systemd/system/$name.service" <<END || exit 1
[Unit]
Description=$text
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/etc/init.d/$name start
[Install]
WantedBy=multi-user.target
END
      systemctl daemon-reload
    fi
    systemctl --quiet enable "$name"
  )
}

# loom_disable_at_boot NAME takes back what loom_enable_at_boot did; it stops nothing.
loom_disable_at_boot() {
  case ${1-} in
    '' | *[!A-Za-z0-9_.-]*) echo 'usage: loom_disable_at_boot NAME' >&2; return 1 ;;
  esac
  (
    name=$1 own=
    if [ -e "/etc/init.d/loom-$name" ]; then own=yes name=loom-$name; fi
    if [ -d /run/systemd/system ]; then
      systemctl --quiet disable "$name"
    elif [ -n "$own" ]; then
      update-rc.d -f "$name" remove >/dev/null
    else
      update-rc.d "$name" disable >/dev/null
    fi || exit 1
    [ -z "$own" ] || rm -f "/etc/init.d/$name" "/etc/systemd/system/$name.service"
  )
}

# loom_quote TEXT prints TEXT as one word of a shell.
loom_quote() {
  printf "'"
  printf '%s' "$1" | sed "s/'/'\\\\''/g"
  printf "'"
}
