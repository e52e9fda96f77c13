package catalog_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
)

// packedResources makes a gzipped tar of names and contents in turn.
func packedResources(t *testing.T, pairs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for i := 0; i+1 < len(pairs); i += 2 {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o644}
		if strings.HasSuffix(pairs[i], "@") {
			header.Typeflag, header.Linkname, header.Size, pairs[i+1] = tar.TypeSymlink, "/etc/passwd", 0, ""
		}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is exported comes back in another catalog as it was: the live and staged versions,
// and never a secret.
func TestResourcesTravel(t *testing.T) {
	t.Parallel()
	from := setup(t)
	from.plugins(t)
	other := loom.ResourceRef{Kind: script.Kind, Plugin: script.Plugin, Type: script.Type, Name: "other.sh"}
	unused := loom.ResourceRef{Kind: script.Kind, Plugin: script.Plugin, Type: script.Type, Name: "unused.sh"}
	stage := func(ref loom.ResourceRef, version int) {
		t.Helper()
		if err := from.Stage(from.ctx, from.admin, ref, version); err != nil {
			t.Fatal(err)
		}
	}
	from.upload(t, script, "echo live")
	from.upload(t, key, "planted-secret")
	from.upload(t, unused, "echo unused")
	stage(script, 1)
	stage(key, 1)
	if err := from.Sync(from.ctx, from.admin); err != nil {
		t.Fatal(err)
	}
	from.upload(t, script, "echo next")
	stage(script, 2)
	from.upload(t, other, strings.Repeat("x", 100_000))
	stage(other, 1)
	resources, sealed, err := from.ExportableResources(from.ctx, from.admin)
	if err != nil || len(resources) != 2 || sealed != 1 || resources[0].Name != "other.sh" || resources[1].Name != "web.sh" || resources[1].Version != 1 {
		t.Fatalf("to export: %+v, %d sealed, %v", resources, sealed, err)
	}
	var archive bytes.Buffer
	if err := from.ExportResources(from.ctx, from.admin, resources, &archive); err != nil {
		t.Fatal(err)
	}
	to := setup(t)
	to.plugins(t)
	to.upload(t, script, "echo old")
	now := time.Now()
	if err := to.KeepResources(to.ctx, to.admin, bytes.NewReader(archive.Bytes()), now); err != nil {
		t.Fatal(err)
	}
	preview, err := to.PreviewResources(to.ctx, to.admin, now)
	if err != nil || len(preview.Items) != 2 || preview.Items[0].State != catalog.TransferNew || preview.Items[1].State != catalog.TransferChanged || preview.Items[1].Version != 1 {
		t.Fatalf("preview: %+v, %v", preview, err)
	}
	in := catalog.ResourcesInput{Seen: preview.Seen, Stage: true, Wanted: map[loom.ResourceRef]bool{script: true}}
	made, err := to.ImportResources(to.ctx, to.admin, in, now)
	if err != nil || len(made) != 1 || made[0].Version != 2 || made[0].Status() != loom.ResourceStaged || to.content(t, made[0]) != "echo live" || made[0].Permissions != "755" {
		t.Fatalf("imported %+v, %v", made, err)
	}
	if got := statuses(t, to, script); got != "inactive staged" {
		t.Errorf("after the import: %s", got)
	}
	if got := statuses(t, to, other); got != "" {
		t.Errorf("what was not chosen is %s", got)
	}
	if _, err := to.ImportResources(to.ctx, to.admin, in, now); !errors.Is(err, loom.NotFound) {
		t.Errorf("the archive is kept after its import: %v", err)
	}
	if err := to.KeepResources(to.ctx, to.admin, bytes.NewReader(archive.Bytes()), now); err != nil {
		t.Fatal(err)
	}
	preview, err = to.PreviewResources(to.ctx, to.admin, now)
	if err != nil || preview.Items[1].State != catalog.TransferSame || preview.Items[1].Version != 2 {
		t.Fatalf("again: %+v, %v", preview, err)
	}
	in.Seen = preview.Seen
	if _, err := to.ImportResources(to.ctx, to.admin, in, now); !errors.Is(err, loom.Invalid) {
		t.Errorf("importing what is there already: %v", err)
	}
	in.Wanted[other] = true
	to.upload(t, other, "meanwhile")
	if _, err := to.ImportResources(to.ctx, to.admin, in, now); !errors.Is(err, loom.Conflict) {
		t.Errorf("after somebody uploaded meanwhile: %v", err)
	}
	if _, err := to.PreviewResources(to.ctx, to.admin, now.Add(2*time.Hour)); !errors.Is(err, loom.NotFound) {
		t.Errorf("after two hours: %v", err)
	}
	user := to.admin
	user.Role = loom.RoleUser
	for name, err := range map[string]error{
		"keep":   to.KeepResources(to.ctx, user, bytes.NewReader(archive.Bytes()), now),
		"export": to.ExportResources(to.ctx, user, resources, &archive),
	} {
		if !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s by a user: %v", name, err)
		}
	}
	// Of a list that somebody made up, only what is the actor's goes out.
	var foreign bytes.Buffer
	if err := to.ExportResources(to.ctx, to.admin, resources, &foreign); err != nil || bytes.Contains(foreign.Bytes(), []byte("web.sh")) {
		t.Errorf("a foreign list: %v", err)
	}
}

func TestBadResourceArchives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	good := packedResources(t, "automatortypes/shell/scripts/a.sh", "echo", "automatortypes/moon/dust/b", "x")
	now := time.Now()
	for name, c := range map[string]struct {
		body   []byte
		phrase string
	}{
		"no archive":      {[]byte("hello"), "not compressed with gzip"},
		"nothing":         {nil, "not compressed with gzip"},
		"empty":           {packedResources(t), "holds no plugin resource"},
		"cut off":         {good[:len(good)-9], "breaks off"},
		"cut off early":   {good[:30], "breaks off"},
		"a secret":        {packedResources(t, "providertypes/cloud/ssh_keys/prod", "planted"), "secret by its type"},
		"a link":          {packedResources(t, "automatortypes/shell/scripts/a@", ""), "no plain file"},
		"a path out":      {packedResources(t, "automatortypes/shell/../../etc", "x"), "lie in it as"},
		"a short path":    {packedResources(t, "scripts/a.sh", "x"), "lie in it as"},
		"another kind":    {packedResources(t, "services/shell/scripts/a.sh", "x"), "lie in it as"},
		"a bad name":      {packedResources(t, "automatortypes/shell/scripts/a b", "x"), "letters a to z"},
		"a name of dots":  {packedResources(t, "automatortypes/shell/scripts/...", "x"), "letters a to z"},
		"the same twice":  {packedResources(t, "automatortypes/shell/scripts/a", "x", "./automatortypes/shell/scripts/a", "x"), "twice"},
		"a tar in itself": {gzipped(t, "this is no tar, only compressed text"), "no tar"},
	} {
		err := b.KeepResources(b.ctx, b.admin, bytes.NewReader(c.body), now)
		if !errors.Is(err, loom.Invalid) || !strings.Contains(loom.AsError(err).Message, c.phrase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.PreviewResources(b.ctx, b.admin, now); !errors.Is(err, loom.NotFound) {
		t.Errorf("something was kept: %v", err)
	}
	if err := b.KeepResources(b.ctx, b.admin, bytes.NewReader(good), now); err != nil {
		t.Fatal(err)
	}
	preview, err := b.PreviewResources(b.ctx, b.admin, now)
	moon := loom.ResourceRef{Kind: "automatortypes", Plugin: "moon", Type: "dust", Name: "b"}
	if err != nil || len(preview.Items) != 2 || !strings.Contains(preview.Items[1].WhyNot, "moon") {
		t.Fatalf("preview %+v, %v", preview, err)
	}
	_, err = b.ImportResources(b.ctx, b.admin, catalog.ResourcesInput{Seen: preview.Seen, Wanted: map[loom.ResourceRef]bool{moon: true, preview.Items[0].ResourceRef: true}}, now)
	if !errors.Is(err, loom.Invalid) {
		t.Errorf("what no plugin takes: %v", err)
	}
	if got := statuses(t, b, preview.Items[0].ResourceRef); got != "" {
		t.Errorf("half of an import was stored: %s", got)
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
