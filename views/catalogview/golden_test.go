package catalogview_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/a-h/templ"

	"loom/views/catalogview"
	"loom/views/ui"
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

// golden compares components with their files, lines broken between elements.
func golden(t *testing.T, components map[string]templ.Component) {
	for name, component := range components {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			html := hash.ReplaceAllString(render(t, component), "/static/HASH/")
			got := bytes.ReplaceAll([]byte(html+"\n"), []byte("><"), []byte(">\n<"))
			for _, bad := range []string{"style=", "onclick", "hx-on", "javascript:", "<script"} {
				if bytes.Contains(got, []byte(bad)) {
					t.Errorf("the markup holds %s", bad)
				}
			}
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

func TestGolden(t *testing.T) {
	t.Parallel()
	gallery := catalogview.GalleryModel{Text: "2 templates", Next: "/catalog?after=x", Cards: []catalogview.TemplateCard{
		{Name: "web", Label: "Web <cluster>", Description: "Pages.", Size: "2 to 5 nodes", Services: "nginx", Lease: "no end", Href: "/catalog/web", CreateHref: "/clusters/new?template=web"},
		{Name: "broken", Size: "1 node", Services: "none", Lease: "1 day", Href: "/catalog/broken", Problem: "There is no template “base”."},
	}}
	golden(t, map[string]templ.Component{
		"gallery":       catalogview.GalleryPage(gallery),
		"gallery-empty": catalogview.GalleryPage(catalogview.GalleryModel{Admin: true}),
		"gallery-none":  catalogview.GalleryPage(catalogview.GalleryModel{Q: "zzz"}),
		"template": catalogview.TemplatePage(catalogview.TemplateModel{Name: "web", Label: "Web", Description: "Pages.", Version: 3, Deprecated: true,
			Facts: []ui.Def{{Term: "Size", Text: "2 nodes"}}, Rules: []string{"a and b are never on the same node."},
			Services: []catalogview.ServiceRow{{Name: "nginx", Description: "Web server", Default: true}, {Name: "redis", Needs: "requires disk"}},
			Links:    []ui.Def{{Term: "Page", Text: "http://%ip.self%/", Mono: true}}, CreateHref: "/clusters/new", EditHref: "/admin/templates/web",
			JSON: ui.JSONModel{ID: "json", Text: "{}", Raw: "/catalog/web?as=json", Calls: []ui.JSONCall{{Label: "read it", Curl: "curl"}}}}),
		"template-bare": catalogview.TemplatePage(catalogview.TemplateModel{Name: "bare", Problem: "It names no provider."}),
	})
}
