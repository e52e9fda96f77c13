package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestManifestOfTheSpecification reads the protocol's example.
func TestManifestOfTheSpecification(t *testing.T) {
	t.Parallel()
	m, warnings, err := DecodeManifest([]byte(`{
  "protocol": [1], "name": "acme", "version": "1.4.0", "description": "Acme bare metal", "homepage": "https://acme.example/loom",
  "command": ["./acme-plugin"],
  "types": {"acme-metal": {"kind": "provider", "actions": ["create", "confirm", "delete"], "confirm": "cloud",
      "parameters": {"admin": {"fields": {
            "api_token": {"label": "API token", "type": "password", "boundTo": ["api_url"]},
            "site": {"label": "Site", "type": "select", "options": ["fra", "ams"], "default": "fra", "override": true},
            "ssh_key_resource": {"label": "SSH key", "type": "resource", "resourceType": "ssh_keys"}},
          "required": [["api_token", "site", "ssh_key_resource"]]}},
      "resourceTypes": {"ssh_keys": {"format": "file", "permissions": "0400"}}}},
  "timeouts": {"create": 300, "confirm": 2400}, "env": ["ACME_PROXY"], "result": "message",
  "limits": {"memory_mb": 512, "open_files": 1024}, "colour": "blue"}`))
	if err != nil {
		t.Fatal(err)
	}
	metal := m.Types["acme-metal"]
	if m.Name != "acme" || m.Timeouts["confirm"] != 2400 || m.MemoryMB != 512 || m.ExitCode || !metal.CloudConfirm || metal.Kind != KindProvider {
		t.Errorf("%+v", m)
	}
	admin := metal.Describes.Parameters["admin"]
	if f := admin.Fields["api_token"]; !f.Sensitive || !slices.Equal(f.BoundTo, []string{"api_url"}) || admin.Fields["site"].Default != "fra" || len(admin.Required) != 1 || metal.Describes.Description != "Acme bare metal" {
		t.Errorf("%+v", metal.Describes)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "“colour”") {
		t.Errorf("warnings: %q", warnings)
	}
}

// TestManifestRefused: what is wrong is named with the field.
func TestManifestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, manifest string
		field, says    string
	}{
		{"no JSON", `{"name": "a"`, "", "no JSON"},
		{"a slip", "{\n\"name\": x}", "", "line 2"},
		{"a list", `[]`, "", "no JSON object but a list"},
		{"two objects", `{} {}`, "", "something follows"},
		{"name", `{"name":"Acme!"}`, "name", "small letters"},
		{"no command", `{}`, "command", "what to run"},
		{"command", `{"command":"./x"}`, "command", "takes a list, not a text"},
		{"protocol", `{"protocol":[2]}`, "protocol", "speaks version 1"},
		{"protocol text", `{"protocol":["one"]}`, "protocol[0]", "number of a version"},
		{"protocol revision", `{"protocol":[1.1, "1.x"]}`, "protocol[1]", "1 or 1.1"},
		{"protocol of a newer Loom", `{"protocol":[2.1]}`, "protocol", "speaks version 1"},
		{"no types", `{"types":{}}`, "types", "at least one"},
		{"kind", `{"types":{"x":{"kind":"cloud"}}}`, "types.x.kind", "“cloud”"},
		{"type name", `{"types":{"X y":{"kind":"provider"}}}`, "types.X y", "small letters"},
		{"type is text", `{"types":{"x":"provider"}}`, "types.x", "takes an object, not a text"},
		{"actions", `{"types":{"x":{"kind":"automator","actions":["create"]}}}`, "types.x.actions[0]", "no action of automators"},
		{"provider without delete", `{"types":{"x":{"kind":"provider","actions":["create","confirm"]}}}`, "types.x.actions", "has all of"},
		{"confirm", `{"types":{"x":{"kind":"provider","confirm":"half"}}}`, "types.x.confirm", "“half”"},
		{"confirm of an automator", `{"types":{"x":{"kind":"automator","confirm":"cloud"}}}`, "types.x.confirm", "providers only"},
		{"field without label", `{"types":{"x":{"kind":"provider","parameters":{"admin":{"fields":{"a":{"type":"text"}}}}}}}`, "types.x.parameters.admin.fields.a.label", "needs a label"},
		{"pattern", `{"types":{"x":{"kind":"provider","parameters":{"admin":{"fields":{"a":{"label":"A","type":"text","pattern":"("}}}}}}}`, "types.x.parameters.admin.fields.a.pattern", "regular expression"},
		{"required", `{"types":{"x":{"kind":"provider","parameters":{"admin":{"fields":{},"required":[["b"]]}}}}}`, "types.x.parameters.admin.required[0]", "“b”"},
		{"required flat", `{"types":{"x":{"kind":"provider","parameters":{"admin":{"fields":{},"required":["b"]}}}}}`, "types.x.parameters.admin.required[0]", "list of lists"},
		{"group", `{"types":{"x":{"kind":"provider","parameters":{"guest":{}}}}}`, "types.x.parameters.guest", "“admin” and “user”"},
		{"resources", `{"types":{"x":{"kind":"provider","resourceTypes":{"k":{"format":"disk"}}}}}`, "types.x.resourceTypes.k.format", "“file” or “archive”"},
		{"timeout", `{"timeouts":{"create":0}}`, "timeouts.create", "from 1 to 86400"},
		{"timeout text", `{"timeouts":{"create":"5"}}`, "timeouts.create", "whole number"},
		{"memory", `{"limits":{"memory_mb":1}}`, "limits.memory_mb", "from 16"},
		{"result", `{"result":"maybe"}`, "result", "“maybe”"},
		{"exit codes of a provider", `{"result":"exit-code","types":{"x":{"kind":"provider"}}}`, "result", "for automators"},
		{"env", `{"env":["A-B"]}`, "env[0]", "no name of a variable"},
		{"keys of Loom", `{"env":["OK","LOOM_SECRET_KEY"]}`, "env[1]", "never passed on"},
		{"the database", `{"env":["DATABASE_URL"]}`, "env[0]", "never passed on"},
	} {
		_, _, err := DecodeManifest([]byte(c.manifest))
		var e *loom.Error
		if !errors.As(err, &e) || e.Kind != loom.Invalid {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.field == "" {
			if !strings.Contains(e.Message, c.says) {
				t.Errorf("%s: %s", c.name, e.Message)
			}
			continue
		}
		if !slices.ContainsFunc(e.Fields, func(f loom.FieldError) bool { return f.Field == c.field && strings.Contains(f.Message, c.says) }) {
			t.Errorf("%s: %+v", c.name, e.Fields)
		}
	}
}

// TestSchemaKnowsTheManifest: the published schema and the reader know the same
// keys.
func TestSchemaKnowsTheManifest(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
		Defs       map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	asked := func(read func(o *object)) []string {
		o := &object{values: map[string]any{}, asked: map[string]bool{}, to: &problems{}}
		read(o)
		return sortedKeys(o.asked)
	}
	field := asked(func(o *object) { decodeField(o) })
	if got := sortedKeys(schema.Defs["field"].Properties); !slices.Equal(got, field) {
		t.Errorf("fields: the schema has %v, the reader %v", got, field)
	}
	kind := asked(func(o *object) { decodeType("x", o, "") })
	if got := sortedKeys(schema.Defs["type"].Properties); !slices.Equal(got, kind) {
		t.Errorf("types: the schema has %v, the reader %v", got, kind)
	}
	// What the reader does not know it warns of.
	all := map[string]any{}
	for key := range schema.Properties {
		all[key] = nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if _, warnings, _ := DecodeManifest(data); len(warnings) != 0 {
		t.Errorf("keys of the schema that are not read: %v", warnings)
	}
	if !slices.Equal(schema.Required, []string{"protocol", "name", "version", "command", "types"}) {
		t.Errorf("required: %v", schema.Required)
	}
}

// TestUnsafe: files that others may change are not run.
func TestUnsafe(t *testing.T) {
	t.Parallel()
	h := host(t)
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		says  string
	}{
		{"directory", func(dir string) error { return os.Chmod(dir, 0o777) }, "can be changed by others"},
		{"manifest", func(dir string) error { return os.Chmod(filepath.Join(dir, ManifestName), 0o666) }, "chmod go-w"},
		{"program", func(dir string) error { return os.Chmod(filepath.Join(dir, "run"), 0o775) }, "chmod go-w"},
		{"module", func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "lib.py"), nil, 0o600), os.Chmod(filepath.Join(dir, "lib.py"), 0o602))
		}, "lib.py can be changed by others"},
		{"link to an unsafe file", func(dir string) error {
			other := filepath.Join(h.Scratch, "other")
			return errors.Join(os.WriteFile(other, nil, 0o600), os.Chmod(other, 0o666), os.Symlink(other, filepath.Join(dir, "link")))
		}, "other can be changed by others"},
		{"no program", func(dir string) error { return os.Remove(filepath.Join(dir, "run")) }, "is not there"},
		{"not executable", func(dir string) error { return os.Chmod(filepath.Join(dir, "run"), 0o644) }, "chmod +x"},
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, ManifestName)) }, "There is no plugin in"},
		{"owner", func(dir string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(dir, 0o777)
			}
			return os.Chown(filepath.Join(dir, "run"), 65534, 0)
		}, "not safe to run"},
	} {
		dir := plant(t, KindProvider, good, nil)
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Load(dir); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	dir := plant(t, KindProvider, good, func(m map[string]any) { m["command"] = []string{"no-such-program-here"} })
	if _, err := h.Load(dir); err == nil || !strings.Contains(err.Error(), "not in the PATH") {
		t.Errorf("a program that is not installed: %v", err)
	}
}

// TestDiscover: the first of a name counts, built-in types stay, clashes are
// refused on both sides.
func TestDiscover(t *testing.T) {
	t.Parallel()
	h := host(t)
	first, second := t.TempDir(), t.TempDir()
	types := func(name string, list ...string) func(map[string]any) {
		return func(m map[string]any) {
			all := map[string]any{}
			for _, kind := range list {
				all[kind] = map[string]any{"kind": KindAutomator}
			}
			m["name"], m["types"] = name, all
		}
	}
	put := func(base, dir string, change func(map[string]any)) {
		plantAt(t, filepath.Join(base, dir), KindAutomator, "#!/bin/sh\n", change)
	}
	put(first, "a", types("alpha", "one"))
	put(second, "a", types("alpha", "old"))
	put(first, "b", types("beta", "two", "shell"))
	put(first, "c", func(m map[string]any) { types("gamma", "docker")(m); m["replaces"] = []string{"docker"} })
	put(first, "d", types("delta", "same"))
	put(second, "e", types("epsilon", "same"))
	put(first, "f", func(m map[string]any) { types("zeta", "three")(m); m["version"] = "" })
	put(second, "f", types("zeta", "three"))
	if err := os.WriteFile(filepath.Join(first, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := h.Discover([]string{first, filepath.Join(first, "nowhere"), second}, Carried{Automators: []string{"shell", "docker"}})
	if got := strings.Join(f.Types(KindAutomator), " "); got != "docker one two" {
		t.Errorf("types: %s", got)
	}
	refused := map[string]string{}
	for _, r := range f.Refused {
		refused[r.Name+" "+filepath.Base(filepath.Dir(r.Dir))] = r.Err.Error()
	}
	base1, base2 := filepath.Base(first), filepath.Base(second)
	for key, says := range map[string]string{
		"alpha " + base2: "found before, in " + filepath.Join(first, "a"), "delta " + base1: "delta (", "epsilon " + base2: "epsilon (",
		"zeta " + base1: "version", "zeta " + base2: "found before",
	} {
		if !strings.Contains(refused[key], says) {
			t.Errorf("%s: %q", key, refused[key])
		}
	}
	if len(refused) != 5 || len(f.Failed()) != 3 {
		t.Errorf("refused: %v, failed: %d", refused, len(f.Failed()))
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "“shell” is built in") {
		t.Errorf("warnings: %v", f.Warnings)
	}
	if p := f.Plugin(KindAutomator, "one"); p == nil || p.Dir != filepath.Join(first, "a") || len(p.ProgramSHA256) != 64 || len(p.ManifestSHA256) != 64 {
		t.Errorf("plugin: %+v", p)
	}
	if path := SearchPath("/a:/b::/a"); strings.Join(path[:3], " ") != "/a /b /etc/loom/plugins" {
		t.Errorf("search path: %v", path)
	}
}

// The catalog learns which actions of services an automator carries out, so that a
// check can say what would fail.
func TestActionsOfAutomatorsReachTheCatalog(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]string{
		`"kind":"automator"`: "[install configure initialize start stop remove]",
		`"kind":"automator","actions":["bootstrap","start","drain"]`: "[start drain]",
		`"kind":"provider"`: "[]",
	} {
		m, _, err := DecodeManifest([]byte(`{"protocol":[1],"name":"x","version":"1","command":["./x"],"types":{"x":{` + declared + `}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(m.Types["x"].Describes.Actions); got != want {
			t.Errorf("%s: the catalog is told %s, want %s", declared, got, want)
		}
	}
}

func TestManifestIsNotTooDeep(t *testing.T) {
	t.Parallel()
	_, _, err := DecodeManifest([]byte(`{"name":"x","types":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`))
	if err == nil || !strings.Contains(err.Error(), "100 levels deep at line 1, column 120. Put") || strings.Contains(err.Error(), "..") {
		t.Errorf("%v", err)
	}
}
