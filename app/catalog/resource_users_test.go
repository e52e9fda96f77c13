package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
)

// What names a file is found in services, also in arguments, and in the text of the other
// files of its plugin that are in use or will be.
func TestResourceUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.RegisterTypes(b.ctx,
		[]loom.PluginType{{Base: loom.Base{Name: "cloud"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}}}},
		[]loom.PluginType{{Base: loom.Base{Name: "shell"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{"script": {Label: "Script", Type: "text"}, "args": {Label: "A", Type: "text"}}}},
			ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}, "secrets": {Format: "file"}, "archives": {Format: "archive"}}}})
	if err != nil {
		t.Fatal(err)
	}
	of := func(plugin, typ, name string) loom.ResourceRef {
		kind := "automatortypes"
		if plugin == "cloud" {
			kind = "providertypes"
		}
		return loom.ResourceRef{Kind: kind, Plugin: plugin, Type: typ, Name: name}
	}
	stage := func(ref loom.ResourceRef, content string) {
		t.Helper()
		if err := b.Stage(b.ctx, b.admin, ref, b.upload(t, ref, content).Version); err != nil {
			t.Fatal(err)
		}
	}
	lib := of("shell", "scripts", "lib.sh")
	stage(lib, "echo lib.sh") // that it names itself is nothing
	stage(of("shell", "scripts", "live.sh"), ". ./lib.sh")
	stage(of("shell", "scripts", "both.sh"), ". ./lib.sh")
	stage(of("shell", "scripts", "before.sh"), ". ./lib.sh")
	stage(of("shell", "secrets", "key"), "lib.sh")
	stage(of("cloud", "scripts", "other.sh"), ". ./lib.sh")
	if err := b.Sync(b.ctx, b.admin); err != nil {
		t.Fatal(err)
	}
	stage(of("shell", "scripts", "both.sh"), ". ./lib.sh # again")
	stage(of("shell", "scripts", "before.sh"), "no more")
	stage(of("shell", "scripts", "after.sh"), `sh "$dir/lib.sh"`)
	stage(of("shell", "scripts", "near.sh"), ". ./mylib.sh; . ./lib.sh.old")
	stage(of("shell", "scripts", "large.sh"), strings.Repeat("#", 300<<10)+"\nlib.sh")
	b.upload(t, of("shell", "scripts", "idle.sh"), ". ./lib.sh")
	for name, fields := range map[string]string{"a": `"script":"lib.sh"`, "b": `"script":"bash","args":"-e lib.sh start"`, "c": `"script":"lib.sh.bak"`, "d": `"script":"bash lib.sh"`} {
		b.save(t, b.admin, loom.KindService, `{"name":"%s","provisioner":{"actions":{"start":{"type":"shell","fields":{%s}}}}}`, name, fields)
	}
	uses, err := b.ResourceUsers(b.ctx, b.admin, lib, of("shell", "scripts", "mylib.sh"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range uses[lib].Entries {
		got = append(got, fmt.Sprintf("%s%v", e.Name, e.Actions))
	}
	for _, r := range uses[lib].Files {
		got = append(got, fmt.Sprintf("%s/%d", r.Name, r.Version))
	}
	if all := strings.Join(got, " "); all != "a[start] b[start] d[start] after.sh/1 before.sh/1 both.sh/1 live.sh/1" {
		t.Errorf("lib.sh is named by %s", all)
	}
	if files := uses[of("shell", "scripts", "mylib.sh")].Files; len(files) != 1 || files[0].Name != "near.sh" {
		t.Errorf("mylib.sh is named by %v", files)
	}
	secret := of("shell", "secrets", "lib.sh")
	if uses, err := b.ResourceUsers(b.ctx, b.admin, secret); err != nil || len(uses[secret].Files) > 0 {
		t.Errorf("a secret is named by %v, %v", uses, err)
	}
	if _, err := b.ResourceUsers(b.ctx, b.user, lib); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user: %v", err)
	}
}
