package loom

import (
	"encoding/json"
	"strings"
	"testing"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestMergePatch has the cases of RFC 7386, appendix A, that are about objects.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ object, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":"text"}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{"n":12345678901234567890}`, `{"m":1.0}`, `{"m":1.0,"n":12345678901234567890}`},
	} {
		before, patch := object(t, test.object), object(t, test.patch)
		if got := JSONText(MergePatch(before, patch)); got != test.want {
			t.Errorf("%s with %s: %s, want %s", test.object, test.patch, got, test.want)
		}
		if JSONText(before) != test.object || JSONText(patch) != test.patch {
			t.Errorf("%s with %s: they were changed to %s and %s", test.object, test.patch, JSONText(before), JSONText(patch))
		}
	}
}

func TestDiffPatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, want string }{
		{`{"a":1,"b":{"c":2,"d":[1,2]}}`, `{"a":1,"b":{"c":2,"d":[1,2]}}`, `{}`},
		{`{"a":1}`, `{"b":{}}`, `{"a":null,"b":{}}`},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"x":1,"z":3}}`, `{"a":{"y":null,"z":3}}`},
		{`{"a":{"x":1}}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"a":1}`, `{"a":1.0}`, `{"a":1.0}`},
		{`{"a":"<b>"}`, `{"a":"<i>"}`, `{"a":"<i>"}`},
	} {
		from, to := object(t, test.from), object(t, test.to)
		patch := DiffPatch(from, to)
		if got := JSONText(patch); got != test.want {
			t.Errorf("%s to %s: %s, want %s", test.from, test.to, got, test.want)
		}
		if got := JSONText(MergePatch(from, patch)); got != test.to {
			t.Errorf("%s to %s leads to %s", test.from, test.to, got)
		}
	}
}
