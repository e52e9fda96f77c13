package catalogview_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/catalogview"
	"loom/views/ui"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	gallery := catalogview.GalleryModel{Text: "2 templates", Next: "/catalog?after=x", Cards: []catalogview.TemplateCard{
		{Base: loom.Base{Name: "web", Label: "Web <cluster>", Description: "Pages."}, Size: "2–5 nodes", Services: "nginx", Lease: "no end"},
		{Base: loom.Base{Name: "broken"}, Size: "1 node", Services: "none", Lease: "1 day", Problem: "There is no template “base”."},
	}}
	golden.HTML(t, map[string]templ.Component{
		"gallery":       catalogview.GalleryPage(gallery),
		"gallery-empty": catalogview.GalleryPage(catalogview.GalleryModel{Admin: true}),
		"gallery-none":  catalogview.GalleryPage(catalogview.GalleryModel{Q: "zzz"}),
		"template": catalogview.TemplatePage(catalogview.TemplateModel{Base: loom.Base{Name: "web", Label: "Web", Description: "Pages.", Version: 3, Deprecated: true},
			Example: &catalogview.ExampleModel{Self: "/catalog/web", Nodes: "3", Layout: ui.LayoutPictureModel{ID: "example-layout", Groups: []ui.LayoutPictureGroup{{Count: 3, Services: []string{"nginx"}, Hardware: "small", Image: "debian"}}}},
			Facts:   []ui.Def{{Term: "Size", Text: "2 nodes"}}, Rules: []string{"a and b are never on the same node."},
			Services: []catalogview.ServiceRow{{Name: "nginx", Description: "Web server", Default: true}, {Name: "redis", Needs: "requires disk"}},
			EditHref: "/admin/templates/web"}),
		"template-bare": catalogview.TemplatePage(catalogview.TemplateModel{Base: loom.Base{Name: "bare"}, Problem: "It names no provider."}),
	})
}
