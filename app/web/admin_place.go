package web

import (
	"regexp"
	"strconv"

	"loom/app/loom"
	"loom/views/adminview"
)

// problems turns an error into problems of a draft, each with its place: that of
// the value, or of what it is missing in.
func problems(body string, e *loom.Error) []adminview.Problem {
	if len(e.Fields) == 0 {
		line, column := syntaxPosition(e.Message)
		return []adminview.Problem{{Message: e.Message, Line: line, Column: column}}
	}
	paths := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		paths[i] = f.Field
	}
	var found []adminview.Problem
	for i, offset := range loom.JSONPlaces([]byte(body), paths) {
		p := adminview.Problem{Path: e.Fields[i].Field, Message: e.Fields[i].Message}
		p.Line, p.Column = loom.TextPosition([]byte(body), offset)
		found = append(found, p)
	}
	return found
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
