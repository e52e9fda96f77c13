package clusters

import (
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestConfigFields(t *testing.T) {
	t.Parallel()
	got := configFields([]loom.FieldError{{Field: "config/web/peers/0", Message: "m"}, {Field: "configPatch", Message: "p"}, {Field: "name", Message: "n"}, {Field: "configuration/x", Message: "c"}}, nil)
	want := []loom.FieldError{{Field: "config", Message: "At web.peers[0]: m"}, {Field: "config", Message: "p"}, {Field: "name", Message: "n"}, {Field: "configuration/x", Message: "c"}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if text := problemWords(clusters.ConfigProblem{Pointer: "/a", Macro: "%x%", Reason: "no node has it."}); text != "a: “%x%” stays as written: no node has it." {
		t.Error(text)
	}
	if text := problemWords(clusters.ConfigProblem{Reason: "too large"}); text != "too large." {
		t.Error(text)
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
