package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
	"loom/views/adminview"
)

// longestPath bounds the paths of a document that is nested without end, in bytes.
const longestPath = 1000

// places gives the offset of every value of a document, by path. A document with
// a syntax error gives those before it.
func places(body []byte) map[string]int {
	at := map[string]int{}
	placesIn(json.NewDecoder(bytes.NewReader(body)), body, "", at)
	return at
}

func placesIn(d *json.Decoder, body []byte, path string, at map[string]int) bool {
	start := int(d.InputOffset())
	start += len(body[start:]) - len(bytes.TrimLeft(body[start:], " \t\r\n:,"))
	if _, deep := at[path]; !deep {
		at[path] = start
	}
	token, err := d.Token()
	if err != nil {
		return false
	}
	opening, isDelim := token.(json.Delim)
	if !isDelim {
		return true
	}
	for i := 0; d.More(); i++ {
		inner := fmt.Sprintf("%s[%d]", path, i)
		if opening == '{' {
			key, err := d.Token()
			if err != nil {
				return false
			}
			inner = member(path, key.(string))
		}
		if len(inner) > longestPath {
			inner = path // what lies deeper counts as here
		}
		if !placesIn(d, body, inner, at) {
			return false
		}
	}
	_, err = d.Token()
	return err == nil
}

// problems turns an error into problems of a draft, each with its place: that of
// the value, or of what it is missing in.
func problems(body string, e *loom.Error) []adminview.Problem {
	if len(e.Fields) == 0 {
		line, column := syntaxPosition(e.Message)
		return []adminview.Problem{{Message: e.Message, Line: line, Column: column}}
	}
	at := places([]byte(body))
	var found []adminview.Problem
	for _, f := range e.Fields {
		p := adminview.Problem{Path: f.Field, Message: f.Message}
		for path := f.Field; p.Line == 0; path = parentPath(path) {
			if offset, ok := at[path]; ok {
				p.Line, p.Column = position(body, offset)
			}
			if path == "" {
				break
			}
		}
		found = append(found, p)
	}
	return found
}

func parentPath(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

func position(body string, offset int) (line, column int) {
	before := body[:min(offset, len(body))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

var syntaxPlace = regexp.MustCompile(`line (\d+), column (\d+)`)

// syntaxPosition finds the place that a syntax error names; 0 for none.
func syntaxPosition(message string) (line, column int) {
	match := syntaxPlace.FindStringSubmatch(message)
	if match == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(match[1])   // digits only
	column, _ = strconv.Atoi(match[2]) // digits only
	return line, column
}
