# Functions for scripts of service actions.

# loom_lookup_key KEY prints a value of the task. KEY is a regular expression
# matched against paths such as /config/nodes/<id>/hostname. Several matches are
# fine if they are the elements of one list; then they come on one line, those
# with blanks in double quotes. Status 1: nothing or too much matches.
loom_lookup_key() {
  if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo 'usage: loom_lookup_key KEY' >&2
    return 1
  fi
  LOOM_LOOKUP_KEY=$1 awk -F '\t' '
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
