package catalog

import (
	"encoding/json"
	"reflect"
	"testing"

	"loom/app/lenient"
	"loom/app/loom"
	"loom/app/testkit"
)

// TestEveryFieldIsDecoded reads an entry of each kind in which every field is set: a field
// that the decoder drops, or changes, is missing from what comes out.
func TestEveryFieldIsDecoded(t *testing.T) {
	t.Parallel()
	for _, kind := range loom.EntityKinds {
		full := testkit.FullEntry(kind)
		body, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		o, err := lenient.Read(body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeObject(kind, o)
		if err != nil || o.Err() != nil {
			t.Fatalf("%s: %v, %v", kind, err, o.Errors())
		}
		if service, ok := full.(*loom.Service); ok {
			service.Dependencies.Runtime.Scope = "" // the phase of installing alone has one
		}
		want, _ := json.MarshalIndent(full, "", " ")
		if have, _ := json.MarshalIndent(got, "", " "); string(have) != string(want) {
			t.Errorf("%s: the document\n%s\nis read as\n%s", kind, want, have)
		}
		// What is stored comes back as it is.
		if stored, err := loom.ReadEntry(kind, want); err != nil {
			t.Error(err)
		} else if back, _ := json.MarshalIndent(stored, "", " "); string(back) != string(want) {
			t.Errorf("%s: %s\nis stored as\n%s", kind, want, back)
		}
	}
}

// Every mistake of a document is named once, in the order of the fields.
func TestDecodeErrorsComeOnce(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"name": {}, "version": "new", "includes": 5, "extends": 4}`:                                    {"name", "version", "extends", "includes"},
		`{"name": "x", "includes": [null, {"name": "a"}, 7, {}], "extends": {}}`:                         {"includes[2]", "extends.name", "includes[3].name"},
		`{"name": "x", "constraints": {"size": {"min": "a", "max": 0}, "layout": {"mustcoexist": [4]}}}`: {"constraints.layout.mustcoexist[0]", "constraints.size.min", "constraints.size.max"},
	} {
		_, err := Decode(loom.KindTemplate, []byte(body))
		var got []string
		for _, e := range loom.AsError(err).Fields {
			got = append(got, e.Field)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: errors of %v, want %v", body, got, want)
		}
	}
}
