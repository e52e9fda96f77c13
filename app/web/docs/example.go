package docs

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"loom/views/apiview"
)

// exampleDepth keeps examples of shapes that hold themselves from growing.
const exampleDepth = 4

// example makes the smallest body that a schema takes: what is required, with
// values of the right type; nil where that says nothing.
func (d apiDocument) example(s *apiSchema, depth int) any {
	switch {
	case s == nil || depth == 0:
		return nil
	case s.Ref != "":
		return d.example(d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]], depth-1)
	case len(s.AnyOf) > 0:
		return d.example(s.AnyOf[0], depth)
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	kind, _ := s.Type.(string)
	if several, ok := s.Type.([]any); ok && len(several) > 0 {
		kind, _ = several[0].(string)
	}
	switch kind {
	case "object":
		return d.exampleObject(s, depth)
	case "array":
		if item := d.example(s.Items, depth-1); item != nil {
			return []any{item}
		}
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "string":
		return "…"
	}
	return nil
}

// exampleObject holds what is required; where nothing is, the first member shows
// the form.
func (d apiDocument) exampleObject(s *apiSchema, depth int) map[string]any {
	names := s.Required
	if all := slices.Sorted(maps.Keys(s.Properties)); len(names) == 0 && len(all) > 0 {
		names = all[:1]
	}
	out := map[string]any{}
	for _, name := range names {
		if value := d.example(s.Properties[name], depth-1); value != nil {
			out[name] = value
		}
	}
	return out
}

// curlOf writes a call as people type it. Variable parts of the path stay as they
// are, in quotes.
func (d apiDocument) curlOf(server, method, path string, op apiview.Operation, body *apiSchema) string {
	var b strings.Builder
	b.WriteString("curl")
	if method != "GET" {
		b.WriteString(" -X " + method)
	}
	if !op.Open {
		b.WriteString(` -H "Authorization: Bearer $LOOM_TOKEN"`)
	}
	switch {
	case op.Body == nil || op.BodyOptional:
	case op.Body.Words == "bytes":
		b.WriteString(" --data-binary @FILE")
	default:
		b.WriteString(" -d '" + exampleText(d.example(body, exampleDepth)) + "'")
	}
	for _, p := range op.Params {
		if p.Name == "dryRun" { // what can be tried without a change is shown so
			return b.String() + " '" + server + path + "?dryRun=true'"
		}
	}
	if strings.ContainsAny(path, "{}") {
		return b.String() + " '" + server + path + "'"
	}
	return b.String() + " " + server + path
}

func exampleText(value any) string {
	text, err := json.Marshal(value)
	if err != nil || value == nil {
		return "{}"
	}
	return string(text)
}
