# Helpers of the starter services. Sourced by their scripts, which the shell
# automator runs as root with the directory of scripts as current one. Plain
# POSIX sh; works with systemd and without.

# fail MESSAGE: say why on standard error and end the action.
fail() {
    echo "$*" >&2
    exit 1
}

# setting PATH DEFAULT: a text of the cluster's configuration, such as
# "setting web/port 80".
setting() {
    value=$(loom_lookup_key "^/config/cluster/$1\$" "") || value=
    printf '%s\n' "${value:-$2}"
}

# html: standard input with the characters that mean something in HTML escaped.
html() {
    sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'
}

# packages NAME...: install what is missing, without letting it start.
packages() {
    missing=
    for name in "$@"; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing="$missing $name"
    done
    [ -n "$missing" ] || { echo "already installed: $*"; return 0; }
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
    status=0
    # shellcheck disable=SC2086 # a list of names
    apt-get install -y --no-install-recommends $missing || {
        apt-get update && apt-get install -y --no-install-recommends $missing
    } || status=$?
    rm -f /usr/sbin/policy-rc.d
    [ "$status" = 0 ] || fail "could not install$missing"
}

# unit NAME ACTION: start, stop, reload or query a service of the system.
unit() {
    if [ -d /run/systemd/system ]; then
        systemctl "$2" "$1"
    else
        service "$1" "$2"
    fi
}

# at_boot NAME enable|disable: whether a service of the system starts when the
# machine does. Started services come back after a reboot, stopped ones stay down.
at_boot() {
    if [ -d /run/systemd/system ]; then
        systemctl --quiet "$2" "$1"
    else
        update-rc.d "$1" defaults >/dev/null && update-rc.d "$1" "$2" >/dev/null
    fi
}

# bring_up NAME: start a service of the system unless it runs, now and at boot.
bring_up() {
    running "$1" || unit "$1" start || fail "$1 does not start"
    at_boot "$1" enable || fail "$1 could not be enabled at boot"
}

# take_down NAME: stop a service of the system if it runs, now and at boot.
take_down() {
    if running "$1"; then unit "$1" stop || fail "$1 does not stop"; fi
    at_boot "$1" disable
}

# running NAME: whether a service of the system runs.
running() {
    unit "$1" status >/dev/null 2>&1
}

# eventually SECONDS COMMAND...: try a command until it succeeds.
eventually() {
    tries=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# answers URL: whether a page can be fetched.
answers() {
    curl -fsS --max-time 2 -o /dev/null "$1"
}

# passes WHAT COMMAND...: fail with WHAT unless a command succeeds; the end of a check.
passes() {
    what=$1
    shift
    "$@" >/dev/null 2>&1 || fail "$what"
}

# write PATH: store standard input as a file, in one step.
write() {
    cat >"$1.new" && mv "$1.new" "$1"
}
