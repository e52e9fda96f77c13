package loom

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxJSONDepth is how deep arrays and objects may be nested in JSON that comes from
// outside; the outermost counts.
const MaxJSONDepth = 100

const (
	// MaxJSONValues is how many values JSON that comes from outside may have: a value takes
	// far more memory than its few bytes of text.
	MaxJSONValues = 100_000
	// MaxBundleValues is the same for a bundle of a whole catalog, which administrators import.
	MaxBundleValues = 1_000_000
)

// ScanJSON checks how deep a JSON text is nested and how many values it has, in one pass
// that builds nothing. Whoever reads JSON from outside calls it first. within is how deep
// the place lies that the text will take in a document, 0 for a whole document. What is
// no JSON passes: the decoder says where it stops being it. Invalid, with line, column and
// remedy.
func ScanJSON(text []byte, within int) error {
	_, err := scanJSON(text, within, MaxJSONValues)
	return err
}

// ScanBundle is ScanJSON for a bundle of a whole catalog.
func ScanBundle(text []byte) error {
	_, err := scanJSON(text, 0, MaxBundleValues)
	return err
}

// JSONValues counts the values of a JSON text, at most up to the first that is one too many
// for a bundle or too deep.
func JSONValues(text []byte) int {
	values, _ := scanJSON(text, 0, MaxBundleValues) //nolint:errcheck // whoever reads the text is told
	return values
}

// scanJSON counts also what stands in no array or object, as a decoder may read on.
func scanJSON(text []byte, within, most int) (values int, _ error) {
	depth := within
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',':
			continue
		case ':':
			values-- // what stands before it was a key
			continue
		case ']', '}':
			if depth--; depth < within {
				return values, nil // nobody reads on behind it
			}
			continue
		}
		if values++; values > most {
			line, column := TextPosition(text, i)
			return values, NewError(Invalid, "There are more than %d values, from line %d, column %d on. Send fewer at once.", most, line, column)
		}
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > MaxJSONDepth {
				line, column := TextPosition(text, i)
				return values, NewError(Invalid, "Arrays and objects are nested more than %d levels deep at line %d, column %d. Put what is inside into fewer levels.", MaxJSONDepth, line, column)
			}
		default: // a number or a word
			for i+1 < len(text) && strings.IndexByte(" \t\r\n,:]}[{\"", text[i+1]) < 0 {
				i++
			}
		}
	}
	return values, nil
}

// TextPosition gives line and column, from 1 and in characters, of a byte offset.
func TextPosition(text []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// JSONPlaces gives for each path, such as "services[2].name", the offset at which its
// value begins in a document, or else that of the last part of it that is there.
func JSONPlaces(text []byte, paths []string) []int {
	s := &jsonSearch{decoder: json.NewDecoder(bytes.NewReader(text)), text: text, found: make([]int, len(paths))}
	wanted := make([]jsonWanted, len(paths))
	for i, path := range paths {
		wanted[i] = jsonWanted{i, path}
	}
	s.value(wanted)
	return s.found
}

// jsonSearch looks for values in a document.
type jsonSearch struct {
	decoder *json.Decoder
	text    []byte
	found   []int
}

// jsonWanted is what is still to be found of a path, by its place among all.
type jsonWanted struct {
	path int
	rest string
}

// value reads the next value, which all that is wanted lies in. It reports false where
// the document ends, or is none from there on.
func (s *jsonSearch) value(wanted []jsonWanted) bool {
	start := int(s.decoder.InputOffset())
	start += len(s.text[start:]) - len(bytes.TrimLeft(s.text[start:], " \t\r\n:,"))
	for _, w := range wanted {
		s.found[w.path] = start
	}
	wanted = slices.DeleteFunc(wanted, func(w jsonWanted) bool { return w.rest == "" })
	if len(wanted) == 0 {
		var skipped json.RawMessage
		return s.decoder.Decode(&skipped) == nil
	}
	token, err := s.decoder.Token()
	if err != nil {
		return false
	}
	opening, isDelim := token.(json.Delim)
	if !isDelim {
		return true
	}
	for i := 0; s.decoder.More(); i++ {
		step := "[" + strconv.Itoa(i) + "]"
		if opening == '{' {
			key, err := s.decoder.Token()
			if err != nil {
				return false
			}
			step = key.(string)
		}
		if !s.value(inside(wanted, step, opening == '{')) {
			return false
		}
	}
	_, err = s.decoder.Token()
	return err == nil
}

// inside is what of all that is wanted lies in a member or an element.
func inside(wanted []jsonWanted, step string, member bool) []jsonWanted {
	var in []jsonWanted
	for _, w := range wanted {
		rest := w.rest
		if member {
			rest = strings.TrimPrefix(rest, ".")
		}
		if rest, ok := strings.CutPrefix(rest, step); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			in = append(in, jsonWanted{w.path, rest})
		}
	}
	return in
}
