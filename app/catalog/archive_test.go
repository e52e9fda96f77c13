package catalog_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// packed is a compressed tar of plain files, given as pairs of path and content.
func packed(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var headers []tar.Header
	var contents []string
	for i := 0; i+1 < len(pairs); i += 2 {
		headers = append(headers, tar.Header{Typeflag: tar.TypeReg, Name: pairs[i], Size: int64(len(pairs[i+1]))})
		contents = append(contents, pairs[i+1])
	}
	return packedAs(t, headers, contents)
}

func packedAs(t testing.TB, headers []tar.Header, contents []string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := range headers {
		if err := w.WriteHeader(&headers[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, contents[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchiveRoundTrip(t *testing.T) {
	t.Parallel()
	in, err := catalog.DecodeBundle([]byte(`{"services":[{"name":"web","links":[{"url":"http://x/?a=1&b=<2>"}],"defaultConfig":{"n":5.10}}],"providers":[{"name":"lab","providertype":"local"}]}`))
	if err != nil || len(in.Invalid) > 0 {
		t.Fatal(err, in.Invalid)
	}
	first, err := in.Archive()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := in.Archive(); err != nil || !bytes.Equal(first, again) {
		t.Error("the same catalog gives other bytes")
	}
	back, err := catalog.ReadBundle(first)
	if err != nil || len(back.Invalid) > 0 {
		t.Fatal(err, back.Invalid)
	}
	want, err := in.Document()
	if err != nil {
		t.Fatal(err)
	}
	got, err := back.Document()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read back: %s, %v; want %s", got, err, want)
	}
	if !strings.Contains(string(want), "\n  \"services\": [\n    {\n      \"defaultConfig\": {\n        \"n\": 5.10") || !strings.Contains(string(want), "a=1&b=<2>") {
		t.Errorf("the document is written as\n%s", want)
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for files := tar.NewReader(z); ; {
		header, err := files.Next()
		if err != nil {
			break
		}
		names += header.Name + " "
		if body, _ := io.ReadAll(files); strings.Contains(string(body), "version") {
			t.Errorf("%s holds a version: %s", header.Name, body)
		}
	}
	if names != "providers/ providers/lab.json hardwaretypes/ imagetypes/ services/ services/web.json clustertemplates/ partialtemplates/ " {
		t.Errorf("the archive holds %s", names)
	}
	empty, err := catalog.Bundle{}.Archive()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := catalog.ReadBundle(empty); err != nil || len(b.Entries) != 0 {
		t.Errorf("an empty catalog is read as %v, %v", b, err)
	}
}

func TestArchiveOfAFolder(t *testing.T) {
	t.Parallel()
	body := packed(t, "./services/web.json", `{"name":"web"}`, "README.md", "hello", "services/notes.txt", "x", "services/deep/x.json", "{", "tools/x.json", "{",
		"services/bad.json", "{", "services/other.json", `{"name":"another"}`, "hardwaretypes/h.json", `{"name":"h","providermap":[]}`, "services/nul.json", "{\"name\":\"nul\",\"label\":\"\\u0000\"}")
	b, err := catalog.DecodeArchive(body)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Entries[loom.KindService]) != 1 || b.Entries[loom.KindService][0].Meta().Name != "web" {
		t.Errorf("services %v", b.Entries)
	}
	got := map[string]bool{}
	for _, i := range b.Invalid {
		for _, f := range i.Fields {
			if f.Message == "" {
				t.Errorf("no message about %+v", i)
			}
			got[string(i.Kind)+"/"+i.Name+" "+f.Field] = true
		}
	}
	for _, want := range []string{"services/bad services/bad.json", "services/another services/other.json: name", "hardwaretypes/h hardwaretypes/h.json: providermap", "services/nul services/nul.json: label"} {
		if !got[want] {
			t.Errorf("%q is not named in %v", want, got)
		}
	}
}

// An archive may hold the folder of a catalog instead of its content, as the archives of
// repositories do.
func TestArchiveWithOneFolderAround(t *testing.T) {
	t.Parallel()
	for name, body := range map[string][]byte{
		"its files":         packed(t, "catalog/services/web.json", `{"name":"web"}`, "catalog/README.md", "x", "catalog/docs/services/no.json", "{"),
		"in disguise":       packed(t, "./catalog//services/web.json", `{"name":"web"}`),
		"with dot files":    packed(t, ".gitignore", "x", "./._catalog", "x", "catalog/.git/services/no.json", "{", "catalog/services/web.json", `{"name":"web"}`),
		"of a commit":       packedAs(t, []tar.Header{{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "abc"}}, {Typeflag: tar.TypeDir, Name: "repo-abc/"}, {Typeflag: tar.TypeDir, Name: "repo-abc/services/"}, {Typeflag: tar.TypeReg, Name: "repo-abc/services/web.json", Size: 14}}, []string{"", "", "", `{"name":"web"}`}),
		"without one":       packed(t, "services/web.json", `{"name":"web"}`, "catalog/services/no.json", "{"),
		"of the same names": packed(t, "services/web.json", `{"name":"web"}`, "services/services/no.json", "{"),
	} {
		b, err := catalog.ReadBundle(body)
		if err != nil || len(b.Invalid) > 0 || len(b.Entries[loom.KindService]) != 1 || b.Entries[loom.KindService][0].Meta().Name != "web" {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

func TestArchivesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := packed(t, "services/web.json", `{"name":"web"}`)
	zeros := strings.Repeat("\x00", 1<<20)
	var bomb, many []string
	for i := range 70 {
		bomb = append(bomb, fmt.Sprintf("junk%d", i), zeros)
	}
	for i := range 100_001 {
		many = append(many, fmt.Sprint(i), "")
	}
	var notTar bytes.Buffer
	z := gzip.NewWriter(&notTar)
	io.WriteString(z, strings.Repeat("this is no tar", 100))
	z.Close()
	link := func(kind byte, name string) []byte {
		return packedAs(t, []tar.Header{{Typeflag: kind, Name: name, Linkname: "/etc/passwd"}}, []string{""})
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"no gzip":            {[]byte("\x1f\x8bnonsense"), "gzip"},
		"no tar":             {notTar.Bytes(), "no tar"},
		"cut off":            {good[:len(good)-12], "br"},
		"damaged":            {append(bytes.Clone(good[:len(good)-8]), 1, 2, 3, 4, 5, 6, 7, 8), "br"},
		"traversal":          {packed(t, "../services/web.json", `{"name":"web"}`), "leads out"},
		"hidden traversal":   {packed(t, "services/../../services/web.json", `{"name":"web"}`), "leads out"},
		"absolute":           {packed(t, "/services/web.json", `{"name":"web"}`), "leads out"},
		"backslash":          {packed(t, `services\..\web.json`, `{"name":"web"}`), "leads out"},
		"twice":              {packed(t, "services/web.json", `{"name":"web"}`, "services/web.json", `{"name":"web"}`), "twice"},
		"twice, in disguise": {packed(t, "services/web.json", `{"name":"web"}`, "./services//web.json", `{"name":"web"}`), "twice"},
		"symbolic link":      {link(tar.TypeSymlink, "services/web.json"), "no plain file"},
		"hard link":          {link(tar.TypeLink, "services/web.json"), "no plain file"},
		"device":             {link(tar.TypeChar, "services/web.json"), "no plain file"},
		"one large file":     {packed(t, "services/web.json", strings.Repeat(" ", 4<<20+1)), "larger than 4 MiB"},
		"bomb":               {packed(t, bomb...), "64 MiB"},
		"bomb in a file":     {packed(t, "services/a.txt", "", "junk", strings.Repeat(zeros, 70)), "64 MiB"},
		"too many files":     {packed(t, many...), "100000 files"},
		"two folders":        {packed(t, "a/services/web.json", `{"name":"web"}`, "b/services/app.json", `{"name":"app"}`), "holds no folder"},
		"a file beside":      {packed(t, "a/services/web.json", `{"name":"web"}`, "README.md", "x"), "holds no folder"},
		"folders in folders": {packed(t, "a/b/services/web.json", `{"name":"web"}`), "holds no folder"},
		"out of the folder":  {packed(t, "catalog/../services/web.json", `{"name":"web"}`), "leads out"},
		"twice in a folder":  {packed(t, "a/services/web.json", `{"name":"web"}`, "a/./services/web.json", `{"name":"web"}`), "twice"},
		"nothing":            {packed(t), "holds no folder"},
	} {
		_, err := catalog.ReadBundle(c.body)
		if !errors.Is(err, loom.Invalid) || !strings.Contains(loom.AsError(err).Message, c.want) {
			t.Errorf("%s: %v, want something about %q", name, err, c.want)
		}
	}
}

// zipped is a zip of files, given as pairs of path and content; a path that ends in "@" is a link.
func zipped(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i+1 < len(pairs); i += 2 {
		header := &zip.FileHeader{Name: strings.TrimSuffix(pairs[i], "@"), Method: zip.Deflate}
		if header.Name != pairs[i] {
			header.SetMode(fs.ModeSymlink | 0o777)
		}
		w, err := z.CreateHeader(header)
		if err == nil {
			_, err = io.WriteString(w, pairs[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestZipOfAFolder: a catalog folder is read from a zip as from a tar, and within the same limits.
func TestZipOfAFolder(t *testing.T) {
	t.Parallel()
	for name, body := range map[string][]byte{
		"its content": zipped(t, "services/web.json", `{"name":"web"}`, "README.md", "hello"),
		"its folder":  zipped(t, "catalog/", "", "catalog/services/web.json", `{"name":"web"}`),
	} {
		b, err := catalog.ReadBundle(body)
		if err != nil || len(b.Invalid) > 0 || len(b.Entries[loom.KindService]) != 1 || b.Entries[loom.KindService][0].Meta().Name != "web" {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	good := zipped(t, "services/web.json", `{"name":"web"}`)
	var bomb []string
	for i := range 20 {
		bomb = append(bomb, fmt.Sprintf("services/junk%d.json", i), strings.Repeat("\x00", 4<<20))
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"no zip":    {[]byte("PK\x03\x04nonsense"), "no zip"},
		"damaged":   {bytes.Replace(good, []byte("services/web.json"), []byte("services/wex.json"), 1)[:len(good)-1], "zip"},
		"traversal": {zipped(t, "../services/web.json", `{"name":"web"}`), "leads out"},
		"a link":    {zipped(t, "services/web.json@", "/etc/passwd"), "no plain file"},
		"no folder": {zipped(t, "README.json", "{}"), "no folder of a catalog"},
		"large":     {zipped(t, "services/web.json", strings.Repeat("x", 4<<20+1)), "larger than 4 MiB"},
		"a bomb":    {zipped(t, bomb...), "64 MiB"},
	} {
		if _, err := catalog.ReadBundle(c.body); !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
