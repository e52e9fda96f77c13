package clusters

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestUsersDoNotMoveCredentials: a field that decides where sealed values of the provider
// are sent cannot be given for a cluster, whatever the type lets users set. What changes
// nothing may be given, and so may any address where nothing of it is sealed.
func TestUsersDoNotMoveCredentials(t *testing.T) {
	t.Parallel()
	kind := loom.PluginType{Parameters: map[string]loom.FieldGroup{
		"admin": {Fields: map[string]loom.FieldSchema{
			"key": {Label: "Key", Type: "password", Override: true, BoundTo: []string{"url", "zone", "old_url", "verify"}}, "passphrase": {Label: "P", Type: "password"},
			"url": {Label: "URL", Type: "text", Override: true}, "verify": {Label: "V", Type: "checkbox", Default: true}, "region": {Label: "R", Type: "text", Override: true}}},
		"user": {Fields: map[string]loom.FieldSchema{"zone": {Label: "Zone", Type: "text"}}},
	}}
	sealed := loom.Provider{Fields: map[string]any{"url": "https://a"}, Sealed: []string{"key", "passphrase"}}
	plain := loom.Provider{Fields: map[string]any{"url": "https://a"}, Sealed: []string{"passphrase"}}
	for _, c := range []struct {
		name       string
		provider   loom.Provider
		given      map[string]any
		open, errs []string
	}{
		{"an address", sealed, map[string]any{"url": "https://b", "region": "r"}, []string{"region"}, []string{"url"}},
		{"with a key of one's own", sealed, map[string]any{"url": "https://b", "key": "mine"}, nil, []string{"url"}},
		{"a field of users, one that only administrators set, one that is not declared", sealed, map[string]any{"zone": "z", "verify": false, "old_url": "x"}, nil, []string{"old_url", "verify", "zone"}},
		{"the same and the default", sealed, map[string]any{"url": " https://a", "verify": true}, nil, nil},
		{"nothing sent is sealed", plain, map[string]any{"url": "https://b", "zone": "z"}, []string{"url", "zone"}, nil},
	} {
		got := takeFields(kind, c.provider, nil, c.given)
		var errs []string
		for _, e := range got.errs {
			errs = append(errs, strings.TrimPrefix(e.Field, "providerFields."))
		}
		if open := slices.Sorted(maps.Keys(got.open)); !slices.Equal(open, c.open) || !slices.Equal(errs, c.errs) {
			t.Errorf("%s: took %v, refused %v", c.name, open, got.errs)
		}
	}
	if fields := settableFields(kind, sealed); len(fields) != 2 || fields["region"].Label == "" || fields["key"].Label == "" {
		t.Errorf("offered are %v", fields)
	}
}

func TestTakeFields(t *testing.T) {
	t.Parallel()
	low, high := 1.0, 9.0
	kind := loom.PluginType{Parameters: map[string]loom.FieldGroup{
		"admin": {
			Fields: map[string]loom.FieldSchema{
				"key": {Label: "Key", Type: "password", Override: true}, "url": {Label: "URL", Type: "text"}, "region": {Label: "Region", Type: "text", Override: true},
			},
			Required: [][]string{{"key", "url"}},
		},
		"user": {
			Fields: map[string]loom.FieldSchema{
				"user": {Label: "User", Type: "text"}, "pass": {Label: "Password", Type: "password"}, "zone": {Label: "Zone", Type: "select", Options: []string{"a"}},
				"n": {Label: "N", Type: "number", Min: &low, Max: &high}, "on": {Label: "On", Type: "checkbox"}, "p": {Label: "P", Type: "text", Pattern: "[a-z]+"},
			},
			Required: [][]string{{"user", "pass"}, {"region"}},
		},
	}}
	complete := loom.Provider{Base: loom.Base{Name: "x"}, Fields: map[string]any{"url": "u"}, Sealed: []string{"key"}}
	for _, c := range []struct {
		name             string
		provider         loom.Provider
		stored           []string
		given            map[string]any
		open, sealed     []string
		missing, errs    int
		lacksAdminFields bool
	}{
		{"nothing", complete, nil, nil, nil, nil, 2, 0, false},
		{"one set is enough", complete, nil, map[string]any{"user": "u", "pass": "p"}, []string{"user"}, []string{"pass"}, 0, 0, false},
		{"the other set", complete, nil, map[string]any{"region": "r"}, []string{"region"}, nil, 0, 0, false},
		{"half a set", complete, nil, map[string]any{"user": "u"}, []string{"user"}, nil, 2, 0, false},
		{"empty is absent", complete, nil, map[string]any{"user": "", "pass": nil}, nil, nil, 2, 0, false},
		{"stored secrets count", complete, []string{"pass"}, map[string]any{"user": "u"}, []string{"user"}, nil, 0, 0, false},
		{"given secrets replace stored ones", complete, []string{"pass"}, map[string]any{"user": "u", "key": "k"}, []string{"user"}, []string{"key"}, 2, 0, false},
		{"provider's own fields count, empty ones too",
			loom.Provider{Fields: map[string]any{"url": "u", "region": ""}, Sealed: []string{"key"}}, nil, nil, nil, nil, 0, 0, false},
		{"unknown and fixed fields are ignored", complete, nil, map[string]any{"what": 1, "url": "mine", "region": "r"}, []string{"region"}, nil, 0, 0, false},
		{"what the provider fixes is ignored", loom.Provider{Fields: map[string]any{"url": "u", "region": "r"}, Sealed: []string{"key"}, Fixed: []string{"region", "key"}}, nil,
			map[string]any{"region": "mine", "key": "k", "n": 3}, []string{"n"}, nil, 0, 0, false},
		{"override of a sensitive admin field", complete, nil, map[string]any{"key": "k", "region": "r"}, []string{"region"}, []string{"key"}, 0, 0, false},
		{"incomplete provider", loom.Provider{Fields: map[string]any{"url": "", "region": "r"}, Sealed: []string{"key"}}, nil, nil, nil, nil, 0, 0, true},
		{"override completes it", loom.Provider{Fields: map[string]any{"url": "u", "region": "r"}}, nil, map[string]any{"key": "k"}, nil, []string{"key"}, 0, 0, false},
		{"bad values", complete, nil, map[string]any{"region": "r", "zone": "b", "n": "ten", "on": "maybe", "p": "A"}, []string{"region"}, nil, 0, 4, false},
		{"bounds", complete, nil, map[string]any{"region": "r", "n": 10}, []string{"region"}, nil, 0, 1, false},
		{"passwords in addresses", complete, nil, map[string]any{"region": "https://u:p@host", "user": "u", "pass": "https://u:p@host"}, []string{"user"}, []string{"pass"}, 0, 1, false},
		{"good values", complete, nil, map[string]any{"region": "r", "zone": "a", "n": "9", "on": true, "p": "abc"}, []string{"n", "on", "p", "region", "zone"}, nil, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := takeFields(kind, c.provider, c.stored, c.given)
			if open := slices.Sorted(maps.Keys(got.open)); !slices.Equal(open, c.open) {
				t.Errorf("open %v, want %v", open, c.open)
			}
			if sealed := slices.Sorted(maps.Keys(got.sealed)); !slices.Equal(sealed, c.sealed) {
				t.Errorf("sealed %v, want %v", sealed, c.sealed)
			}
			if len(got.missing) != c.missing || len(got.errs) != c.errs || (got.incomplete != "") != c.lacksAdminFields {
				t.Errorf("missing %v, errors %v, incomplete %q", got.missing, got.errs, got.incomplete)
			}
		})
	}
}

// What a form starts with is what the provider says; what it fixes is shown, and not
// asked for.
func TestSettableFields(t *testing.T) {
	t.Parallel()
	kind := loom.PluginType{Parameters: map[string]loom.FieldGroup{
		"admin": {Fields: map[string]loom.FieldSchema{
			"zone": {Label: "Zone", Type: "text", Default: "a", Override: true}, "disk": {Type: "text", Default: "10", Override: true},
			"key": {Label: "Key", Type: "password", Override: true}, "plan": {Label: "Plan", Type: "text"}, "size": {Label: "Size", Type: "text", Override: true},
		}},
		"user": {Fields: map[string]loom.FieldSchema{"user": {Label: "User", Type: "text"}}},
	}}
	p := loom.Provider{Fields: map[string]any{"zone": "b", "disk": "", "key": "planted"}, Fixed: []string{"zone", "plan", "key", "size", "other"}}
	if got := settableFields(kind, loom.Provider{Fields: p.Fields}); len(got) != 5 || got["zone"].Default != "b" || got["disk"].Default != "10" || got["key"].Default != nil {
		t.Errorf("users may set %+v", got)
	}
	if got := slices.Sorted(maps.Keys(settableFields(kind, p))); !slices.Equal(got, []string{"disk", "user"}) {
		t.Errorf("with fixed ones users may set %v", got)
	}
	if kind.Parameters["admin"].Fields["zone"].Default != "a" {
		t.Error("the type was changed")
	}
	want := []FixedField{{Name: "key", Label: "Key"}, {Name: "size", Label: "Size"}, {Name: "zone", Label: "Zone", Value: "b"}}
	if got := fixedFields(kind, p); !reflect.DeepEqual(got, want) {
		t.Errorf("fixed are %+v", got)
	}
}
