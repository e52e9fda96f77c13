package static_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type vendored struct {
	Package, Version, Licence, Origin, File, SHA256 string
}

// What is committed is what vendor.json names, byte for byte, and nothing else
// lies in the folder.
func TestVendoredChecksums(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("vendor/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Files  []vendored
		Sprite vendored
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	licences, err := os.ReadFile("vendor/LICENSES.txt")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, v := range append(lock.Files, lock.Sprite) {
		body, err := os.ReadFile(filepath.FromSlash(v.File))
		if err != nil {
			t.Error(err)
			continue
		}
		digest := sha256.Sum256(body)
		if got := hex.EncodeToString(digest[:]); got != v.SHA256 {
			t.Errorf("%s has checksum %s, vendor.json says %s; run make vendor", v.File, got, v.SHA256)
		}
		if v.Package == "" || v.Version == "" || v.Licence == "" || v.Origin == "" {
			t.Errorf("%s lacks package, version, licence or origin", v.File)
		}
		if !strings.Contains(string(licences), v.Package+" "+v.Version) {
			t.Errorf("LICENSES.txt does not name %s %s", v.Package, v.Version)
		}
		named[v.File] = true
	}
	scripts, err := filepath.Glob("vendor/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no vendored scripts: %v", err)
	}
	for _, script := range scripts {
		if !named[filepath.ToSlash(script)] {
			t.Errorf("%s is not named in vendor.json", script)
		}
	}
}
