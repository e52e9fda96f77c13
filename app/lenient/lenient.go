// Package lenient reads JSON the way clients of the predecessor write it: numbers and booleans as text, text as numbers, null for
// absent, unknown fields, repeated members of sets.
//
// Reading never stops at the first mistake: an Object collects field errors with
// their full path, and Err gives them all. Free-form values keep numbers as they
// were written. The package knows no entity and no route. A newcomer's usual
// mistake: using the answers before looking at Err; they are zero values where
// something was wrong.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
)

// maxExponent bounds numbers in free-form values to what the database keeps.
const maxExponent = 300

// Value reads one JSON document. Numbers are json.Number. Errors are Invalid:
// an empty body, one that loom.ScanJSON refuses, a syntax error with line
// and column, text after the document, and texts and numbers that cannot be stored.
func Value(body []byte) (any, error) {
	return value(body, func(text []byte) error { return loom.ScanJSON(text, 0) })
}

func value(body []byte, scan func(text []byte) error) (any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, loom.NewError(loom.Invalid, "The body is empty; a JSON document is needed.")
	}
	if at := invalidUTF8(body); at >= 0 {
		line, column := loom.TextPosition(body, at)
		return nil, loom.NewError(loom.Invalid, "The body is not UTF-8: line %d, column %d, is the byte 0x%02X. Send it in UTF-8.", line, column, body[at])
	}
	if err := scan(body); err != nil {
		return nil, tooDeep(body, err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, decodeError(body, err)
	}
	end := d.InputOffset()
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		rest := body[end:]
		skipped := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
		return nil, syntaxError(body, int(end)+skipped, "there is something after the end of the document")
	}
	if !storable(value) {
		var errs fieldErrors
		unstorable(nil, value, &errs)
		return nil, loom.InvalidFields(errs.listed())
	}
	return value, nil
}

// Read reads one JSON object. Errors: as Value, and Invalid for null and for
// anything that is no object.
func Read(body []byte) (*Object, error) {
	value, err := Value(body)
	if err != nil {
		return nil, err
	}
	return object(value)
}

// ReadBundle is Read for a bundle of a whole catalog.
func ReadBundle(body []byte) (*Object, error) {
	value, err := value(body, loom.ScanBundle)
	if err != nil {
		return nil, err
	}
	return object(value)
}

func object(value any) (*Object, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, loom.NewError(loom.Invalid, "The body is %s; a JSON object is needed.", kindOf(value))
	}
	return &Object{fields: fields, errs: &fieldErrors{}}, nil
}

// FromMap reads an object that was read already, such as a member of a document.
// at is put before the names of fields, "" for none.
func FromMap(at string, fields map[string]any) *Object {
	o := &Object{fields: fields, errs: &fieldErrors{}}
	if at != "" {
		o.at = &place{name: at, index: noIndex, whole: true}
	}
	return o
}

// tooDeep names the member that is nested too deep or has too many values, where the
// document is an object.
func tooDeep(body []byte, err error) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if opening, _ := d.Token(); opening != json.Delim('{') {
		return err
	}
	for d.More() {
		key, _ := d.Token()
		name, ok := key.(string)
		if !ok {
			return err
		}
		var value json.RawMessage
		if d.Decode(&value) != nil || loom.ScanJSON(value, 1) != nil {
			return loom.InvalidFields([]loom.FieldError{{Field: cutName(name), Message: loom.AsError(err).Message}})
		}
	}
	return err
}

func decodeError(body []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// The offset is after the byte that was wrong.
		return syntaxError(body, int(syntax.Offset)-1, strings.TrimPrefix(syntax.Error(), "json: "))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return syntaxError(body, len(body), "the document ends too early")
	}
	return &loom.Error{Kind: loom.Invalid, Message: "The body is not JSON.", Err: err}
}

func syntaxError(body []byte, at int, what string) error {
	line, column := loom.TextPosition(body, at)
	return loom.NewError(loom.Invalid, "This is not JSON: line %d, column %d: %s.", line, column, what)
}

func invalidUTF8(body []byte) int {
	if utf8.Valid(body) {
		return -1
	}
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// storable reports whether the database can keep a value: not NUL in texts and keys,
// nor numbers out of all proportion.
func storable(value any) bool {
	switch v := value.(type) {
	case string:
		return !strings.Contains(v, "\x00")
	case json.Number:
		return !tooLarge(v.String())
	case []any:
		for _, item := range v {
			if !storable(item) {
				return false
			}
		}
	case map[string]any:
		for key, item := range v {
			if strings.Contains(key, "\x00") || !storable(item) {
				return false
			}
		}
	}
	return true
}

// unstorable names the values that are not storable.
func unstorable(at *place, value any, errs *fieldErrors) {
	switch v := value.(type) {
	case string:
		if !storable(v) {
			errs.add(at, "This text holds the character NUL, which cannot be stored.")
		}
	case json.Number:
		if !storable(v) {
			errs.add(at, "This number is too large or too precise.")
		}
	case []any:
		for i, item := range v {
			unstorable(at.element(i), item, errs)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if strings.Contains(key, "\x00") {
				errs.add(at, "A key holds the character NUL, which cannot be stored.")
				continue
			}
			unstorable(at.member(key), v[key], errs)
		}
	}
}

func tooLarge(number string) bool {
	mantissa, exponent, found := strings.Cut(strings.ToLower(number), "e")
	if len(mantissa) > maxExponent {
		return true
	}
	if !found {
		return false
	}
	n, err := strconv.Atoi(exponent)
	return err != nil || n > maxExponent || n < -maxExponent
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number, float64, int, int64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", value)
}
