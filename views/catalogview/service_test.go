package catalogview_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/testkit/golden"
	"loom/views/catalogview"
	"loom/views/ui"
)

func TestGoldenService(t *testing.T) {
	t.Parallel()
	golden.HTML(t, map[string]templ.Component{
		"service": catalogview.ServicePage(catalogview.ServiceModel{Name: "nginx", Label: "Web <server>", Description: "Pages.", Version: 2, Deprecated: true,
			Facts: []ui.Def{{Term: "Provides", Text: "web", Mono: true}}, Ties: ui.TiesModel{ID: "relations", Nothing: "It has nothing to do with other services."},
			Actions: []catalogview.ActionRow{{Action: "install", Means: "Once.", Automator: "shell"}}, Links: []ui.Def{{Term: "Page", Text: "http://%ip.self%/", Mono: true}},
			Templates: []catalogview.TemplateOf{{Name: "web", Href: "/catalog/web", Default: true}, {Name: "big", Href: "/catalog/big"}}, EditHref: "/admin/services/nginx",
			JSON: ui.JSONModel{ID: "json", Text: "{}", Raw: "/catalog/services/nginx?as=json"}}),
		"service-bare": catalogview.ServicePage(catalogview.ServiceModel{Name: "bare", Ties: ui.TiesModel{ID: "relations", Nothing: "It has nothing to do with other services."}}),
	})
}
