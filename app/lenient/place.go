package lenient

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
)

// place is where a value stands in a document; nil is the document itself. It becomes
// text only for an error: the paths of all values of a document may be much longer
// together than the document.
type place struct {
	up    *place
	name  string // of a member
	index int    // of an element, else noIndex
	whole bool   // the name is a path itself, and not cut
}

const noIndex = -1

// longestName is how many bytes of a name are shown in a path.
const longestName = 100

func (p *place) member(name string) *place { return &place{up: p, name: name, index: noIndex} }

func (p *place) element(i int) *place { return &place{up: p, index: i} }

// String writes the path, "" for the document itself.
func (p *place) String() string {
	var steps []*place
	for at := p; at != nil; at = at.up {
		steps = append(steps, at)
	}
	var b strings.Builder
	for _, at := range slices.Backward(steps) {
		switch {
		case at.index != noIndex:
			b.WriteString("[" + strconv.Itoa(at.index) + "]")
			continue
		case b.Len() > 0:
			b.WriteByte('.')
		}
		if at.whole {
			b.WriteString(at.name)
			continue
		}
		b.WriteString(cutName(at.name))
	}
	return b.String()
}

func cutName(name string) string {
	if len(name) <= longestName {
		return name
	}
	end := longestName
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}

// fieldErrors are the errors of a document: the first ones, and how many more.
type fieldErrors struct {
	list []loom.FieldError
	more int
}

func (e *fieldErrors) add(at *place, format string, args ...any) {
	if len(e.list) == loom.MaxFieldErrors {
		e.more++
		return
	}
	e.list = append(e.list, loom.BoundField(loom.FieldError{Field: at.String(), Message: fmt.Sprintf(format, args...)}))
}

func (e *fieldErrors) found() int { return len(e.list) + e.more }

func (e *fieldErrors) listed() []loom.FieldError { return loom.BoundFields(e.list, e.more) }
