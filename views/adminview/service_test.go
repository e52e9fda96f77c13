package adminview_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/testkit/golden"
	"loom/views/adminview"
	"loom/views/ui"
)

func TestGoldenService(t *testing.T) {
	t.Parallel()
	picture := ui.TiesModel{ID: "relations", Title: "What nginx has to do with other services", Description: "1 service with 0 relations. The table below says the same.", Width: 208, Height: 84,
		Boxes: []ui.TieBox{{ID: "s0", X: 16, Y: 16, Sort: ui.TieService, Title: "nginx", Line: "4 actions", Label: "nginx, 4 actions", Middle: true}}, Rows: []ui.TieRow{{Name: "nginx", Middle: true}}}
	hops := ui.FieldModel{Name: "picture.hops", Label: "How far it reaches", Kind: ui.FieldSelect, Options: []ui.Option{{Value: "1", Label: "1 hop", Selected: true}}}
	templates := []ui.Option{{Value: "web", Label: "web", Selected: true}, {Value: "bare", Label: "bare (does not name it)"}}
	result := adminview.OrderResult{Template: "web", Notes: []string{"For the smallest cluster: 1 node."}, Rows: []adminview.OrderRow{
		{Stage: "1", Others: []string{"create × 2"}}, {Stage: "2", Own: []string{"install"}, Others: []string{"install <b>", "install c"}, More: 3}}}
	golden.HTML(t, map[string]templ.Component{
		"order":         adminview.OrderSection(adminview.OrderModel{Service: "nginx", Action: "/admin/services/nginx", Templates: templates, Result: result}),
		"order-none":    adminview.OrderSection(adminview.OrderModel{Service: "nginx", Action: "/admin/services/nginx"}),
		"order-problem": adminview.OrderAnswer("nginx", adminview.OrderResult{Template: "web", Problem: "No cluster of web can have it.", Reasons: []string{"nginx needs “x”."}}),
		"draft-picture": adminview.Picture(adminview.DraftPicture{ID: "draft-picture", StepURL: "/admin/services/new", Watch: "dependencies", Hops: hops, Button: ui.ButtonModel{Label: "Draw again"}, Ties: picture}),
		"draft-unread":  adminview.Picture(adminview.DraftPicture{ID: "draft-picture", StepURL: "/admin/services/new", Watch: "dependencies", Hops: hops, Button: ui.ButtonModel{Label: "Draw again"}, Problem: "It cannot be read."}),
		"draft-order": adminview.Order(adminview.DraftOrder{ID: "draft-order", Service: "nginx", Template: ui.FieldModel{Name: "order.template", Label: "Template", Kind: ui.FieldSelect, Options: templates},
			Button: ui.ButtonModel{Label: "Show the order"}, Result: result}),
		"copy-action": adminview.CopyAction("copy-action", ui.FieldModel{Name: "copy.from", Label: "Copy", Kind: ui.FieldSelect, Options: []ui.Option{{Value: "nginx/start", Label: "nginx: start"}}},
			ui.FieldModel{Name: "copy.to", Label: "as", Kind: ui.FieldSelect}, ui.ButtonModel{Label: "Copy action"}),
		"link-patterns": adminview.LinkPatterns([]ui.Def{{Term: "%host.self%", Text: "the node's host name"}}),
		"suggestions":   adminview.Suggestions("scripts", []ui.Option{{Value: "a.sh", Label: "version 2, active"}}),
	})
}
