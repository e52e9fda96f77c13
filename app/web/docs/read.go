package docs

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"loom/views/apiview"
)

// apiDocument is as much of an OpenAPI document as the readable page shows.
type apiDocument struct {
	Tags []struct {
		Name, Description string
	}
	Paths      map[string]map[string]apiOperation
	Components struct {
		Schemas map[string]*apiSchema
	}
}

type apiOperation struct {
	OperationID string
	Summary     string
	Tags        []string
	Security    *[]any
	Parameters  []struct {
		Name, In, Description string
		Required              bool
		Schema                *apiSchema
	}
	RequestBody *struct {
		Required bool
		Content  map[string]struct{ Schema *apiSchema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema *apiSchema }
	}
}

// apiSchema is a schema in the dialect that the document uses.
type apiSchema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Description          string
	Enum                 []any
	Items                *apiSchema
	AnyOf                []*apiSchema
	Properties           map[string]*apiSchema
	Required             []string
	AdditionalProperties json.RawMessage
}

// methods in the order in which people look for them.
var methods = []string{"get", "post", "put", "patch", "delete"}

func readAPIDocument(raw []byte) (apiDocument, error) {
	var doc apiDocument
	err := json.Unmarshal(raw, &doc)
	return doc, err
}

// operations gives the operations of a chapter by path, then by method.
func (d apiDocument) operations(tag string, visit func(method, path string, op apiOperation)) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range methods {
			if op, ok := d.Paths[path][method]; ok && slices.Contains(op.Tags, tag) {
				visit(strings.ToUpper(method), path, op)
			}
		}
	}
}

// describe makes the page's model of an operation, and adds the shapes that it
// speaks of to used.
func (d apiDocument) describe(server, method, path string, op apiOperation, used map[string]bool) apiview.Operation {
	out := apiview.Operation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Open: op.Security != nil && len(*op.Security) == 0}
	for _, p := range op.Parameters {
		out.Params = append(out.Params, apiview.Row{Name: p.Name, Place: p.In, Type: d.words(p.Schema, used), Required: p.Required, Help: p.Description})
	}
	var body *apiSchema
	if op.RequestBody != nil {
		for media, content := range op.RequestBody.Content {
			body = content.Schema
			t := d.words(content.Schema, used)
			if media != "application/json" && t.Ref == "" {
				t.Words = "bytes"
			}
			out.Body, out.BodyOptional = &t, !op.RequestBody.Required
		}
	}
	content := op.Responses["200"].Content
	if json, ok := content["application/json"]; ok {
		t := d.words(json.Schema, used)
		out.Answer = &t
	}
	if _, only := content["application/json"]; len(content) > 1 || len(content) == 1 && !only {
		out.Media = slices.Sorted(maps.Keys(content))
	}
	out.Curl = d.curlOf(server, method, path, out, body)
	return out
}

// words says a type in words, and which shape it ends in.
func (d apiDocument) words(s *apiSchema, used map[string]bool) apiview.Type {
	switch {
	case s == nil:
		return apiview.Type{Words: "anything"}
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		d.use(name, used)
		return apiview.Type{Ref: name}
	case len(s.AnyOf) > 0:
		return d.either(s.AnyOf, used)
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			if text, ok := v.(string); ok {
				values = append(values, text)
			}
		}
		return apiview.Type{Words: strings.Join(values, " | ")}
	}
	switch t := s.Type.(type) {
	case string:
		return d.plain(t, s, used)
	case []any:
		var parts []string
		for _, one := range t {
			if text, ok := one.(string); ok {
				parts = append(parts, text)
			}
		}
		return apiview.Type{Words: strings.Join(parts, " or ")}
	}
	return apiview.Type{Words: "anything"}
}

func (d apiDocument) plain(t string, s *apiSchema, used map[string]bool) apiview.Type {
	switch t {
	case "array":
		item := d.words(s.Items, used)
		return apiview.Type{Words: "array of " + item.Words, Ref: item.Ref}
	case "object":
		var values apiSchema
		if json.Unmarshal(s.AdditionalProperties, &values) == nil && len(s.Properties) == 0 {
			item := d.words(&values, used)
			return apiview.Type{Words: "object of " + item.Words, Ref: item.Ref}
		}
	}
	return apiview.Type{Words: t}
}

// either joins alternatives; a page links at most the last of them.
func (d apiDocument) either(all []*apiSchema, used map[string]bool) apiview.Type {
	var words []string
	ref := ""
	for _, s := range all {
		t := d.words(s, used)
		if t.Ref != "" && ref == "" && t.Words == "" {
			ref = t.Ref
			continue
		}
		words = append(words, t.Words+t.Ref)
	}
	text := strings.Join(words, " or ")
	if ref != "" && text != "" {
		text += " or "
	}
	return apiview.Type{Words: text, Ref: ref}
}

// use adds a shape and all that it speaks of.
func (d apiDocument) use(name string, used map[string]bool) {
	if used[name] {
		return
	}
	used[name] = true
	d.rows("", d.Components.Schemas[name], used)
}

// shapes gives the objects that a chapter uses, by name.
func (d apiDocument) shapes(used map[string]bool) []apiview.Shape {
	var out []apiview.Shape
	for _, name := range slices.Sorted(maps.Keys(used)) {
		out = append(out, apiview.Shape{Name: name, Rows: d.rows("", d.Components.Schemas[name], used)})
	}
	return out
}

// rows lists the members of an object, those of objects within it under dotted
// names.
func (d apiDocument) rows(at string, s *apiSchema, used map[string]bool) []apiview.Row {
	if s == nil {
		return nil
	}
	if len(s.AnyOf) > 0 {
		return []apiview.Row{{Name: "(either)", Type: d.either(s.AnyOf, used), Help: s.Description}}
	}
	var out []apiview.Row
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		row := apiview.Row{Name: at + name, Type: d.words(p, used), Required: slices.Contains(s.Required, name), Help: p.Description}
		out = append(out, row)
		switch {
		case len(p.Properties) > 0:
			out = append(out, d.rows(row.Name+".", p, used)...)
		case p.Items != nil && len(p.Items.Properties) > 0:
			out = append(out, d.rows(row.Name+"[].", p.Items, used)...)
		}
	}
	return out
}
