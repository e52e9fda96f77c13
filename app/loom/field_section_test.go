package loom

import (
	"slices"
	"strings"
	"testing"
)

func placed(group, method string, order int) FieldSchema {
	return FieldSchema{Label: "L", Type: "text", Group: group, Method: method, Order: order}
}

// sectioned is a group whose credentials are a key or a role, and whose second section has no order.
func sectioned() FieldGroup {
	role := placed("Credentials", "Role", 4)
	role.Type = "checkbox"
	return FieldGroup{Fields: map[string]FieldSchema{
		"url": placed("Credentials", "", 1), "id": placed("Credentials", "Key", 2), "secret": placed("Credentials", "Key", 3), "role": role,
		"deep": placed(SectionAdvanced, "", 2), "zone": placed("", "", 0), "area": placed("", "", 0), "size": placed("Machines", "", 9),
	}, Required: [][]string{{"url", "id", "secret", "zone"}, {"url", "role", "zone"}}}
}

// TestSections: fields stand where they say, those that say nothing come after them as ever,
// and what is advanced comes last.
func TestSections(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range sectioned().Sections() {
		got = append(got, s.Title+": "+strings.Join(s.Names, " ")+" ("+strings.Join(s.Methods, ", ")+")")
	}
	want := []string{"Credentials: url id secret role (Key, Role)", "Machines: size ()", "Settings: zone area ()", "Advanced: deep ()"}
	if !slices.Equal(got, want) {
		t.Errorf("sections %q, want %q", got, want)
	}
}

// TestMethodInUse: the last complete method counts, as plugins do it, else the one with more
// values, else that of the first required set.
func TestMethodInUse(t *testing.T) {
	t.Parallel()
	g := sectioned()
	credentials := g.Sections()[0]
	for given, want := range map[string]string{"": "Key", "id": "Key", "role": "Role", "id role": "Role", "id secret role": "Role", "url zone": "Key"} {
		set := strings.Fields(given)
		if got := g.MethodOf(credentials, func(name string) bool { return slices.Contains(set, name) }); got != want {
			t.Errorf("with %q the method is %q, want %q", given, got, want)
		}
	}
	if got := g.MethodOf(g.Sections()[1], func(string) bool { return true }); got != "" {
		t.Errorf("a section without methods has %q", got)
	}
	if sets := g.Fitting(map[string]string{"Credentials": "Role"}); len(sets) != 1 || !slices.Contains(sets[0], "role") {
		t.Errorf("with the role fit %v", sets)
	}
}

// TestSwitchesAreMissing: a switch that is off is none of a required set.
func TestSwitchesAreMissing(t *testing.T) {
	t.Parallel()
	g := sectioned()
	for value, missing := range map[any]int{false: 2, "false": 2, "": 2, true: 0, "on": 0} {
		if got := g.Missing(map[string]any{"url": "u", "zone": "z", "role": value}); len(got) != missing {
			t.Errorf("with role %v, %d sets lack something, want %d", value, len(got), missing)
		}
	}
}

// TestPlacesAreChecked: titles are short and plain, orders in their range, methods few.
func TestPlacesAreChecked(t *testing.T) {
	t.Parallel()
	many := map[string]FieldSchema{}
	for _, name := range strings.Split("abcdefg", "") {
		many[name] = placed("G", "way "+name, 1)
	}
	for name, fields := range map[string]map[string]FieldSchema{
		"group": {"f": placed(strings.Repeat("x", 61), "", 1)}, "method": {"f": placed("G", " m", 1)}, "order": {"f": placed("G", "", MaxFieldOrder+1)}, "fields": many,
	} {
		made := PluginType{Base: Base{Name: "t"}, Parameters: map[string]FieldGroup{"admin": {Fields: fields}}}
		errs := made.Validate()
		if len(errs) != 1 || !strings.HasSuffix(errs[0].Field, name) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// TestUnverified: a switch that is on by default and that credentials are sent by is a check.
func TestUnverified(t *testing.T) {
	t.Parallel()
	made := PluginType{Parameters: map[string]FieldGroup{"admin": {Fields: map[string]FieldSchema{
		"secret": {Type: "password", BoundTo: []string{"url", "verify", "lax"}}, "token": {Type: "password", BoundTo: []string{"verify"}},
		"url": {Type: "text"}, "verify": {Type: "checkbox", Default: true}, "lax": {Type: "checkbox", Default: false}, "other": {Type: "checkbox", Default: true}}}}}
	for value, want := range map[any]int{nil: 0, "": 0, true: 0, "true": 0, false: 1, "false": 1} {
		if got := made.Unverified(map[string]any{"verify": value, "other": false}); len(got) != want {
			t.Errorf("%v: %v", value, got)
		}
	}
}
