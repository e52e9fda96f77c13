package web

import (
	"testing"

	"loom/app/lifecycle"
	"loom/app/loom"
)

func TestPlaceWords(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"":                   "",
		"/defaults/services": "defaults, services",
		"/provisioner/actions/start/fields/script":  "start action",
		"/provisioner/actions/start/fields":         "start action",
		"/provisioner/actions/fields/type":          "fields action, type",
		"/provisioner":                              "",
		"/provisioner/api_zone":                     "",
		"/dependencies":                             "",
		"/dependencies/install/requires/0":          "install requires 1",
		"/dependencies/conflicts/2":                 "conflicts 3",
		"/constraints/layout/cantcoexist/0":         "constraints, never same node 1",
		"/constraints/size/min":                     "constraints, size, minimum",
		"/administration/onFailure":                 "on failure",
		"/includes/0/name":                          "include 1",
		"/extends/name":                             "extends",
		"/providertype":                             "type",
		"/links/0/url":                              "link 1, address",
		"/defaults/config/web/peers/0":              "defaults, config, web.peers[0]",
		"/defaults/config":                          "defaults, config",
		"/defaultConfig/web/fields/provisioner/x":   "default config, web.fields.provisioner.x",
		"/defaultConfig":                            "default config",
		"/providermap/lab/flavor":                   "mapping, lab, flavor",
		"/constraints/services/a~1b/hardwaretypes/": "constraints, services, a/b, hardware types, ",
	} {
		if got := placeWords(pointer); got != want {
			t.Errorf("%s is %q, want %q", pointer, got, want)
		}
	}
}

// A finding that has no place in words stands without brackets.
func TestSentence(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{"": "It is so.", "/provisioner": "It is so.", "/provisioner/actions/start/fields/x": "It is so. (Start action)"} {
		if got := sentence(loom.Finding{Field: field, Message: "It is so."}); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
}

func TestConfigFields(t *testing.T) {
	t.Parallel()
	got := configFields([]loom.FieldError{{Field: "config/web/peers/0", Message: "m"}, {Field: "configPatch", Message: "p"}, {Field: "name", Message: "n"}, {Field: "configuration/x", Message: "c"}})
	want := []loom.FieldError{{Field: "config", Message: "At web.peers[0]: m"}, {Field: "config", Message: "p"}, {Field: "name", Message: "n"}, {Field: "configuration/x", Message: "c"}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if text := problemWords(lifecycle.ConfigProblem{Pointer: "/a", Macro: "%x%", Reason: "no node has it."}); text != "a: “%x%” stays as written: no node has it." {
		t.Error(text)
	}
	if text := problemWords(lifecycle.ConfigProblem{Reason: "too large"}); text != "too large." {
		t.Error(text)
	}
}

// TestConfigValue writes values so that none can be taken for another.
func TestConfigValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  string
		lines int
	}{
		{"plain", "plain", 0}, {"80", `"80"`, 0}, {80.0, "80", 0}, {1e7, "10000000", 0}, {true, "true", 0}, {"true", `"true"`, 0}, {nil, "null", 0}, {"", `""`, 0}, {" x", `" x"`, 0},
		{[]any{"a", 1.0}, `["a",1]`, 0}, {map[string]any{}, "{}", 0}, {"<a> & b", "<a> & b", 0}, {"one\ntwo\n", "one\ntwo\n…", 2},
	} {
		text, lines := configValue(c.value)
		if text != c.want || len(lines) != c.lines {
			t.Errorf("%#v is %q with %d lines, want %q with %d", c.value, text, len(lines), c.want, c.lines)
		}
	}
}

// TestConfigChanges compares values with their kinds, and what came or went as a whole by
// its parts.
func TestConfigChanges(t *testing.T) {
	t.Parallel()
	from := map[string]any{"same": 1.0, "kind": "80", "gone": map[string]any{"a": 1.0, "b": map[string]any{"c": "x"}}, "shape": map[string]any{"a": 1.0}, "empty": map[string]any{}}
	to := map[string]any{"same": 1.0, "kind": 80.0, "new": map[string]any{"a.b": true}, "shape": "text", "void": map[string]any{}}
	want := []string{"remove empty {}>", "remove gone.a 1>", "remove gone.b.c x>", `change kind "80">80`, `create new."a.b" >true`, `change shape {"a":1}>text`, "create void >{}"}
	got := newConfigDiffs("", configLines).of(from, to).Rows
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, c := range got {
		if line := string(c.Sign) + " " + c.Name + " " + c.Old + ">" + c.New; line != want[i] {
			t.Errorf("line %d is %q, want %q", i, line, want[i])
		}
	}
	if more := newConfigDiffs("", configLines).of(nil, manyKeys(configLines+7)); len(more.Rows) != configLines || more.More != 7 {
		t.Errorf("%d lines and %d more", len(more.Rows), more.More)
	}
	if d := newConfigDiffs("", configLines).of(from, from); len(d.Rows) > 0 {
		t.Errorf("the same differs: %+v", d.Rows)
	}
}

func manyKeys(n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[string(rune('a'+i%26))+string(rune('a'+i/26))] = i
	}
	return m
}
