package ui_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/a-h/templ"

	"loom/views/ui"
	"loom/views/ui/gallery"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var hash = regexp.MustCompile(`/static/[0-9a-f]{12}/`)

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every component in every state, as the gallery shows it. Lines are broken
// between elements so that a difference can be read.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, component := range map[string]templ.Component{
		"badges": gallery.Badges(), "buttons": gallery.Buttons(), "messages": gallery.Messages(), "table": gallery.Table(),
		"fields": gallery.Fields(), "choices": gallery.Choices(), "progress": gallery.Progress(), "dag": gallery.DAG(),
		"check": gallery.Check(), "log": gallery.Log(), "facts": gallery.Facts(), "charts": gallery.Charts(),
		"dialog": ui.DialogContent("Delete cluster shop-front"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			html := hash.ReplaceAllString(render(t, component), "/static/HASH/")
			got := bytes.ReplaceAll([]byte(html+"\n"), []byte("><"), []byte(">\n<"))
			path := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (run with -update to write it)", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; run with -update and review the difference", path)
			}
		})
	}
}
