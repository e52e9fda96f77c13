package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
)

var (
	script = loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "web.sh"}
	key    = loom.ResourceRef{Kind: "providertypes", Plugin: "cloud", Type: "ssh_keys", Name: "prod"}
)

func (b bundle) plugins(t *testing.T) {
	t.Helper()
	err := b.RegisterTypes(b.ctx,
		[]loom.PluginType{{Base: loom.Base{Name: "cloud"}, ResourceTypes: map[string]loom.ResourceType{"ssh_keys": {Format: "file", Permissions: "0400"}}}},
		[]loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file", Permissions: "755"}}}})
	if err != nil {
		t.Fatal(err)
	}
}

func (b bundle) upload(t *testing.T, ref loom.ResourceRef, content string) loom.Resource {
	t.Helper()
	r, err := b.Upload(b.ctx, b.admin, ref, strings.NewReader(content), 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b bundle) content(t *testing.T, r loom.Resource) string {
	t.Helper()
	reader, err := b.Open(b.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func statuses(t *testing.T, b bundle, ref loom.ResourceRef) string {
	t.Helper()
	list, err := b.Resources(b.ctx, b.admin, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range list {
		all = append(all, string(r.Status()))
	}
	return strings.Join(all, " ")
}

func TestResourceStates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	for i := range 3 {
		r := b.upload(t, script, "echo "+strings.Repeat("x", i))
		if r.Version != i+1 || r.Status() != loom.ResourceInactive || r.Permissions != "755" || r.Size != int64(5+i) || len(r.SHA256) != 64 {
			t.Fatalf("uploaded %+v", r)
		}
	}
	step := func(what string, err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := statuses(t, b, script); got != want {
			t.Fatalf("after %s: %s, want %s", what, got, want)
		}
	}
	step("stage 1", b.Stage(b.ctx, b.admin, script, 1), "staged inactive inactive")
	step("stage 2", b.Stage(b.ctx, b.admin, script, 2), "inactive staged inactive")
	step("sync", b.Sync(b.ctx, b.admin), "inactive active inactive")
	set, live, err := b.Live(b.ctx, "t-1")
	if err != nil || set != 1 || len(live) != 1 || live[0].Version != 2 || b.content(t, live[0]) != "echo x" {
		t.Fatalf("live: set %d, %+v, %v", set, live, err)
	}
	step("sync again", b.Sync(b.ctx, b.admin), "inactive active inactive")
	if set, _, _ := b.Live(b.ctx, "t-1"); set != 1 {
		t.Errorf("a sync that changes nothing made set %d", set)
	}
	step("stage 3", b.Stage(b.ctx, b.admin, script, 3), "inactive recalled staged")
	step("recall 3", b.Recall(b.ctx, b.admin, script, 3), "inactive recalled inactive")
	if err := b.DeleteResource(b.ctx, b.admin, script, 2); !errors.Is(err, loom.Conflict) {
		t.Errorf("deleting a recalled version: %v", err)
	}
	if err := b.DeleteResource(b.ctx, b.admin, script, 0); !errors.Is(err, loom.Conflict) {
		t.Errorf("deleting a name with a recalled version: %v", err)
	}
	step("sync 3", b.Sync(b.ctx, b.admin), "inactive inactive inactive")
	if set, live, _ := b.Live(b.ctx, "t-1"); set != 2 || len(live) != 0 {
		t.Errorf("set %d, %v", set, live)
	}
	step("delete 3", b.DeleteResource(b.ctx, b.admin, script, 3), "inactive inactive")
	if err := b.DeleteResource(b.ctx, b.admin, script, 3); !errors.Is(err, loom.NotFound) {
		t.Errorf("deleting a version twice: %v", err)
	}
	step("delete all", b.DeleteResource(b.ctx, b.admin, script, 0), "")
	step("delete none", b.DeleteResource(b.ctx, b.admin, script, 0), "")
	if r := b.upload(t, script, "again"); r.Version != 4 {
		t.Errorf("numbers are never used again, got %d", r.Version)
	}
	if err := b.Stage(b.ctx, b.admin, script, 9); !errors.Is(err, loom.NotFound) {
		t.Errorf("staging what is not there: %v", err)
	}
	if swept, err := b.SweepBucket(b.ctx, time.Hour); err != nil || swept != 0 {
		t.Errorf("young objects were swept: %d, %v", swept, err)
	}
	if swept, err := b.SweepBucket(b.ctx, -time.Minute); err != nil || swept != 3 {
		t.Errorf("swept %d objects, %v, want 3", swept, err)
	}
}

func TestSecretResourcesAreSealed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	r := b.upload(t, key, "-----BEGIN KEY-----")
	if !r.Sealed || r.Permissions != "0400" || r.Size != 19 {
		t.Fatalf("uploaded %+v", r)
	}
	raw := r
	raw.Sealed = false
	if strings.Contains(b.content(t, raw), "BEGIN KEY") {
		t.Error("the object in the bucket is in plain")
	}
	if got := b.content(t, r); got != "-----BEGIN KEY-----" {
		t.Errorf("opened %q", got)
	}
	object, err := b.CopyObject(b.ctx, r, "t-2")
	if err != nil {
		t.Fatal(err)
	}
	moved := r
	moved.Object = object
	if got := b.content(t, moved); got != "-----BEGIN KEY-----" {
		t.Errorf("the copy holds %q", got)
	}
}

func TestUploadsAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	other, plugin, name, dots, kind := script, script, script, script, script
	other.Type, plugin.Plugin, name.Name, dots.Name, kind.Kind = "cookbooks", "ruby", "a/../b", "..", "services"
	for what, c := range map[string]struct {
		ref   loom.ResourceRef
		actor loom.Actor
		limit int64
		want  loom.Kind
	}{
		"too large":            {script, b.admin, 4, loom.Invalid},
		"undeclared type":      {other, b.admin, 0, loom.NotFound},
		"unknown plugin":       {plugin, b.admin, 0, loom.NotFound},
		"bad name":             {name, b.admin, 0, loom.Invalid},
		"name of dots":         {dots, b.admin, 0, loom.Invalid},
		"no plugin kind":       {kind, b.admin, 0, loom.NotFound},
		"not an administrator": {script, b.user, 0, loom.Forbidden},
	} {
		if _, err := b.Upload(b.ctx, c.actor, c.ref, strings.NewReader("12345"), c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	broken := io.MultiReader(strings.NewReader("123"), iotestErr{})
	if _, err := b.Upload(b.ctx, b.admin, script, broken, 0); err == nil {
		t.Error("a broken transfer was stored")
	}
	if swept, err := b.SweepBucket(b.ctx, -time.Minute); err != nil || swept != 0 {
		t.Errorf("failed uploads left %d objects, %v", swept, err)
	}
	if r := b.upload(t, script, "fine"); r.Version != 3 {
		t.Errorf("failed uploads use up their numbers, got %d", r.Version)
	}
	if _, err := b.Upload(b.ctx, b.admin, key, bytes.NewReader(make([]byte, catalog.MaxSealedUpload+1)), 0); !errors.Is(err, loom.Invalid) {
		t.Errorf("a huge key: %v", err)
	}
	if _, err := b.Resources(b.ctx, b.admin, catalog.ResourceFilter{Status: "on"}); !errors.Is(err, loom.Invalid) {
		t.Errorf("a bad status: %v", err)
	}
}

func TestEnsureResource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	for _, c := range []struct {
		content string
		changed bool
		want    string
	}{{"one", true, "active"}, {"one", false, "active"}, {"two", true, "inactive active"}} {
		changed, err := b.EnsureResource(b.ctx, b.admin, script, []byte(c.content))
		if err != nil || changed != c.changed {
			t.Errorf("%s: changed %v, %v", c.content, changed, err)
		}
		if err := b.Sync(b.ctx, b.admin); err != nil {
			t.Fatal(err)
		}
		if got := statuses(t, b, script); got != c.want {
			t.Errorf("%s: %s, want %s", c.content, got, c.want)
		}
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errors.New("the line is dead") }

// A version that is released or withdrawn goes into or out of use alone: other files stay
// staged or withdrawn, and other versions of its name as they are.
func TestReleaseOfOneFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	of := func(name string) loom.ResourceRef {
		return loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: name}
	}
	states := func() string {
		t.Helper()
		list, err := b.Resources(b.ctx, b.admin, catalog.ResourceFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range list {
			all = append(all, fmt.Sprintf("%s/%d=%s", r.Name, r.Version, r.Status()))
		}
		return strings.Join(all, " ")
	}
	store := func(name string, o catalog.UploadOptions) loom.Resource {
		t.Helper()
		r, err := b.UploadAs(b.ctx, b.admin, of(name), strings.NewReader("echo "+name), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	set := func() int {
		t.Helper()
		set, _, err := b.Live(b.ctx, b.admin.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	store("other.sh", catalog.UploadOptions{Stage: true})
	store("gone.sh", catalog.UploadOptions{Release: true})
	if err := b.Recall(b.ctx, b.admin, of("gone.sh"), 1); err != nil {
		t.Fatal(err)
	}
	before := set()
	if r := store("web.sh", catalog.UploadOptions{Release: true}); !r.Live || !r.Slated {
		t.Errorf("it says %s", r.Status())
	}
	store("web.sh", catalog.UploadOptions{Stage: true})
	if got, want := states(), "gone.sh/1=recalled other.sh/1=staged web.sh/1=recalled web.sh/2=staged"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := set(); got != before+1 {
		t.Errorf("the set is %d, before %d", got, before)
	}
	act := func(what func(context.Context, loom.Actor, loom.ResourceRef, int) error, version int, want string) {
		t.Helper()
		if err := what(b.ctx, b.admin, of("web.sh"), version); err != nil {
			t.Fatal(err)
		}
		if got, want := states(), "gone.sh/1=recalled other.sh/1=staged "+want; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	act(b.Withdraw, 1, "web.sh/1=inactive web.sh/2=staged")
	act(b.Release, 2, "web.sh/1=inactive web.sh/2=active")
	act(b.Release, 1, "web.sh/1=active web.sh/2=inactive")
	act(b.Release, 1, "web.sh/1=active web.sh/2=inactive")
	act(b.Withdraw, 1, "web.sh/1=inactive web.sh/2=inactive")
	if _, err := b.UploadAs(b.ctx, b.user, of("web.sh"), strings.NewReader("x"), catalog.UploadOptions{Release: true}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user: %v", err)
	}
	if err := b.Release(b.ctx, b.admin, of("web.sh"), 9); !errors.Is(err, loom.NotFound) {
		t.Errorf("version 9: %v", err)
	}
}
