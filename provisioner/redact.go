package provisioner

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/resource"
)

// minSecret is the shortest value that is looked for, in bytes; shorter ones
// would hide half of every text.
const minSecret = 4

// minLine is the shortest line that is looked for of a value that has several, and the
// shortest value that is looked for within longer base64.
const minLine = 8

// Redactor hides sensitive values in texts: as they are, in base64, also amid other data,
// URL-encoded and JSON-escaped, and each line of those that have several. It may be used by
// several goroutines.
type Redactor struct {
	mu      sync.RWMutex
	forms   []form          // sorted by text
	begins  map[string]span // forms by their first bytes
	may     [64]uint64      // a bit for each beginning; most places of a text have none
	known   map[string]bool
	longest int
}

// form is a text to hide. within is the place of the longest other one that it begins
// with, -1 for none; deep is how many there are, and jump the place of one of them, so that
// a few steps lead to each.
type form struct {
	text         string
	within, jump int
	deep         int
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
	before := len(r.forms)
	for _, value := range values {
		r.add(value)
		r.add(strings.TrimSpace(value))
		for line := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == '\n' || c == '\r' }) {
			if len(line) >= minLine {
				r.add(line)
			}
		}
	}
	if len(r.forms) > before {
		r.order()
	}
}

func (r *Redactor) add(text string) {
	for _, f := range formsOf(text) {
		if len(f) >= minSecret && strings.TrimSpace(f) != "" && !r.known[f] {
			r.known[f] = true
			r.forms = append(r.forms, form{text: f})
			r.longest = max(r.longest, len(f))
		}
	}
}

// order prepares for longest.
func (r *Redactor) order() {
	slices.SortFunc(r.forms, func(a, b form) int { return strings.Compare(a.text, b.text) })
	r.begins = map[string]span{}
	for i := range r.forms {
		f := &r.forms[i]
		f.within = i - 1
		for f.within >= 0 && !strings.HasPrefix(f.text, r.forms[f.within].text) {
			f.within = r.forms[f.within].within
		}
		f.jump, f.deep = f.within, 0
		if f.within >= 0 {
			in := &r.forms[f.within]
			f.deep = in.deep + 1
			if in.jump >= 0 && in.deep-r.forms[in.jump].deep == r.forms[in.jump].deep-r.deep(r.forms[in.jump].jump) {
				f.jump = r.forms[in.jump].jump
			}
		}
		first := f.text[:minSecret]
		word, bit := bitOf(first)
		r.may[word] |= bit
		if same, ok := r.begins[first]; ok {
			r.begins[first] = span{same.from, i + 1}
		} else {
			r.begins[first] = span{i, i + 1}
		}
	}
}

// bitOf returns the place of a text's first bytes in Redactor.may.
func bitOf(text string) (word int, bit uint64) {
	hash := (uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24) * 2654435761 >> 20
	return int(hash >> 6), 1 << (hash & 63)
}

// longestAt returns the length of the longest form that a text begins with, 0 for none. In the
// order of texts it is the last one that is not behind the text, or one within that.
func (r *Redactor) longestAt(text string) int {
	word, bit := bitOf(text)
	if r.may[word]&bit == 0 {
		return 0
	}
	same, ok := r.begins[text[:minSecret]]
	if !ok {
		return 0
	}
	i, there := slices.BinarySearchFunc(r.forms[same.from:same.to], text, func(f form, text string) int { return strings.Compare(f.text, text) })
	if i += same.from; !there {
		i--
	}
	if i < same.from {
		return 0
	}
	if i, _ = r.holds(i, inCommon(text, r.forms[i].text)); i < 0 {
		return 0
	}
	return len(r.forms[i].text)
}

// holds returns the longest form of at most length bytes that the form at i begins with, itself
// too, -1 for none, and in how many steps it was found.
func (r *Redactor) holds(i, length int) (at, steps int) {
	for ; i >= 0 && len(r.forms[i].text) > length; steps++ {
		if jump := r.forms[i].jump; jump >= 0 && len(r.forms[jump].text) > length {
			i = jump
		} else {
			i = r.forms[i].within
		}
	}
	return i, steps
}

// deep returns how many forms the one at i begins with, -1 for no form.
func (r *Redactor) deep(i int) int {
	if i < 0 {
		return -1
	}
	return r.forms[i].deep
}

// inCommon returns how many bytes two texts have in common from their beginning.
func inCommon(a, b string) int {
	const block = 64 // such pieces are compared fast
	n, at := min(len(a), len(b)), 0
	for at+block <= n && a[at:at+block] == b[at:at+block] {
		at += block
	}
	for at < n && a[at] == b[at] {
		at++
	}
	return at
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
	forms = append(forms, amid(raw)...)
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

// amid returns what all base64 of data with a value somewhere inside has in common, for each
// of the three ways in which its bytes may fall on characters.
func amid(value []byte) (forms []string) {
	if len(value) < minLine {
		return nil
	}
	for before := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString(append(make([]byte, before), value...))
			// Characters at both ends hold bits of other bytes.
			forms = append(forms, text[(before*8+5)/6:(before+len(value))*8/6])
		}
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

// Flush returns the rest.
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
			out.WriteString(loom.Redacted)
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

// find returns the longest form at each place where there is one, also overlapping ones.
func (r *Redactor) find(text string) (spans []span, longest int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.forms) == 0 {
		return nil, 0
	}
	for from := 0; from+minSecret <= len(text); from++ {
		if n := r.longestAt(text[from:min(len(text), from+r.longest)]); n > 0 {
			spans = append(spans, span{from, from + n})
		}
	}
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

// sensitive gathers the texts that must not be seen in a task's output.
func sensitive(spec *loom.TaskSpec) []string {
	values := append([]string{spec.PrivateKey.Reveal()}, spec.Sensitive...)
	values = append(values, passwordsIn(spec.Results)...)
	for _, name := range []string{loom.FieldPrivateKey, "ssh_key_passphrase", loom.FieldSSHPassword} {
		value, _ := spec.Provider.Fields[name].(string)
		values = append(values, value)
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && name == loom.FieldPrivateKey {
			values = append(values, string(decoded))
		}
	}
	ofConfig, _ := loom.HiddenTexts(spec.Config, false) // macros expanded
	return append(values, ofConfig...)
}

// secretFiles reads the secret resources that the task's plugins can get at.
func secretFiles(set string, spec *loom.TaskSpec) (values []string) {
	plugins := []string{filepath.Join("providertypes", spec.Provider.Type)}
	for _, name := range spec.Automators {
		plugins = append(plugins, filepath.Join("automatortypes", name))
	}
	for _, plugin := range plugins {
		for _, kind := range loom.SecretResourceTypes {
			files := filepath.Join(set, plugin)
			names, _ := resource.Names(files, kind)
			for _, name := range names {
				// Anything larger is no key.
				if content, err := resource.Read(files, kind, name, 64<<10); err == nil {
					values = append(values, string(content))
				}
			}
		}
	}
	return values
}
