package lenient

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// Object is a JSON object being read, and the errors found so far in the whole
// document. Absent and null mean the same.
type Object struct {
	at     *place
	fields map[string]any
	errs   *fieldErrors
}

// Err gives Invalid with every field error of the document, or nil.
func (o *Object) Err() error { return loom.InvalidFields(o.errs.listed()) }

// Errors gives the field errors of the document so far: loom.MaxFieldErrors at most, and
// one that says how many more.
func (o *Object) Errors() []loom.FieldError { return o.errs.listed() }

// Found is how many field errors the document has so far.
func (o *Object) Found() int { return o.errs.found() }

// Fail records that a field of this object is wrong.
func (o *Object) Fail(name, format string, args ...any) {
	if o.errs.found() >= loom.MaxFieldErrors { // not even its place is told
		o.errs.more++
		return
	}
	o.errs.add(o.at.member(name), format, args...)
}

// Path is the full name of a field of this object.
func (o *Object) Path(name string) string { return o.at.member(name).String() }

// Has reports whether the field is there and not null.
func (o *Object) Has(name string) bool { return o.fields[name] != nil }

// Null reports whether the field is there and is an explicit null.
func (o *Object) Null(name string) bool {
	value, there := o.fields[name]
	return there && value == nil
}

// Names lists the fields that are not null, sorted.
func (o *Object) Names() []string {
	names := make([]string, 0, len(o.fields))
	for _, name := range sortedKeys(o.fields) {
		if o.fields[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// Ignore forgets fields that may be there and mean nothing.
func (o *Object) Ignore(names ...string) {
	for _, name := range names {
		delete(o.fields, name)
	}
}

// Only records an error for each field, null or not, that is none of the known ones.
func (o *Object) Only(known ...string) {
	for _, name := range sortedKeys(o.fields) {
		if !slices.Contains(known, name) {
			o.Fail(name, "There is no member “%.60s” here; there are %s.", name, strings.Join(known, ", "))
		}
	}
}

// Text gives a text; numbers and booleans are turned into one. "" when absent.
func (o *Object) Text(name string) string {
	text, ok := textOf(o.fields[name])
	if !ok {
		o.Fail(name, "This is %s; it must be a text.", shown(o.fields[name]))
	}
	return text
}

// TextOr gives the text of the field, or fallback when it is absent.
func (o *Object) TextOr(name, fallback string) string {
	if !o.Has(name) {
		return fallback
	}
	return o.Text(name)
}

// TextPtr gives the text of the field, or nil when it is absent.
func (o *Object) TextPtr(name string) *string {
	if !o.Has(name) {
		return nil
	}
	text := o.Text(name)
	return &text
}

// Bool gives a boolean, also from the texts "true" and "false". False when absent.
func (o *Object) Bool(name string) bool {
	switch v := o.fields[name].(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		switch v {
		case "true":
			return true
		case "false":
			return false
		}
	}
	o.Fail(name, "This is %s; it must be true or false.", shown(o.fields[name]))
	return false
}

// BoolPtr gives the boolean of the field, or nil when it is absent.
func (o *Object) BoolPtr(name string) *bool {
	if !o.Has(name) {
		return nil
	}
	b := o.Bool(name)
	return &b
}

// Int64 gives a whole number, also from text. 0 when absent.
func (o *Object) Int64(name string) int64 {
	n, problem := int64Of(o.fields[name])
	if problem != "" {
		o.Fail(name, "%s", problem)
	}
	return n
}

// Int is Int64 for numbers that fit 32 bits.
func (o *Object) Int(name string) int {
	n, problem := intOf(o.fields[name])
	if problem != "" {
		o.Fail(name, "%s", problem)
	}
	return n
}

// Ints gives the whole numbers of an array, also from texts; [] when absent.
func (o *Object) Ints(name string) []int {
	numbers := []int{}
	at := o.at.member(name)
	for i, element := range o.Array(name) {
		n, problem := intOf(element)
		if problem != "" {
			o.errs.add(at.element(i), "%s", problem)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// IntPtr gives the number of the field, or nil when it is absent.
func (o *Object) IntPtr(name string) *int {
	if !o.Has(name) {
		return nil
	}
	n := o.Int(name)
	return &n
}

// Int64Ptr gives the number of the field, or nil when it is absent.
func (o *Object) Int64Ptr(name string) *int64 {
	if !o.Has(name) {
		return nil
	}
	n := o.Int64(name)
	return &n
}

// FloatPtr gives a number with fraction, also from text, or nil when absent.
func (o *Object) FloatPtr(name string) *float64 {
	text := ""
	switch v := o.fields[name].(type) {
	case nil:
		return nil
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		o.Fail(name, "This is %s; it must be a number.", shown(o.fields[name]))
		return nil
	}
	return &f
}

// Free gives any value as it was written, nil when absent.
func (o *Object) Free(name string) any { return o.fields[name] }

// FreeObject gives an object as it was written; nil when absent. Nulls inside
// it stay.
func (o *Object) FreeObject(name string) map[string]any {
	fields, _ := o.object(name)
	return fields
}

// Object gives the object in a field; an empty one when absent.
func (o *Object) Object(name string) *Object {
	fields, _ := o.object(name)
	return &Object{at: o.at.member(name), fields: fields, errs: o.errs}
}

// Each calls fn for each object in the object of a field, by sorted key; null
// members are left out.
func (o *Object) Each(name string, fn func(key string, member *Object)) {
	members := o.Object(name)
	for _, key := range members.Names() {
		if _, ok := members.object(key); ok {
			fn(key, members.Object(key))
		}
	}
}

// EachOf calls fn for each object in the array of a field; null elements are
// left out.
func (o *Object) EachOf(name string, fn func(i int, element *Object)) {
	at := o.at.member(name)
	for i, element := range o.Array(name) {
		fields, ok := element.(map[string]any)
		if !ok {
			if element != nil {
				o.errs.add(at.element(i), "This is %s; it must be an object.", shown(element))
			}
			continue
		}
		fn(i, &Object{at: at.element(i), fields: fields, errs: o.errs})
	}
}

// Array gives the elements of an array as they were written; nil when absent.
func (o *Object) Array(name string) []any {
	switch v := o.fields[name].(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	o.Fail(name, "This is %s; it must be an array.", shown(o.fields[name]))
	return nil
}

// Texts gives a set of texts: duplicates and nulls are left out, order is kept.
// Never nil.
func (o *Object) Texts(name string) []string {
	return o.texts(o.at.member(name), o.Array(name))
}

// TextSets gives an array of sets of texts. Never nil.
func (o *Object) TextSets(name string) [][]string {
	sets := [][]string{}
	at := o.at.member(name)
	for i, element := range o.Array(name) {
		set, ok := element.([]any)
		if !ok {
			if element != nil {
				o.errs.add(at.element(i), "This is %s; it must be an array of names.", shown(element))
			}
			continue
		}
		sets = append(sets, o.texts(at.element(i), set))
	}
	return sets
}

// TextMap gives an object of texts; nulls are left out. Never nil.
func (o *Object) TextMap(name string) map[string]string {
	fields, _ := o.object(name)
	texts := make(map[string]string, len(fields))
	at := o.at.member(name)
	for _, key := range sortedKeys(fields) {
		if fields[key] != nil {
			texts[key] = o.text(at, key, noIndex, fields[key])
		}
	}
	return texts
}

func (o *Object) object(name string) (map[string]any, bool) {
	switch v := o.fields[name].(type) {
	case nil:
		return nil, false
	case map[string]any:
		return v, true
	}
	o.Fail(name, "This is %s; it must be an object.", shown(o.fields[name]))
	return nil, false
}

func (o *Object) texts(at *place, elements []any) []string {
	texts := []string{}
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		if element == nil {
			continue
		}
		if text := o.text(at, "", i, element); !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return texts
}

// text reads the text that is member or element of what is at a place.
func (o *Object) text(within *place, name string, index int, value any) string {
	text, ok := textOf(value)
	if !ok {
		o.errs.add(&place{up: within, name: name, index: index}, "This is %s; it must be a text.", shown(value))
	}
	return text
}

func textOf(value any) (text string, ok bool) {
	switch v := value.(type) {
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

// int64Of reads a whole number, or says what is wrong with it.
func int64Of(value any) (n int64, problem string) {
	ok := false
	switch v := value.(type) {
	case nil:
		return 0, ""
	case json.Number:
		n, ok = whole(v.String())
	case string:
		n, ok = whole(v)
	}
	if !ok {
		return 0, "This is " + shown(value) + "; it must be a whole number."
	}
	return n, ""
}

// intOf is int64Of for numbers that fit 32 bits.
func intOf(value any) (n int, problem string) {
	wide, problem := int64Of(value)
	if problem == "" && (wide > math.MaxInt32 || wide < math.MinInt32) {
		return 0, fmt.Sprintf("The number %d is too large.", wide)
	}
	return int(wide), problem
}

// whole reads a number with integral value: 3, 3.0 and 3e2, but not 3.5.
func whole(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && !strings.HasPrefix(text, "+") {
		return n, true
	}
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// shown says what a value is, with the value itself where it is short.
func shown(value any) string {
	switch v := value.(type) {
	case string:
		if len(v) <= 40 {
			return "“" + v + "”"
		}
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return kindOf(value)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
