package remote

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quote makes one word of a text for sh, whatever is in it.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func nonce() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b)
	return "loom-" + hex.EncodeToString(b)
}

// leader starts the script as the leader of a process group of its own. Without
// sudo the server has done so already. With sudo it depends on sudo's settings
// whether there is a new group, and setsid forks, losing the exit by signal, if
// it is called by a leader; hence the look at /proc.
const leader = `if read -r s 2>/dev/null </proc/$$/stat; then set -- ${s##*) }; ` +
	`[ "$3" = "$$" ] || { command -v setsid >/dev/null && exec setsid sh -c "$0"; }; fi; exec sh -c "$0"`

// wrap makes the text that the user's login shell gets: one exec, so that the
// exit status is the script's own, and quotes that any shell understands.
func wrap(cmd Command, sudo bool, mark string) string {
	var script strings.Builder
	script.WriteString("echo " + mark + " $$ >&2\n")
	script.WriteString("export LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive\n")
	for _, name := range slices.Sorted(maps.Keys(cmd.Env)) {
		script.WriteString("export " + name + "=" + Quote(cmd.Env[name]) + "\n")
	}
	if cmd.Dir != "" {
		script.WriteString("cd " + Quote(cmd.Dir) + " || exit 126\n")
	}
	script.WriteString(cmd.Text)
	if sudo {
		return "exec sudo -E -n -- sh -c " + Quote(leader) + " " + Quote(script.String())
	}
	return "exec sh -c " + Quote(script.String())
}

// LastLine returns the last line of a text that is not blank.
func LastLine(s string) string {
	lines := strings.Split(s, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return line
		}
	}
	return ""
}

// MaxLine is where longer lines of output are split, in bytes.
const MaxLine = 16 << 10

// lineWriter cuts a stream into lines and feeds the tail. Bytes that are not
// UTF-8 become U+FFFD and NUL is dropped, since Postgres text can hold neither.
type lineWriter struct {
	emit func(string)
	tail *tail
	rest []byte
	// mark, if set, begins the first line, which tells the process group and is
	// not output. marked says that it came.
	mark   string
	marked bool
	group  chan<- int
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := slices.Index(w.rest, '\n')
		switch {
		case i >= 0 && i <= MaxLine:
			w.line(w.rest[:i], true)
			w.rest = w.rest[i+1:]
		case len(w.rest) >= MaxLine:
			cut := MaxLine // moved back when it would split a character
			for i := cut - 1; i > cut-utf8.UTFMax; i-- {
				if utf8.RuneStart(w.rest[i]) {
					if !utf8.FullRune(w.rest[i:cut]) {
						cut = i
					}
					break
				}
			}
			w.line(w.rest[:cut], false)
			w.rest = w.rest[cut:]
		default:
			return len(p), nil
		}
	}
}

// Close passes on an unfinished last line.
func (w *lineWriter) Close() error {
	if len(w.rest) > 0 {
		w.line(w.rest, false)
		w.rest = nil
	}
	return nil
}

func (w *lineWriter) line(b []byte, whole bool) {
	s := clean(b)
	if w.mark != "" && !w.marked {
		if rest, ok := strings.CutPrefix(s, w.mark+" "); ok {
			w.marked = true
			if group, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil && group > 1 {
				w.group <- group
			}
			return
		}
	}
	w.tail.add(s)
	if whole {
		w.tail.add("\n")
	}
	w.emit(strings.TrimSuffix(s, "\r"))
}

func clean(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "")
}

// tail keeps the end of a text.
type tail struct {
	limit   int
	text    []byte
	snipped bool
}

func (t *tail) add(s string) {
	t.text = append(t.text, s...)
	if len(t.text) > 2*t.limit {
		t.cut()
	}
}

func (t *tail) cut() {
	if len(t.text) > t.limit {
		t.text = append([]byte(nil), t.text[len(t.text)-t.limit:]...)
		t.snipped = true
	}
}

// String returns the kept end, marked when something is missing before it.
func (t *tail) String() string {
	t.cut()
	if t.snipped {
		return "[snipped]" + strings.ToValidUTF8(string(t.text), "")
	}
	return string(t.text)
}
