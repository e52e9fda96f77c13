package adminview_test

import (
	"testing"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/adminview"
	"loom/views/formview"
	"loom/views/sharedview"
	"loom/views/ui"
)

var now = time.Date(2026, time.June, 9, 14, 0, 0, 0, time.UTC)

func head() adminview.HeadModel {
	return adminview.HeadModel{Kind: loom.KindService, Name: "nginx", Deprecated: true, Tabs: []ui.Tab{{Label: "Details", Href: "/admin/services/nginx", Current: true}},
		EditHref: "/e", Menu: []ui.MenuItem{{Label: "Duplicate", Href: "/d"}}, Old: "This is version 1; the newest is 2.", OldAction: "Restore as new", OldHref: "/r"}
}

// file is a script that a failed task led to, or an archive that nothing uses.
func file(script bool) adminview.FileModel {
	r := loom.Resource{ResourceRef: loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "a.sh"}, Version: 2, Live: true, Slated: true, Size: 20, SHA256: "0123456789abcdef", Created: now.Add(-time.Hour), Author: "ana"}
	if !script {
		r.Type, r.Name, r.Format, r.Live, r.Slated = "archives", "site", "archive", false, false
		return adminview.FileModel{Resource: r, Versions: []loom.Resource{r}, Content: loom.ResourceContent{Files: []loom.ArchiveFile{{Name: "site/a.txt", Size: 2, Mode: "-rw-r--r--"}}, More: true, Odd: "Odd."}, Now: now}
	}
	old := r
	old.Version, old.Live, old.Slated = 1, false, false
	return adminview.FileModel{Resource: r, Versions: []loom.Resource{r, old}, Content: loom.ResourceContent{Text: "configre\n"}, Text: "configre\n", Check: loom.TextCheck{Language: "bash", Checked: true, Problem: "“then” is missing", Line: 1, Column: 2},
		Use:      loom.ResourceUse{Entries: []loom.ResourceUser{{Kind: loom.KindService, Name: "web", Actions: []loom.TaskAction{"install", "start"}}, {Kind: loom.KindProvider, Name: "far"}}, Files: []loom.Resource{old}},
		Clusters: map[int][]loom.ResourceCluster{1: {{Cluster: 42, Name: "shop", Nodes: 3}}, 2: {{Cluster: 43, Name: "blog", Nodes: 1}}}, Before: 1, Changes: []string{"+ configre"},
		Failed: &adminview.FailedTask{Task: loom.Task{Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 42, Number: 1}, Number: 3}}, Title: "Start web on node 1001", ClusterName: "shop", Line: 1, Cause: "configre: not found"}, Now: now}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	list := adminview.ListModel{Kind: loom.KindService, Now: now, NameSort: "/n", UpdateSort: "/u", NameOrder: ui.Ascending, Text: "1 service"}
	full := list
	full.Rows = []adminview.EntryRow{{Entry: &loom.Base{Name: "nginx", Label: "Web <server>", Description: "Pages", Deprecated: true, Labels: map[string]string{"team": "<web>"}}, Href: "/admin/services/nginx", Icon: "box",
		Info: loom.VersionInfo{Version: 3, Author: "ana", Time: now}, Uses: 2, Worst: loom.FindingError}}
	full.Facets = []ui.FieldModel{{Name: "label", Label: "Label", Kind: ui.FieldSelect, Options: []ui.Option{{Label: "Any label"}}}}
	full.Bulk = sharedview.BulkBar{Noun: "service", Total: 2, All: "2 services", Buttons: []ui.ButtonModel{{Label: "Delete", FormAction: "/bulk"}}}
	filtered := list
	filtered.Q, filtered.Filtered = "zzz", true
	check := adminview.CheckModel{Checked: true, Problems: []adminview.Problem{{Path: "name", Message: "A name is required.", Line: 2, Column: 3}}, Warnings: []adminview.Problem{{Path: "Default services", Message: "There is no service “x”.", FieldID: "f-defaults-services"}}, Unknown: []string{"colour"}}
	editor := adminview.EditorModel{Kind: loom.KindProvider, Name: "far", Action: "/a", Body: "{<}", Expected: "3", Note: "Secrets are not sent back.", Message: "This is not JSON: line 1, column 2.",
		Line: 1, Column: 2, Check: check, Errors: ui.FormErrors{Title: "The provider was not saved."},
		Types: []adminview.PluginHelp{{Name: "cloudy", Description: "A cloud.", Fields: []adminview.PluginField{{Name: "access", Type: "password", Tip: "From the console.", Sealed: true}}}}}
	components := map[string]templ.Component{
		"overview": adminview.OverviewPage(adminview.OverviewModel{Groups: findingGroups()}),
		"fix": adminview.FixForm(adminview.FixModel{Hidden: []string{"code", "dangling"}, Chosen: []string{"digest", "ab"}, Button: "Remove from 2 entries", More: 1,
			Changes: []ui.ChangeModel{{Sign: ui.SignRemove, Object: "hardware type big", Name: "providermap.<far>", Old: "1"}}}),
		"fix-choose":     adminview.FixForm(adminview.FixModel{Choose: &ui.FieldModel{Name: "to", Label: "Use instead", Error: "There is no provider “<x>”."}}),
		"overview-empty": adminview.OverviewPage(adminview.OverviewModel{Empty: true}),
		"overview-fine":  adminview.OverviewPage(adminview.OverviewModel{}),
		"list":           adminview.ListPage(full), "list-empty": adminview.ListPage(list), "list-none": adminview.ListPage(filtered),
		"entry": adminview.EntryPage(adminview.EntryModel{HeadModel: head(), Now: now, Description: "Pages", Facts: []ui.Def{{Term: "Provides", Text: "web"}}, Version: "1", Author: "ana", Updated: now,
			ShowChanges: true, Changes: []ui.ChangeModel{{Sign: ui.SignChange, Name: "label", Old: "a", New: "b"}},
			Sections: []adminview.Section{{ID: "actions", Title: "Actions", Keys: true, Columns: []ui.Column{{Label: "Action"}, {Label: "Automator"}}, Rows: [][]string{{"start", "shell"}}},
				{ID: "none", Title: "Links", Note: "None.", Columns: []ui.Column{{Label: "Label"}}}, {ID: "rules", Title: "Rules", Items: []string{"One."}}, {ID: "config", Title: "Config", Code: "{}"}}}),
		"versions": adminview.VersionsPage(adminview.VersionsModel{HeadModel: head(), Now: now, Rows: []adminview.VersionRow{
			{VersionInfo: loom.VersionInfo{Version: 3, Author: "ana", Time: now}, Href: "/3", Newest: true, ClustersHref: "/c3"},
			{VersionInfo: loom.VersionInfo{Version: 2, Author: "ana", Time: now, Released: true, Clusters: 4}, Href: "/2", RestoreHref: "/r2", Current: true, ClustersHref: "/c2"},
			{VersionInfo: loom.VersionInfo{Version: 1, Author: "eve", Time: now, Released: true, Deprecation: "Loses data."}, Href: "/1", RestoreHref: "/r", ClustersHref: "/c1"}}}),
		"uses":           adminview.UsesPage(adminview.UsesModel{HeadModel: head(), Uses: []adminview.Use{{Kind: "template", Name: "web", Href: "/w", Field: "defaults.services"}}}),
		"json":           adminview.EntryJSONPage(adminview.EntryJSONModel{HeadModel: head(), JSON: ui.JSONModel{ID: "json", Text: "{}", Raw: "/raw"}}),
		"delete":         adminview.DeleteForm(adminview.DeleteModel{Kind: loom.KindService, Name: "nginx", Versions: "2 versions", Back: "/b", Uses: []adminview.Use{{Kind: "template", Name: "web", Href: "/w"}}}, "/x"),
		"delete-blocked": adminview.DeleteForm(adminview.DeleteModel{Kind: loom.KindService, Name: "nginx", Blocked: true, Uses: []adminview.Use{{Kind: "template", Name: "web", Href: "/w"}}, Back: "/b"}, "/x/deprecate"),
		"editor":         adminview.EditorPage(editor), "editor-form": adminview.EditorPage(formEditor()),
		"compare": adminview.ComparePage(adminview.CompareModel{HeadModel: head(), Action: "/c", Title: "From version 1 to version 2", From: []ui.Option{{Value: "1", Label: "Version 1", Selected: true}},
			To: []ui.Option{{Value: "2", Label: "Version 2", Selected: true}}, Changes: []ui.ChangeModel{{Sign: ui.SignCreate, Name: "label", New: "a"}}}),
		"check-fine": adminview.CheckPanel(adminview.CheckModel{Checked: true}),
		"conflict": adminview.ConflictPage(adminview.ConflictModel{Name: "nginx", Action: "/a", StepURL: "/step", HasForm: true, Message: "It is at version 3.", Now: now, Author: "eve", Time: now.Add(-time.Hour),
			Version: "3", Expected: "3", Base: "{0}", Theirs: "{1}", Mine: "{2}", Note: "Secrets.", TakeHref: "/t", Changes: []ui.ChangeModel{{Sign: ui.SignRemove, Name: "label", Old: "a"}}}),
		"conflict-gone": adminview.ConflictPage(adminview.ConflictModel{Name: "nginx", Action: "/a", Gone: true, Expected: "0", Theirs: "(deleted)", Mine: "{}", TakeHref: "/t"}),
		"files":         adminview.FilesPage(adminview.FilesModel{Waiting: "1 file staged."}),
		"file":          adminview.FilePage(file(true)),
		"file-archive":  adminview.FilePage(file(false)),
		"file-new":      adminview.NewFilePage(adminview.NewFileModel{Types: []ui.Option{{Value: "a/b/c", Label: "b: c"}}, FileHelp: "At most 1 GiB.", Errors: ui.FormErrors{Title: "File not saved."}}),
		"file-new-none": adminview.NewFilePage(adminview.NewFileModel{}),
		"file-withdraw": adminview.FileAsk(adminview.AskModel{Resource: file(true).Resource, Act: adminview.FileWithdraw, Text: "It goes.", Button: "Withdraw a.sh v2", Busy: "Withdrawing…", Use: file(true).Use}),
	}
	for _, kind := range loom.TenantKinds {
		components["new-"+string(kind)] = adminview.EditorPage(adminview.EditorModel{Kind: kind, Action: "/a", Body: "{}"})
	}
	golden.HTML(t, components)
}

// findingGroups has a group of each sort.
func findingGroups() []adminview.FindingGroup {
	var found []loom.Finding
	add := func(f loom.Finding, kind loom.EntityKind, names ...string) {
		for _, name := range names {
			f.Kind, f.Name = kind, name
			found = append(found, f)
		}
	}
	far := loom.Finding{Severity: loom.FindingWarning, Code: loom.FindingDangling, Value: "<far>", Missing: loom.KindProvider, Message: "There is no provider “<far>”."}
	add(far, loom.KindHardwareType, "big", "small")
	add(far, loom.KindImageType, "linux")
	for _, name := range []string{"a", "b"} {
		add(loom.Finding{Severity: loom.FindingWarning, Code: loom.FindingDangling, Value: name, Missing: loom.KindService}, loom.KindTemplate, "site")
		add(loom.Finding{Severity: loom.FindingError, Code: loom.FindingDangling, Value: name, File: loom.ResourceRef{Kind: "automatortypes", Plugin: "chef-solo", Type: "cookbooks", Name: name}}, loom.KindService, "web", "db")
		add(loom.Finding{Severity: loom.FindingWarning, Code: loom.FindingPointless, Value: "field_" + name, Unknown: true}, loom.KindProvider, "east")
		add(loom.Finding{Severity: loom.FindingError, Code: loom.FindingIncomplete, Message: "It is incomplete: set " + name + "."}, loom.KindProvider, name)
	}
	add(loom.Finding{Severity: loom.FindingError, Code: loom.FindingDangling, Value: "chef", Missing: loom.KindAutomatorType}, loom.KindService, "old")
	add(loom.Finding{Severity: loom.FindingError, Code: loom.FindingDangling, Value: "run.sh", File: loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "run.sh"}}, loom.KindService, "job")
	add(loom.Finding{Severity: loom.FindingWarning, Code: loom.FindingUnchecked, Message: "Nothing checks whether these services work: a and b."}, loom.KindService, "a")
	var groups []adminview.FindingGroup
	for _, g := range loom.GroupFindings(found) {
		groups = append(groups, adminview.FindingGroup{FindingGroup: g, Rows: []adminview.FindingRow{{Name: g.First().Name, Href: "/e", Text: "mapping", Links: []adminview.LostLink{{Label: "Edit", Href: "/edit"}}}}})
	}
	return groups
}

// formEditor is the editor as a form, with each part that a form can have.
func formEditor() adminview.EditorModel {
	add := ui.ButtonModel{ID: "add", Label: "Add provider", Icon: "plus", Submit: true, Name: "do", Value: "add:map", FormAction: "/step", Attrs: formview.Step("/step", "map")}
	choose := ui.FieldModel{Name: "new:map", Label: "Provider to add", LabelHidden: true, Kind: ui.FieldSelect, Optional: true, Options: []ui.Option{{Value: "far", Label: "far"}}}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	text := ui.FieldModel{Name: "flavor", Label: "Flavor", Error: "Give a value."}
	parts := []templ.Component{
		formview.Group(formview.GroupModel{ID: "map", Legend: "Providers", Error: "One is needed.", Add: &add, Choose: &choose, After: adminview.Unmapped([]string{"far"}, "a machine"),
			Rows: []formview.RowModel{{Title: "local", Note: "type local", Mono: true, Parts: []templ.Component{ui.Field(text)}, Buttons: []ui.ButtonModel{{ID: "rm", Label: "Remove local", Icon: "trash", IconOnly: true}}}}}),
		formview.Group(formview.GroupModel{ID: "none", Empty: "There is none yet."}),
		formview.Pairs(formview.PairsModel{ID: "pairs", Legend: "Others", KeyLabel: "Name", ValueLabel: "Value", BlanksName: "x#blank", Add: add,
			Rows: []formview.PairRow{{Key: ui.FieldModel{Name: "k", Label: "Name of x", LabelHidden: true, Value: "x"}, Value: ui.FieldModel{Name: "v", Label: "Value of x", LabelHidden: true}, Remove: ui.ButtonModel{Label: "Remove x", IconOnly: true, Icon: "trash"}}}}),
		formview.Sealed(formview.SealedModel{Field: ui.FieldModel{Name: "key", Label: "Access key", Kind: ui.FieldPassword}, By: "ana", Time: now.Add(-72 * time.Hour), Now: now}),
		formview.Sets("One of these sets of fields must be complete:", []string{"User, password", "Token"}), adminview.AlsoSealed([]string{"old_token"}), adminview.TestConnection(), adminview.Connection(adminview.ConnectionModel{State: ui.State{Word: "Failed", Icon: "error", Tone: ui.ToneBad}, Time: now.Add(-2 * time.Hour), Now: now, ID: "7", Note: "This is the test of the saved provider.", Steps: []adminview.ConnectionStep{{Name: "Resolve", OK: true, Message: "The name resolves.", Millis: 3}, {Name: "Connect", Message: "<b>connection refused</b>", Millis: 1200}}}),
		adminview.Connection(adminview.ConnectionModel{State: ui.State{Word: "Testing", Icon: "ring", Tone: ui.ToneRun}, Now: now, ID: "8", Poll: "/admin/tests/8?before=7", Before: []adminview.ConnectionStep{{Name: "Resolve", OK: true, Message: "The name resolves.", Millis: 3}}, Choices: []adminview.ConnectionChoices{{ListID: "f-list", Options: []ui.Option{{Value: "r1", Label: "<r>"}}}}}),
		formview.Fold("More", "", true, []templ.Component{formview.Shown("yes?", ui.Field(ui.FieldModel{Name: "yes", Label: "Yes", Kind: ui.FieldCheckbox}))}),
		formview.Pair([]templ.Component{ui.Field(ui.FieldModel{Name: "image", Label: "Image", Suggest: []ui.Option{{Value: "i", Label: "An image"}}})}),
		formview.Echoing(ui.FieldModel{Name: "lease", Label: "Lease", Echo: "lease-echo"}, "Means 7 days."), formview.Refreshing(ui.Field(ui.FieldModel{Name: "type", Label: "Type"}), "/step"),
		formview.Uploading("upload-key", ui.Field(ui.FieldModel{Name: "key", Label: "Key"}), formview.Upload(formview.UploadModel{Title: "Upload a file for Key", Open: true, File: ui.FieldModel{Name: "upload.key", Label: "File", Kind: ui.FieldFile, Optional: true},
			As: ui.FieldModel{Name: "upload.key.as", Label: "Stored as", Optional: true}, Button: add, Said: "Stored version 1 of id.pem.", Link: "Preview release (new tab)", Href: "/sync"})),
		formview.Picker("names?", ui.ChoiceModel{Name: "names", Legend: "Names"}, ui.FieldModel{Name: "names+", Label: "Other names"}),
	}
	return adminview.EditorModel{Kind: loom.KindHardwareType, Name: "big", Action: "/a", StepURL: "/step", Expected: "3", HasForm: true, FormMode: true, Base: `{"name":"big"}`, Changed: true,
		Restored: now.Add(-time.Hour), Now: now, Affects: []adminview.Use{{Kind: "template", Name: "web", Href: "/w"}}, AffectsMore: "and 3 more",
		Sections: []formview.SectionModel{{ID: "a", Title: "A", Help: "What it is.", Parts: parts}, {ID: "b", Title: "B", Errors: 2}, {ID: "c", Title: "C"}, {ID: "d", Title: "D"}},
		Check:    adminview.CheckModel{Checked: true, Problems: []adminview.Problem{{Path: "Provider local, flavor", Message: "Give a value.", FieldID: "f-flavor"}}}}
}
