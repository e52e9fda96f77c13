package web

import (
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
)

// configFields words errors about a place in a config, "config/web/port", as errors of
// the field in which the config is typed.
func configFields(fields []loom.FieldError) []loom.FieldError {
	out := make([]loom.FieldError, len(fields))
	for i, e := range fields {
		name, pointer, within := strings.Cut(e.Field, "/")
		if name == "config" || name == "configPatch" {
			if e.Field = "config"; within {
				e.Message = "At " + plainPath(pointer) + ": " + e.Message
			}
		}
		out[i] = e
	}
	return out
}

// problemWords says which macro of a config could not be filled in, where it stands and
// why.
func problemWords(p lifecycle.ConfigProblem) string {
	text := strings.TrimSuffix(p.Reason, ".") + "."
	if p.Macro != "" {
		text = "“" + p.Macro + "” stays as written: " + text
	}
	if p.Pointer != "" {
		text = plainPath(p.Pointer) + ": " + text
	}
	return text
}
