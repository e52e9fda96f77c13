// Package form turns JSON documents into forms and posted forms back into
// documents. The document is the draft: a posted form is laid over the document
// that it was made from, so that members which no field shows are never lost, and
// a field that was not changed leaves its member exactly as it was written.
//
// The document is the body of the REST request that does the same, so whatever reads that
// body reads the form (Decode), and its errors have the paths of the fields.
//
// A form is made of parts (Part): each reads its own controls and shows itself.
// The package must not know requests, use cases or pages; what fields need from
// outside, such as names to choose from, is put into them by whoever makes the
// form. A newcomer's usual mistake: writing a default into the document while
// reading, which makes a form that nobody touched a change.
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// Path leads to a value in a document: texts are members of objects, ints are
// places in lists.
type Path []any

// At makes a path.
func At(steps ...any) Path { return steps }

// To is the path of something below.
func (p Path) To(steps ...any) Path { return append(slices.Clone(p), steps...) }

// String writes the path as field errors do, "links[0].url". Controls have it as
// their name.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, s)
		}
	}
	return b.String()
}

// Doc is a JSON object that keeps the order of its members and its numbers as they
// were written.
type Doc struct{ root *object }

// object is a JSON object in order. Values are nil, bool, string, json.Number,
// *object and []any.
type object struct {
	keys    []string
	members map[string]any
}

func newObject() *object { return &object{members: map[string]any{}} }

func (o *object) set(key string, v any) {
	if _, there := o.members[key]; !there {
		o.keys = append(o.keys, key)
	}
	o.members[key] = v
}

func (o *object) remove(key string) {
	delete(o.members, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// Parse reads a document. The error says what is wrong, for the log: people are
// told by whoever reads the text as an entry.
func Parse(text string) (*Doc, error) {
	v, err := parseValue(text, 0)
	if err != nil {
		return nil, err
	}
	root, ok := v.(*object)
	if !ok {
		return nil, errors.New("the text is no JSON object")
	}
	return &Doc{root: root}, nil
}

// New makes the document of a value that JSON writes as an object.
func New(v any) *Doc {
	root, ok := value(v).(*object)
	if !ok {
		root = newObject()
	}
	return &Doc{root: root}
}

// parseValue reads a value that has within objects and lists around it.
func parseValue(text string, within int) (any, error) {
	if err := loom.ScanJSON([]byte(text), within); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := parseNext(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the end of the document")
	}
	return v, nil
}

func parseNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	opening, isDelim := token.(json.Delim)
	switch {
	case !isDelim:
		return token, nil
	case opening == '[':
		list := []any{}
		for d.More() {
			item, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = d.Token()
		return list, err
	}
	o := newObject()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		item, err := parseNext(d)
		if err != nil {
			return nil, err
		}
		o.set(key.(string), item)
	}
	_, err = d.Token()
	return o, err
}

// String writes the document for people: indented, characters such as "&" as they
// are.
func (d *Doc) String() string { return write(d.root, true) }

// Clone copies the document.
func (d *Doc) Clone() *Doc {
	copied, err := Parse(write(d.root, false))
	if err != nil {
		return &Doc{root: newObject()} // what was written can be read
	}
	return copied
}

func write(v any, indent bool) string {
	var b bytes.Buffer
	writeValue(&b, v)
	if !indent {
		return b.String()
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, b.Bytes(), "", "  ") != nil {
		return b.String()
	}
	return pretty.String()
}

func writeValue(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case *object:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeScalar(b, key)
			b.WriteByte(':')
			writeValue(b, v.members[key])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, item)
		}
		b.WriteByte(']')
	default:
		writeScalar(b, v)
	}
}

func writeScalar(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		b.WriteString("null") // scalars are made of JSON
		return
	}
	b.Truncate(b.Len() - 1) // the line feed
}

// get gives the value at a path; there is false where the document has none.
func (d *Doc) get(p Path) (v any, there bool) {
	v = d.root
	for _, step := range p {
		switch at := v.(type) {
		case *object:
			key, isKey := step.(string)
			if v, there = at.members[key]; !isKey || !there {
				return nil, false
			}
		case []any:
			i, isIndex := step.(int)
			if !isIndex || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Has reports whether there is a value, null being one.
func (d *Doc) Has(p Path) bool {
	_, there := d.get(p)
	return there
}

// Text gives a text, number or boolean as text, "" for anything else.
func (d *Doc) Text(p Path) string {
	text, _ := d.scalar(p)
	return text
}

// scalar is Text; ok is false where an object or a list is.
func (d *Doc) scalar(p Path) (text string, ok bool) {
	v, _ := d.get(p)
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// Keys gives the names of the members of an object in their order; nil for
// anything else.
func (d *Doc) Keys(p Path) []string {
	v, _ := d.get(p)
	if o, ok := v.(*object); ok {
		return slices.Clone(o.keys)
	}
	return nil
}

// Len gives the length of a list; 0 for anything else.
func (d *Doc) Len(p Path) int {
	v, _ := d.get(p)
	list, _ := v.([]any)
	return len(list)
}

// Texts gives a list of texts; what is no text in it is left out.
func (d *Doc) Texts(p Path) []string {
	var texts []string
	for i := range d.Len(p) {
		if text, ok := d.scalar(p.To(i)); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// JSON writes a value indented; "" where there is none.
func (d *Doc) JSON(p Path) string {
	v, there := d.get(p)
	if !there {
		return ""
	}
	return write(v, true)
}

// value makes v a value of a document.
func value(v any) any {
	switch v := v.(type) {
	case nil, bool, string, json.Number, *object:
		return v
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	parsed, err := parseValue(string(body), 0)
	if err != nil {
		return nil
	}
	return parsed
}
