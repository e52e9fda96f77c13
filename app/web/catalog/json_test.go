package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for draft, want := range map[string]string{
		`{"api_token": "x", "region": "north"}`: `{"api_token": "", "region": "north"}`,
		"{\"api_token\" :\n \"a\\\"b\"}":        "{\"api_token\" :\n \"\"}",
		`{"api_token": 12345, "n": 7}`:          `{"api_token": "", "n": 7}`,
		"{\"api_token\": \"open\n}":             "{\"api_token\": \"\"\n}",
		`{"api_token": ""}`:                     `{"api_token": ""}`,
		`not JSON at all`:                       `not JSON at all`,
	} {
		got, emptied := withoutSecrets(draft, loom.LooksSecret)
		if got != want {
			t.Errorf("%s became %s, want %s", draft, got, want)
		}
		if (got != draft) != (len(emptied) == 1) {
			t.Errorf("%s: emptied are %v", draft, emptied)
		}
	}
}

// Whatever is typed: places never fail, and lie within the text.
func FuzzPlaces(f *testing.F) {
	f.Add(`{"a": [1, {"b": null}], "c.d": {}}`)
	f.Add(`{"a": oops`)
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		for i, offset := range loom.JSONPlaces([]byte(body), []string{"", "a", "a[1].b", "c.d", body}) {
			if offset < 0 || offset > len(body) {
				t.Errorf("path %d is at %d of %d", i, offset, len(body))
			}
			if line, column := loom.TextPosition([]byte(body), offset); line < 1 || column < 1 {
				t.Errorf("path %d is at line %d, column %d", i, line, column)
			}
		}
	})
}

func TestProblemsHavePlaces(t *testing.T) {
	t.Parallel()
	body := "{\n  \"a\": {\n    \"ü\": 1, \"list\": [1,\n 2]\n  }\n}"
	for path, want := range map[string][2]int{
		"a": {2, 8}, "a.ü": {3, 10}, "a.list[1]": {4, 2}, "a.list[7]": {3, 21}, "a.gone.deeper": {2, 8}, "elsewhere": {1, 1},
	} {
		got := problems(body, &loom.Error{Fields: []loom.FieldError{{Field: path, Message: "m"}}})[0]
		if got.Line != want[0] || got.Column != want[1] {
			t.Errorf("%s is at %d:%d, want %v", path, got.Line, got.Column, want)
		}
	}
}

func TestTemplateRules(t *testing.T) {
	t.Parallel()
	var template loom.Template
	err := json.Unmarshal([]byte(`{"constraints": {"size": {"min": 3, "max": 3}, "layout": {"mustcoexist": [["a", "b"]], "cantcoexist": [["a", "b", "c"], ["d"], []]},
		"services": {"a": {"quantities": {"min": 0, "max": 2}}, "b": {"quantities": {}}, "c": {"quantities": {"min": 2, "max": 4}, "hardwaretypes": ["x", "y"]},
		"d": {"quantities": {"min": 0}}, "e": {"quantities": {"min": 0, "max": 0}}}},
		"administration": {"leaseduration": {"initial": 86400000, "max": 172800000, "step": 3600000}}}`), &template)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"A cluster has exactly 3 nodes.", "a is on at most 2 nodes.", "b is on at least 1 node.", "c is on 2–4 nodes.", "c needs the hardware type x or y.",
		"d is on any number of nodes, also on none.", "e is on no node.",
		"Where one of a and b is, the others of them are too.", "a, b and c are never all on the same node.", "d may be on no node.", "Any service of the catalog may be added.",
		"Clusters expire after 1 day.", "A lease is at most 2 days.", "One change extends it by at most 1 hour.",
	}
	if got := templateRules(template); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestSkeletonsNeedANameOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range loom.TenantKinds {
		_, err := readDraft(kind, loom.Skeleton(kind))
		fields := loom.AsError(err).Fields
		if len(fields) != 1 || fields[0].Field != "name" {
			t.Errorf("the skeleton of a %s: %v", kind.Word(), err)
		}
		if _, err := readDraft(kind, strings.Replace(loom.Skeleton(kind), `"name": ""`, `"name": "x"`, 1)); err != nil {
			t.Errorf("the skeleton of a %s with a name: %v", kind.Word(), err)
		}
	}
}
