package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// problems gathers what is wrong with a manifest.
type problems struct {
	errs     []loom.FieldError
	warnings []string
}

func (p *problems) fail(at, format string, args ...any) {
	p.errs = append(p.errs, loom.FieldError{Field: at, Message: fmt.Sprintf(format, args...)})
}

// object is a JSON object that is being read; what nobody asked for is a warning.
type object struct {
	at     string
	values map[string]any
	asked  map[string]bool
	to     *problems
}

// readObject reads a document that is one JSON object.
func readObject(data []byte, to *problems) (*object, error) {
	if err := loom.ScanJSON(data, 0); err != nil {
		return nil, errors.New(strings.TrimSuffix(loom.AsError(err).Message, "."))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", position(data, err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	values, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no JSON object but %s", kindOf(value))
	}
	return &object{values: values, asked: map[string]bool{}, to: to}, nil
}

// position adds the line to an error of the JSON reader.
func position(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset > int64(len(data)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:syntax.Offset], []byte("\n")), err)
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case json.Number, float64:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	}
	return "an object"
}

func (o *object) name(key string) string {
	if o.at == "" {
		return key
	}
	return o.at + "." + key
}

func (o *object) take(key string) (any, bool) {
	o.asked[key] = true
	value, ok := o.values[key]
	return value, ok && value != nil
}

// done warns of keys that nobody asked for.
func (o *object) done() {
	for _, key := range slices.Sorted(maps.Keys(o.values)) {
		if !o.asked[key] {
			o.to.warnings = append(o.to.warnings, fmt.Sprintf("the key “%s” is not known and ignored", o.name(key)))
		}
	}
}

func (o *object) text(key string) string {
	value, ok := o.take(key)
	if !ok {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		o.to.fail(o.name(key), "It takes a text, not %s.", kindOf(value))
	}
	return text
}

func (o *object) flag(key string) bool {
	value, ok := o.take(key)
	if !ok {
		return false
	}
	flag, ok := value.(bool)
	if !ok {
		o.to.fail(o.name(key), "It takes true or false, not %s.", kindOf(value))
	}
	return flag
}

// whole reads a whole number within bounds; 0 when it is not there.
func (o *object) whole(key string, least, most int) int {
	value, ok := o.take(key)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(fmt.Sprint(value))
	if _, number := value.(json.Number); !number || err != nil || n < least || n > most {
		o.to.fail(o.name(key), "It takes a whole number from %d to %d, not %v.", least, most, value)
		return 0
	}
	return n
}

func (o *object) float(key string) *float64 {
	value, ok := o.take(key)
	if !ok {
		return nil
	}
	number, isNumber := value.(json.Number)
	f, err := number.Float64()
	if !isNumber || err != nil {
		o.to.fail(o.name(key), "It takes a number, not %s.", kindOf(value))
		return nil
	}
	return &f
}

// list returns the elements of a list.
func (o *object) list(key string) []any {
	value, ok := o.take(key)
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		o.to.fail(o.name(key), "It takes a list, not %s.", kindOf(value))
	}
	return list
}

func (o *object) texts(key string) []string {
	return textsOf(o.name(key), o.list(key), o.to)
}

func textsOf(at string, list []any, to *problems) []string {
	var texts []string
	for i, value := range list {
		text, ok := value.(string)
		if !ok {
			to.fail(fmt.Sprintf("%s[%d]", at, i), "It takes a text, not %s.", kindOf(value))
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// each calls do for every member of an object of objects, by name, and warns of
// what do left.
func (o *object) each(key string, do func(name string, member *object)) {
	value, ok := o.take(key)
	if !ok {
		return
	}
	members, ok := value.(map[string]any)
	if !ok {
		o.to.fail(o.name(key), "It takes an object, not %s.", kindOf(value))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := o.name(key) + "." + name
		values, ok := members[name].(map[string]any)
		if !ok {
			o.to.fail(at, "It takes an object, not %s.", kindOf(members[name]))
			continue
		}
		member := &object{at: at, values: values, asked: map[string]bool{}, to: o.to}
		do(name, member)
		member.done()
	}
}

// member returns an object within, or nil.
func (o *object) member(key string) *object {
	value, ok := o.take(key)
	if !ok {
		return nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		o.to.fail(o.name(key), "It takes an object, not %s.", kindOf(value))
		return nil
	}
	return &object{at: o.name(key), values: values, asked: map[string]bool{}, to: o.to}
}
