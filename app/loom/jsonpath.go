package loom

import (
	"strconv"
	"strings"
)

// JSONPath is where somebody is who goes through a JSON value. It is cheap to keep, and
// put into words only where there is something to say.
type JSONPath struct{ steps []jsonStep }

// jsonStep is a key, or an index where isIndex is set.
type jsonStep struct {
	key     string
	index   int
	isIndex bool
}

// Key goes to a member of an object.
func (p *JSONPath) Key(key string) { p.steps = append(p.steps, jsonStep{key: key}) }

// Index goes to an element of an array.
func (p *JSONPath) Index(i int) { p.steps = append(p.steps, jsonStep{index: i, isIndex: true}) }

// Up goes back.
func (p *JSONPath) Up() { p.steps = p.steps[:len(p.steps)-1] }

// Pointer gives the JSON pointer (RFC 6901). One above MaxConfigPath is cut: what was
// stored before there was a limit may have any length.
func (p *JSONPath) Pointer() string {
	var b strings.Builder
	for _, s := range p.steps {
		if b.Len() > MaxConfigPath {
			break
		}
		b.WriteByte('/')
		if s.isIndex {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(pointerEscape.Replace(Cut(s.key, MaxConfigPath)))
		}
	}
	return Cut(b.String(), MaxConfigPath)
}

// Keys gives the keys with dots between them and without indexes, cut as Pointer.
func (p *JSONPath) Keys() string {
	var b strings.Builder
	for _, s := range p.steps {
		if b.Len() > MaxConfigPath {
			break
		}
		if s.isIndex {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(Cut(s.key, MaxConfigPath))
	}
	return Cut(b.String(), MaxConfigPath)
}

// pointerEscape writes a key as a part of a JSON pointer.
var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")
