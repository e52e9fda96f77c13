package catalog_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"loom/app/archive/archivetest"
	"loom/app/catalog"
	"loom/app/loom"
)

// zipOf packs files of these names.
func zipOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range names {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("content of " + name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Archives of either format are looked through: one folder at the top is right, all else
// is explained, and refused where people upload it.
func TestArchivesAreLookedThrough(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.RegisterTypes(b.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"archives": {Format: "archive"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "archives", Name: "site"}
	many := make([]string, 0, 12)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		many = append(many, name, "x")
	}
	whole := packedResources(t, "site/a.sh", "x", "site/sub/b.sh", "y")
	for what, c := range map[string]struct {
		content    []byte
		odd, files string
	}{
		"tar":          {whole, "", "site/a.sh site/sub/b.sh"},
		"with a dot":   {packedResources(t, "./site/a.sh", "x"), "", "site/a.sh"},
		"zip":          {zipOf(t, "site/a.sh", "site/sub/b.sh"), "", "site/a.sh site/sub/b.sh"},
		"two entries":  {packedResources(t, "site/a.sh", "x", "README", "y"), "one folder at its top; this one holds “README”, “site” there. Pack the folder itself", ""},
		"zip of two":   {zipOf(t, "a.sh", "b.sh"), "this one holds “a.sh”, “b.sh” there.", ""},
		"many":         {packedResources(t, many...), "holds “a”, “b”, “c”, “d” and 2 more entries there.", ""},
		"a file alone": {packedResources(t, "a.sh", "x"), "this one holds the file “a.sh” there.", ""},
		"leads out":    {packedResources(t, "../a.sh", "x"), "“../a.sh”, a name with “..”, which leads outside of it", ""},
		"absolute":     {zipOf(t, "/etc/passwd"), "“/etc/passwd”, an absolute name, which leads outside of it", ""},
		"device":       {archivetest.TarGz(t, archivetest.Entry{Name: "site/dev", Kind: tar.TypeChar}), "“site/dev”, which is no file, folder or symbolic link", ""},
		"escape":       {archivetest.TarGz(t, archivetest.Escape("site", "/etc/shadow", 9)...), "“top/d0/d1/d2/d3/b”, a link to", ""},
		"zip escape":   {archivetest.Zip(t, archivetest.Escape("site", "/etc/shadow", 9)...), "“top/d0/d1/d2/d3/b”, a link to", ""},
		"empty":        {packedResources(t), "The archive is empty.", ""},
		"cut off":      {whole[:len(whole)/2], "broken off or damaged", ""},
		"zip cut off":  {zipOf(t, "site/a.sh")[:60], "broken off or damaged", ""},
		"text":         {[]byte("#!/bin/sh\n"), "This is not an archive", ""},
		"nothing":      {nil, "This is not an archive", ""},
	} {
		stored, err := b.Upload(b.ctx, b.admin, ref, bytes.NewReader(c.content), 0)
		if unusable := c.odd != "" && !strings.Contains(c.odd, "at its top") && !strings.Contains(c.odd, " there.") && !strings.Contains(c.odd, "empty"); unusable {
			// What provisioners would refuse does not get to them.
			if !errors.Is(err, loom.Invalid) || !strings.Contains(loom.AsError(err).Fields[0].Message, c.odd) {
				t.Errorf("%s: the upload says %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		content, err := b.ResourceContent(b.ctx, b.admin, stored)
		if err != nil || content.Odd != c.odd && (c.odd == "" || !strings.Contains(content.Odd, c.odd)) {
			t.Errorf("%s: odd is %q (%v), want %q", what, content.Odd, err, c.odd)
		}
		var names []string
		for _, f := range content.Files {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); c.files != "" && got != c.files {
			t.Errorf("%s: files are %q, want %q", what, got, c.files)
		}
		_, err = b.UploadAs(b.ctx, b.admin, ref, bytes.NewReader(c.content), catalog.UploadOptions{Folder: true})
		if c.odd == "" && err != nil || c.odd != "" && (!errors.Is(err, loom.Invalid) || loom.AsError(err).Fields[0].Message != content.Odd) {
			t.Errorf("%s: the upload says %v", what, err)
		}
	}
}

// The list has a row for each name, with the state of the whole.
func TestResourcesByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	named := func(name string) loom.ResourceRef {
		ref := script
		ref.Name = name
		return ref
	}
	for _, name := range []string{"a.sh", "b.sh", "c.sh", "d.sh"} {
		b.upload(t, named(name), "one")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.sh", "b.sh", "c.sh"} {
		must(b.Stage(b.ctx, b.admin, named(name), 1))
	}
	must(b.Sync(b.ctx, b.admin))
	b.upload(t, named("a.sh"), "two")
	must(b.Stage(b.ctx, b.admin, named("a.sh"), 2))
	must(b.Recall(b.ctx, b.admin, named("b.sh"), 1))
	b.upload(t, named("c.sh"), "two")
	list := func(in catalog.ResourceListInput) (text string) {
		t.Helper()
		found, err := b.ListResources(b.ctx, b.admin, in)
		must(err)
		for _, f := range found.Items {
			text += f.Name + " " + string(f.Status()) + "; "
		}
		return text
	}
	if got := list(catalog.ResourceListInput{}); got != "a.sh staged; b.sh recalled; c.sh active; d.sh inactive; " {
		t.Errorf("all: %s", got)
	}
	for status, want := range map[loom.ResourceStatus]string{loom.ResourceStaged: "a.sh staged; ", loom.ResourceRecalled: "b.sh recalled; ", loom.ResourceActive: "c.sh active; ", loom.ResourceInactive: "d.sh inactive; "} {
		if got := list(catalog.ResourceListInput{Status: status}); got != want {
			t.Errorf("%s: %s", status, got)
		}
	}
	found, err := b.ListResources(b.ctx, b.admin, catalog.ResourceListInput{Q: "SHELL a.", Page: loom.Page{Limit: 1}})
	must(err)
	if len(found.Items) != 1 || found.Next != "" || found.Items[0].LiveVersion != 1 || found.Items[0].SlatedVersion != 2 || found.Items[0].Versions != 2 || found.Items[0].Version != 2 {
		t.Errorf("a.sh is %+v", found)
	}
	if coming, going, err := b.ResourcesWaiting(b.ctx, b.admin); err != nil || coming != 1 || going != 1 {
		t.Errorf("waiting are %d and %d, %v", coming, going, err)
	}
	if users, err := b.ResourceUsers(b.ctx, b.admin, named("a.sh")); err != nil || len(users[named("a.sh")].Entries)+len(users[named("a.sh")].Files) != 0 {
		t.Errorf("a.sh is named by %v, %v", users, err)
	}
	if _, err := b.ListResources(b.ctx, b.user, catalog.ResourceListInput{}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user: %v", err)
	}
	if _, err := b.ListResources(b.ctx, b.admin, catalog.ResourceListInput{Status: "on"}); !errors.Is(err, loom.Invalid) {
		t.Errorf("an odd status: %v", err)
	}
}

// TestArchivesThatCostTooMuch: an archive that costs more than its size is refused, alone
// and within an archive of resources, and who waits for a place gives up with its request.
func TestArchivesThatCostTooMuch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.RegisterTypes(b.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"archives": {Format: "archive"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "archives", Name: "site"}
	costly := archivetest.Overlapping(t, 300, 1<<20)
	if _, err := b.Upload(b.ctx, b.admin, ref, bytes.NewReader(costly), 0); !errors.Is(err, loom.Invalid) || !strings.Contains(loom.AsError(err).Fields[0].Message, "lies over other entries") {
		t.Errorf("alone: %v", err)
	}
	now := time.Now()
	within := packedResources(t, "automatortypes/shell/archives/site", string(costly))
	if err := b.KeepResources(b.ctx, b.admin, bytes.NewReader(within), now); err != nil {
		t.Fatal(err)
	}
	preview, err := b.PreviewResources(b.ctx, b.admin, now)
	if err != nil || len(preview.Items) != 1 || !strings.Contains(preview.Items[0].WhyNot, "lies over other entries") {
		t.Fatalf("within: %+v, %v", preview, err)
	}
	_, err = b.ImportResources(b.ctx, b.admin, catalog.ResourcesInput{Seen: preview.Seen, Wanted: map[loom.ResourceRef]bool{ref: true}}, now)
	if !errors.Is(err, loom.Invalid) {
		t.Errorf("imported all the same: %v", err)
	}
	hidden := ref
	hidden.Name = ".site"
	if _, err := b.Upload(b.ctx, b.admin, hidden, bytes.NewReader(packedResources(t, "site/a", "x")), 0); !errors.Is(err, loom.Invalid) || loom.AsError(err).Fields[0].Field != "name" {
		t.Errorf("a name that provisioners refuse: %v", err)
	}
}
