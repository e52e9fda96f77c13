package catalogview_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/catalogview"
	"loom/views/ui"
)

func TestGoldenService(t *testing.T) {
	t.Parallel()
	golden.HTML(t, map[string]templ.Component{
		"service": catalogview.ServicePage(catalogview.ServiceModel{Base: loom.Base{Name: "nginx", Label: "Web <server>", Description: "Pages.", Version: 2, Deprecated: true},
			Settings: []catalogview.SettingRow{{Name: "Page title", Help: "Shown on top.", Wants: "One line of text", Default: "Hello"}}, Ties: ui.TiesModel{ID: "relations", Nothing: "It has nothing to do with other services."},
			Templates: []catalogview.TemplateOf{{Name: "web", Default: true}, {Name: "big"}}, EditHref: "/admin/services/nginx"}),
		"service-bare": catalogview.ServicePage(catalogview.ServiceModel{Base: loom.Base{Name: "bare"}, Ties: ui.TiesModel{ID: "relations", Nothing: "It has nothing to do with other services."}}),
	})
}
