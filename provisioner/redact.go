package provisioner

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// Redacted stands in the place of a secret.
const Redacted = "[redacted]"

// minSecret is the shortest value that is looked for, in bytes; shorter ones
// would hide half of every text.
const minSecret = 4

// Redactor hides sensitive values in texts: as they are, in base64, URL-encoded
// and JSON-escaped, and each line of those that have several. It may be used by
// several goroutines.
type Redactor struct {
	mu      sync.RWMutex
	forms   []string
	known   map[string]bool
	longest int
}

// NewRedactor makes a redactor of some values; see Add.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{known: map[string]bool{}}
	r.Add(values...)
	return r
}

// Add makes the redactor hide more values from now on. Values of less than four
// bytes are ignored.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range values {
		for _, text := range append([]string{value, strings.TrimSpace(value)}, strings.FieldsFunc(value, func(c rune) bool { return c == '\n' || c == '\r' })...) {
			for _, form := range formsOf(text) {
				if len(form) >= minSecret && strings.TrimSpace(form) != "" && !r.known[form] {
					r.known[form] = true
					r.forms = append(r.forms, form)
					r.longest = max(r.longest, len(form))
				}
			}
		}
	}
}

func formsOf(text string) []string {
	if len(text) < minSecret {
		return nil
	}
	raw := []byte(text)
	forms := []string{text,
		base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		url.QueryEscape(text), url.PathEscape(text),
		strings.ReplaceAll(text, "'", `'\''`),
	}
	// The two ways of JSON: with and without escapes for HTML.
	if escaped, err := json.Marshal(text); err == nil {
		forms = append(forms, string(escaped[1:len(escaped)-1]))
	}
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) == nil {
		escaped := strings.TrimSuffix(plain.String(), "\n")
		forms = append(forms, escaped[1:len(escaped)-1])
	}
	return forms
}

// Text hides secrets in a whole text.
func (r *Redactor) Text(text string) string {
	stream := r.Stream()
	return stream.Write(text) + stream.Flush()
}

// Stream makes a redactor of one text that comes in pieces. It holds back as
// much as the longest secret is long, so that none gets through at a border.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r} }

// Stream is one text in pieces; it is used by one goroutine at a time.
type Stream struct {
	redactor *Redactor
	held     string
	// hidden bytes at the start of held belong to a secret that stands in what
	// was given out already.
	hidden int
}

// Write takes a piece and gives what may be shown so far.
func (s *Stream) Write(piece string) string { return s.advance(piece, false) }

// Flush gives the rest.
func (s *Stream) Flush() string { return s.advance("", true) }

type span struct{ from, to int }

func (s *Stream) advance(piece string, final bool) string {
	text := s.held + piece
	spans, longest := s.redactor.find(text)
	// A secret that begins before the cut is in the text as a whole.
	cut := len(text)
	if !final {
		cut = max(0, len(text)-max(longest-1, 0))
	}
	var out strings.Builder
	at := 0
	if s.hidden > 0 {
		spans = append([]span{{0, s.hidden}}, spans...)
	}
	for i, sp := range spans {
		if sp.from >= cut {
			break
		}
		if sp.from > at {
			out.WriteString(text[at:sp.from])
		}
		// A secret that overlaps what is hidden already needs no second mark.
		if begun := i == 0 && s.hidden > 0; !begun && (at == 0 || sp.from >= at) {
			out.WriteString(Redacted)
		}
		at = max(at, sp.to)
	}
	if at < cut {
		out.WriteString(text[at:cut])
		at = cut
	}
	s.held, s.hidden = text[cut:], at-cut
	return out.String()
}

// find gives every occurrence of every form, also overlapping ones, by start.
func (r *Redactor) find(text string) (spans []span, longest int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, form := range r.forms {
		for from := 0; from+len(form) <= len(text); {
			i := strings.Index(text[from:], form)
			if i < 0 {
				break
			}
			spans = append(spans, span{from + i, from + i + len(form)})
			from += i + 1
		}
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return spans, r.longest
}

// Sink wraps a sink so that no secret reaches it in a line. Call Flush at the
// end of the attempt. Facts pass unchanged, since they are stored, not shown;
// a password among them is hidden in lines from then on.
func (r *Redactor) Sink(next loom.Sink) *RedactingSink {
	return &RedactingSink{next: next, redactor: r, streams: map[string]*Stream{}}
}

// RedactingSink is a loom.Sink that hides secrets; see Redactor.Sink.
type RedactingSink struct {
	next     loom.Sink
	redactor *Redactor

	mu      sync.Mutex
	streams map[string]*Stream
}

// Log passes on a line without its secrets. Lines of the greatest length are
// pieces of a longer one, so a secret may continue in the next.
func (s *RedactingSink) Log(stream, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces := s.streams[stream]
	if pieces == nil {
		pieces = s.redactor.Stream()
		s.streams[stream] = pieces
	}
	continues := len(text) > remote.MaxLine-8
	shown := pieces.Write(text)
	if !continues {
		shown += pieces.Flush()
	}
	if !continues || shown != "" {
		s.next.Log(stream, shown)
	}
}

// Fact passes results on.
func (s *RedactingSink) Fact(results map[string]any) error {
	s.redactor.Add(passwordsIn(results)...)
	return s.next.Fact(results)
}

// Flush passes on what was held back.
func (s *RedactingSink) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, pieces := range s.streams {
		if rest := pieces.Flush(); rest != "" {
			s.next.Log(name, rest)
		}
	}
}

func passwordsIn(results map[string]any) []string {
	switch auth := results["ssh-auth"].(type) {
	case map[string]any:
		if password, ok := auth["password"].(string); ok {
			return []string{password}
		}
	case map[string]string:
		return []string{auth["password"]}
	}
	return nil
}
