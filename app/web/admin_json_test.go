package web

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"loom/app/catalog"
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

func TestDifferences(t *testing.T) {
	t.Parallel()
	from := parseTree([]byte(`{"same": [1, {"x": 2}], "gone": true, "old": "a", "list": [1, 2], "big": "` + strings.Repeat("x", 200) + `1"}`))
	to := parseTree([]byte(`{"same": [1, {"x": 2}], "new": {}, "old": "b", "list": [1], "big": "` + strings.Repeat("x", 200) + `2"}`))
	var got []string
	for _, c := range changesOf(catalog.Differences(from, to)) {
		got = append(got, string(c.Sign)+" "+c.Name)
	}
	want := []string{"change big", "remove gone", "remove list[1]", "create new", "change old"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if d := changesOf(catalog.Differences(from, from)); len(d) > 0 {
		t.Errorf("a document differs from itself: %v", d)
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
		"A cluster has 3 nodes.", "a is on at most 2 nodes.", "b is on at least 1 node.", "c is on 2 to 4 nodes.", "c needs the hardware type x or y.",
		"d is on any number of nodes, also on none.", "e is on no node.",
		"Where one of a and b is, the others of them are too.", "a, b and c are never all on the same node.", "d may be on no node.", "Any service of the catalog may be added.",
		"A cluster is leased for 1 day at first.", "It lives at most 2 days.", "The lease grows by at most 1 hour at a time.",
	}
	if got := templateRules(template); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestBrowserNames(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                         "Firefox on Linux",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605": "Safari on macOS",
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0":      "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36":       "Chrome on Android",
		"robot/1.0 something": "robot/1.0", "": "Unknown browser",
	} {
		if got := browser(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
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
