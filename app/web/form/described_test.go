package form_test

import (
	"net/url"
	"reflect"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web/form"
)

// TestDescribedControls has a field of each type: untouched it stays, typed it changes, and
// emptied it goes.
func TestDescribedControls(t *testing.T) {
	t.Parallel()
	describe := func(name string, of any, enum ...string) form.Part {
		return form.Described(loom.Description{Path: []string{name}, Label: name, Type: reflect.TypeOf(of), Enum: enum})
	}
	f := of(describe("text", ""), describe("one", "", "a", "b"), describe("yes", false), describe("number", 1), describe("maybe", new(int)), describe("names", []string{}),
		describe("map", map[string]any{}))
	const before = `{"text": "x", "one": "zz", "yes": true, "number": 3, "maybe": 4, "names": ["n1", "n2"], "map": {"k": 1}}`
	doc := parse(t, before)
	values := testkit.FormValues(t, page(t, f, doc, nil, form.Result{}), "")
	f.Read(doc, values)
	same(t, doc.String(), before)
	values.Del("yes")
	for name, value := range map[string]string{"text": "y", "one": "a", "number": "7", "maybe": "8", "names": "n1", "names+": "n3, n4", "map": `{"k": 2}`} {
		values.Set(name, value)
	}
	f.Read(doc, values)
	same(t, doc.String(), `{"text": "y", "one": "a", "yes": false, "number": 7, "maybe": 8, "names": ["n1", "n3", "n4"], "map": {"k": 2}}`)
	f.Read(doc, url.Values{"text": {""}, "one": {""}, "number": {""}, "maybe": {""}})
	same(t, doc.String(), `{"yes": false, "names": ["n1", "n3", "n4"], "map": {"k": 2}}`)
}
