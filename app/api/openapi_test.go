package api

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/testkit/golden"
)

// TestDocumentIsCurrent generates the OpenAPI document from the table of routes and from the
// types of the bodies.
func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	made, err := makeDocument((&api{}).routes())
	if err != nil {
		t.Fatal(err)
	}
	if *golden.Update {
		if err := os.WriteFile("openapi.json", made, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(made) != string(document) {
		t.Fatal("openapi.json is stale; run: go test ./app/api -run TestDocumentIsCurrent -update")
	}
}

// TestDocumentHoldsTogether looks for references into nowhere, schemas that
// nothing uses and ids that two operations share.
func TestDocumentHoldsTogether(t *testing.T) {
	t.Parallel()
	made, err := makeDocument((&api{}).routes())
	if err != nil {
		t.Fatal(err)
	}
	s := readSchemas(t)
	used := map[string]bool{}
	ids := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok {
					used[name] = true
					if s.all[name] == nil {
						t.Errorf("%s leads nowhere", ref)
					}
				}
			}
			if id, ok := v["operationId"].(string); ok {
				if ids[id] {
					t.Errorf("two operations have the id %s", id)
				}
				ids[id] = true
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(made, &doc); err != nil {
		t.Fatal(err)
	}
	walk(doc)
	for name := range s.all {
		if !used[name] {
			t.Errorf("nothing uses the schema %s", name)
		}
	}
	if len(ids) < 100 {
		t.Errorf("only %d operations", len(ids))
	}
}

// TestEveryFieldIsDocumented looks in the document for each member that an entry of the
// catalog can have.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	names := map[loom.EntityKind]string{loom.KindProvider: "Provider", loom.KindHardwareType: "HardwareType", loom.KindImageType: "ImageType", loom.KindService: "Service",
		loom.KindTemplate: "Template", loom.KindPartialTemplate: "PartialTemplate", loom.KindProviderType: "PluginType", loom.KindAutomatorType: "PluginType"}
	for _, kind := range loom.EntityKinds {
		body, err := json.Marshal(testkit.FullEntry(kind))
		if err != nil {
			t.Fatal(err)
		}
		var full map[string]any
		if err := json.Unmarshal(body, &full); err != nil {
			t.Fatal(err)
		}
		if parameters, ok := full["parameters"].(map[string]any); ok { // the groups have names
			full["parameters"] = map[string]any{"admin": parameters["key"], "user": parameters["key"]}
		}
		for _, member := range s.undescribed(string(kind), s.all[names[kind]], full) {
			t.Errorf("%s is not in the document", member)
		}
	}
}

// undescribed lists the members of a value, at any depth, that a schema does not have.
func (s *schemas) undescribed(at string, schema map[string]any, v any) []string {
	if ref, ok := schema["$ref"].(string); ok {
		schema = s.all[strings.TrimPrefix(ref, "#/components/schemas/")]
	}
	var out []string
	switch v := v.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range v {
			out = append(out, s.undescribed(at+"[]", items, item)...)
		}
	case map[string]any:
		if schema["properties"] == nil && schema["additionalProperties"] == nil {
			return nil // free
		}
		for name, member := range v {
			properties, _ := schema["properties"].(map[string]any)
			of, ok := properties[name].(map[string]any)
			if !ok {
				of, ok = schema["additionalProperties"].(map[string]any)
			}
			if !ok {
				out = append(out, at+"."+name)
				continue
			}
			out = append(out, s.undescribed(at+"."+name, of, member)...)
		}
	}
	return out
}

// TestEveryRouteHasAChapter keeps the readable page complete.
func TestEveryRouteHasAChapter(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, rt := range (&api{}).routes() {
		name := tagOf(rt.path)
		if name == "" {
			t.Errorf("%s %s belongs to no chapter; see tags.go", rt.method, rt.path)
		}
		used[name] = true
		for _, m := range placeholder.FindAllStringSubmatch(rt.path, -1) {
			if placeHelp(rt.path, m[1]) == "" {
				t.Errorf("%s: nothing says what {%s} stands for; see placeHelps in tags.go", rt.path, m[1])
			}
		}
	}
	for _, c := range tags {
		if !used[c.name] {
			t.Errorf("the chapter %s is empty", c.name)
		}
	}
}

func TestServedDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	served := w.send(get, "/v2/openapi.json", "").want(200)
	doc := served.object()
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi is %v", doc["openapi"])
	}
	paths := doc["paths"].(map[string]any)
	for _, rt := range w.api.routes() {
		item, _ := paths[rt.path].(map[string]any)
		if item[strings.ToLower(rt.method)] == nil {
			t.Errorf("%s %s is not in the document", rt.method, rt.path)
		}
	}
	w.send(get, "/v2/openapi.json", "", "If-None-Match", served.header.Get("ETag")).want(304)
}

// schemas are those of the document, with as much of JSON Schema as they use.
type schemas struct{ all map[string]map[string]any }

func readSchemas(t *testing.T) *schemas {
	t.Helper()
	var s schemas
	var d struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatal(err)
	}
	s.all = d.Components.Schemas
	return &s
}

// check fails the test where a body does not fit a schema.
func (s *schemas) check(t *testing.T, schema map[string]any, body string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Errorf("not JSON: %v in %s", err, body)
		return
	}
	for _, problem := range s.problems("", schema, v) {
		t.Errorf("the answer is not what the document says: %s in %.600s", problem, body)
	}
}

func (s *schemas) problems(at string, schema map[string]any, v any) []string {
	if ref, ok := schema["$ref"].(string); ok {
		return s.problems(at, s.all[strings.TrimPrefix(ref, "#/components/schemas/")], v)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		var all []string
		for _, choice := range choices {
			found := s.problems(at, choice.(map[string]any), v)
			if len(found) == 0 {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	if want := schema["type"]; want != nil && !hasType(want, v) {
		return []string{fmt.Sprintf("%s is %T, not %v", at, v, want)}
	}
	if allowed, ok := schema["enum"].([]any); ok && !slices.Contains(allowed, v) {
		return []string{fmt.Sprintf("%s is %v, none of %v", at, v, allowed)}
	}
	var out []string
	switch v := v.(type) {
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for i, item := range v {
				out = append(out, s.problems(fmt.Sprintf("%s[%d]", at, i), items, item)...)
			}
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		if required, ok := schema["required"].([]any); ok {
			for _, name := range required {
				if _, there := v[name.(string)]; !there {
					out = append(out, fmt.Sprintf("%s lacks %s", at, name))
				}
			}
		}
		for name, member := range v {
			if p, ok := properties[name].(map[string]any); ok {
				out = append(out, s.problems(at+"."+name, p, member)...)
				continue
			}
			switch extra := schema["additionalProperties"].(type) {
			case bool:
				if !extra {
					out = append(out, fmt.Sprintf("%s.%s is not described", at, name))
				}
			case map[string]any:
				out = append(out, s.problems(at+"."+name, extra, member)...)
			}
		}
	}
	return out
}

func hasType(want, v any) bool {
	if several, ok := want.([]any); ok {
		return slices.ContainsFunc(several, func(one any) bool { return hasType(one, v) })
	}
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == float64(int64(v))
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}
