package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCatalogPlanRefuses: what is wrong before a server is asked, and a server that is not there.
func TestCatalogPlanRefuses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "LOOM_URL=http://" + listener.Addr().String()
	listener.Close()
	folder := func(files map[string]int) string {
		t.Helper()
		dir := t.TempDir()
		for name, size := range files {
			writeTo(t, filepath.Join(dir, name), strings.Repeat(" ", size))
		}
		return dir
	}
	good := folder(map[string]int{"services/web.json": 1})
	linked := folder(map[string]int{"secret": 1, "services/web.json": 1})
	if err := os.Symlink("../secret", filepath.Join(linked, "services", "db.json")); err != nil {
		t.Fatal(err)
	}
	linkedKind := folder(map[string]int{"services/web.json": 1})
	if err := os.Symlink("services", filepath.Join(linkedKind, "imagetypes")); err != nil {
		t.Fatal(err)
	}
	many := map[string]int{}
	for i := range maxFolderEntries + 1 {
		many[fmt.Sprintf("services/s%d.json", i)] = 0
	}
	const token = "LOOM_TOKEN=x"
	for name, c := range map[string]struct {
		dir  string
		env  []string
		code int
		says string
	}{
		"no URL":           {good, []string{token}, 1, "LOOM_URL is not set"},
		"no token":         {good, []string{closed}, 1, "LOOM_TOKEN is not set"},
		"no such folder":   {filepath.Join(good, "none"), []string{closed, token}, 1, "no such file or directory"},
		"no catalog":       {folder(map[string]int{"README.md": 1}), []string{closed, token}, 1, "holds no folder of a catalog"},
		"no server":        {good, []string{closed, token}, 1, "reach Loom"},
		"not a URL":        {good, []string{"LOOM_URL=localhost", token}, 1, "LOOM_URL is no URL"},
		"link":             {linked, []string{closed, token}, 2, "services/db.json is no plain file"},
		"link to a folder": {linkedKind, []string{closed, token}, 2, "imagetypes is no plain folder"},
		"large file":       {folder(map[string]int{"services/web.json": maxFolderFile + 1}), []string{closed, token}, 2, "services/web.json is larger than 256 KiB"},
		"many entries":     {folder(many), []string{closed, token}, 2, "more than 1000 entries"},
	} {
		var out, errOut bytes.Buffer
		code := run([]string{"catalog", "plan", c.dir}, append(c.env, "LOOM_DATA_DIR="+t.TempDir()), nil, &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.says) || out.Len() > 0 {
			t.Errorf("%s: exit status %d, %s%s; want %d, “%s”", name, code, out.String(), errOut.String(), c.code, c.says)
		}
	}
}

func writeTo(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
