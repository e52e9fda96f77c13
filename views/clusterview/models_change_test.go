package clusterview_test

import (
	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

func scaleModel() clusterview.ChangeModel {
	return clusterview.ChangeModel{
		Cluster: 42, Name: "shop-front", Title: "Scale shop-front", Lead: "Fewer: you choose which ones leave.", Live: true, Back: "/clusters/00000042",
		Hidden: []clusterview.HiddenField{{Name: "kind", Value: "scale"}, {Name: "cluster", Value: "00000042"}},
		Errors: ui.FormErrors{Title: "There is no preview yet.", Items: []ui.FormError{{Field: "numMachines", FieldID: "f-numMachines", Label: "Nodes", Message: "Give another number."}}},
		Parts: []clusterview.FormPart{
			{Field: &ui.FieldModel{Name: "numMachines", Label: "Nodes", Kind: ui.FieldNumber, Value: "2", Min: "1", Error: "Give another number.", Help: "The cluster has 3. It works with 2 to 50 nodes."}},
			{Fold: "Advanced", More: []clusterview.FormPart{{Field: &ui.FieldModel{Name: "onFailure", Label: "If more nodes cannot be made", Kind: ui.FieldSelect, Optional: true, Options: []ui.Option{{Label: "as the template says", Selected: true}}}}}},
		},
		Panel: clusterview.ChangePanel{
			Check: clusterview.CheckPanel{Head: ui.CheckModel{State: ui.CheckFits, Headline: "Removes 1 node with all that is on it."}, Warnings: []string{"The tenant has no workers."}}, For: "2",
			Leaving: &ui.ChoiceModel{Name: "nodes", Legend: "Nodes that leave", Help: "Loom’s choice is ticked.", Choices: []ui.Choice{
				{Value: "n-1", Label: "web1-1001", Description: "nginx"}, {Value: "n-2", Label: "web1-1002", Description: "nginx", Checked: true, Facts: []string{"on its way out already"}}}},
		},
	}
}

func upgradeModel() clusterview.ChangeModel {
	return clusterview.ChangeModel{
		Cluster: 42, Name: "shop-front", Title: "Upgrade shop-front", Lead: "The newest versions replace those of the cluster.", Lost: "What is on the disks is lost.", Live: true, Back: "/clusters/00000042",
		Parts: []clusterview.FormPart{
			{Picker: &ui.ChoiceModel{Name: "services", Legend: "Services", Optional: true, Choices: []ui.Choice{{Value: "nginx", Label: "nginx", Facts: []string{"version 1 → 2"}}}}},
			{Newer: []clusterview.NewerEntry{{Name: "nginx", From: 1, To: 2, More: 3, Changes: []ui.ChangeModel{{Sign: ui.SignChange, Name: "/description", Old: "slow", New: "fast"}}}, {Name: "cache", From: 2, To: 3}}},
			{Pair: []ui.FieldModel{{Name: "batch", Label: "Nodes at a time", Kind: ui.FieldNumber, Optional: true}, {Name: "minHealthy", Label: "Nodes that stay up", Kind: ui.FieldNumber, Optional: true}}},
		},
		Panel: clusterview.ChangePanel{Check: cannotPanel(), More: 4, Changes: []ui.ChangeModel{{Sign: ui.SignChange, Object: "service", Name: "nginx", Detail: "node 1001"}}},
	}
}

func comingPanel() clusterview.ChangePanel {
	return clusterview.ChangePanel{Check: clusterview.CheckPanel{Head: ui.CheckModel{State: ui.CheckFits, Headline: "Adds 1 node."}},
		Coming: []clusterview.ComingNode{{Hostname: "web1-1003", Services: "nginx", Hardware: "small", Image: "debian-12"}}}
}

func askPreview() clusterview.PreviewModel {
	return clusterview.PreviewModel{PreviewView: clusters.PreviewView{Preview: loom.Preview{Kind: loom.ChangeRestart, Hash: "00ff"}, Name: "shop-front", Lead: "Restarts 1 service"}, Title: "Restart services of shop-front?", Apply: "Restart services of shop-front",
		Asked: true, Hidden: []clusterview.HiddenField{{Name: "kind", Value: "restart"}, {Name: "cluster", Value: "00000042"}}, Shown: []string{"restart\tnginx\tnode 1001"}, EditHref: "/edit",
		Effects: []clusterview.EffectGroup{{Sign: ui.SignRestart, Text: "1 service", Lines: []clusterview.Effect{{Text: "nginx", Nodes: "node 1001"}}}}}
}

func leaseModel() clusterview.LeaseModel {
	return clusterview.LeaseModel{
		Cluster: 42, Name: "shop-front", Facts: []ui.Def{{Term: "Expires", Text: "in 2 days"}},
		Chips: []ui.ButtonModel{{Label: "+1 h", Submit: true, Name: "by", Value: "1h"}, {Label: "No expiry", Submit: true, Name: "never", Value: "1"}},
		Day:   ui.FieldModel{Name: "date", Label: "Date", Kind: ui.FieldDate, Value: "2026-06-19"}, Clock: ui.FieldModel{Name: "time", Label: "Time", Kind: ui.FieldTime, Value: "14:00"},
		Zone: "Time zone: UTC", Submit: "Extend",
		Deleted: "After its end the cluster is deleted.",
	}
}

func editModel() clusterview.EditModel {
	return clusterview.EditModel{Cluster: 42, Name: "shop-front",
		Description: ui.FieldModel{Name: "description", Label: "Description", Kind: ui.FieldTextarea, Optional: true, Value: "the shop"},
		Labels:      ui.FieldModel{Name: "labels", Label: "Labels", Kind: ui.FieldTextarea, Optional: true, Mono: true, Value: "team=web"}}
}

func inlineModel() clusterview.EditModel {
	m := editModel()
	m.Inline, m.SeenDescription, m.SeenLabels, m.Description.Autofocus = true, "a shop", "team=web", true
	return m
}

func clashModel() clusterview.EditModel {
	m := inlineModel()
	m.Clash, m.Description.Autofocus = "Somebody else has changed this.", false
	m.Changes = []ui.ChangeModel{{Sign: ui.SignChange, Object: "description", Old: "their shop", New: "the shop"}}
	return m
}

func confirmModel() clusterview.ConfirmModel {
	return clusterview.ConfirmModel{Title: "Leave out task 3", Text: "Install nginx on web-1 will not run.", Post: "/clusters/00000042/operations/1/tasks/3/skip", Back: "/clusters/00000042/operations/1/tasks/3",
		Button: "Leave out task 3", Busy: "Skipping…", Danger: true, Errors: ui.NewFormErrors("Nothing was left out.", []loom.FieldError{{Field: "reason", Message: "Say why the task is left out."}}),
		Fields: []ui.FieldModel{{Name: "reason", Label: "Reason", Kind: ui.FieldTextarea, Error: "Say why the task is left out."}}}
}
