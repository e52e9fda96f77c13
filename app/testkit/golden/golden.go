// Package golden compares what code produces with files that are reviewed like code.
// The flag -update of a test rewrites them.
//
// Imported by _test.go files only.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"
)

// Update reports whether the files are to be rewritten.
var Update = flag.Bool("update", false, "rewrite the golden files")

// File compares got with the file at path, or writes it there.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and review the difference\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// Render returns the markup of a component.
func Render(t testing.TB, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	hash   = regexp.MustCompile(`/static/[0-9a-f]{12}/`)
	script = regexp.MustCompile(`<script (defer|type="module") src="/static/`)
	// refused is markup that the content security policy refuses, and texts of models
	// that must be escaped.
	refused = []string{"style=", "onclick", "hx-on", "javascript:", "<script", "a<b", "<2>"}
)

// HTML compares components with testdata/NAME.html. Lines are broken between elements, so
// that a difference can be read. Scripts are refused but those of static files.
func HTML(t *testing.T, components map[string]templ.Component) {
	for name, component := range components {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.ReplaceAll(hash.ReplaceAllString(Render(t, component), "/static/HASH/")+"\n", "><", ">\n<")
			markup := script.ReplaceAllString(got, "")
			for _, bad := range refused {
				if strings.Contains(markup, bad) {
					t.Errorf("the markup contains %s", bad)
				}
			}
			File(t, filepath.Join("testdata", name+".html"), got)
		})
	}
}
