package web

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

func resourceCrumbs(last string) []ui.Crumb {
	return []ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Plugin resources", Href: route.AdminResources()}, {Label: last}}
}

// adminResource shows a version of a resource: what is in it, the other versions,
// and how it differs from the one before.
func (s *Server) adminResource(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, version, _, err := resourceRef(r.URL.Query())
	if err != nil {
		return err
	}
	versions, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		return err
	}
	slices.SortFunc(versions, func(a, b loom.Resource) int { return b.Version - a.Version })
	at := slices.IndexFunc(versions, func(v loom.Resource) bool { return v.Version == version })
	if at < 0 {
		return noResource(ref, version)
	}
	shown := versions[at]
	content, err := s.Catalog.ResourceContent(r.Context(), actor, shown)
	if err != nil {
		return err
	}
	users, err := s.resourceUsers(r, actor, ref)
	if err != nil {
		return err
	}
	state := ui.ResourceState(shown.Status())
	m := officeview.SheetModel{Title: ref.Name + ", version " + strconv.Itoa(version), State: &state}
	if content.Text != "" {
		m.Actions = []ui.ButtonModel{{Label: "Write a new version", Icon: "edit", Href: resourceQuery(shown, route.AdminResources()) + "#upload"}}
	}
	m.Parts = []templ.Component{ui.Definitions([]ui.Def{
		{Term: "Used by", Text: ref.Plugin + " · " + ref.Type}, {Term: "Size", Text: sizeOf(shown.Size)}, {Term: "SHA-256", Value: ui.CopyText(shown.SHA256, "checksum")},
		{Term: "Format", Text: shown.Format}, {Term: "Uploaded", Value: ui.Time(shown.Created, s.now())}, {Term: "By", Text: string(shown.Author)},
		{Term: "Named by", Value: adminview.ResourceUsers(users)},
	}), ui.Banner(ui.BannerModel{Tone: ui.ToneIdle, Text: resourceHelp[shown.Status()]}), adminview.ResourceActions(versionRow(shown)), resourceContent(content)}
	if at+1 < len(versions) && content.Text != "" {
		before, err := s.Catalog.ResourceContent(r.Context(), actor, versions[at+1])
		if err != nil {
			return err
		}
		if before.Text != "" {
			m.Parts = append(m.Parts, resourceDiff(versions[at+1].Version, before.Text, content.Text))
		}
	}
	uses, err := s.Catalog.ResourceClusters(r.Context(), actor, ref, versions)
	if err != nil {
		return err
	}
	if ref.Kind == string(loom.KindAutomatorType) {
		m.Parts = append(m.Parts, usesCard(versions, uses))
	}
	m.Parts = append(m.Parts, s.versionGrid(versions, version))
	return s.sheet(w, r, actor, http.StatusOK, adminFrame(ref.Name, route.AdminResources(), resourceCrumbs(ref.Name)...), m)
}

// resourceHelp says what a state means and what the next sync does.
var resourceHelp = map[loom.ResourceStatus]string{
	loom.ResourceInactive: "Inactive: not in use, and the next sync leaves it so. Stage it to put it in use.",
	loom.ResourceStaged:   "Staged: not in use yet; the next sync puts it in use, in place of any other version.",
	loom.ResourceActive:   "Active: tasks that start now use it. Recall it, or stage another version, to take it out of use with the next sync.",
	loom.ResourceRecalled: "Recalled: in use until the next sync, which takes it out of use.",
}

func resourceContent(c catalog.ResourceContent) templ.Component {
	var parts []templ.Component
	if c.Odd != "" {
		parts = append(parts, ui.Banner(ui.BannerModel{Tone: ui.ToneWarn, Text: c.Odd}))
	}
	switch {
	case c.Secret:
		parts = append(parts, officeview.Text("It is sealed and never shown."))
	case c.Binary:
		parts = append(parts, officeview.Text("It is no text, so it is not shown."))
	case c.Large:
		parts = append(parts, officeview.Text("It is too large to be shown."))
	case c.Text != "":
		parts = append(parts, ui.Code(ui.CodeModel{ID: "content", Label: "Content", Text: c.Text}))
	case len(c.Files) > 0:
		grid := officeview.GridModel{ID: "files", Caption: "Files of the archive", Columns: []ui.Column{{Label: "Name"}, {Label: "Size", Numeric: true}, {Label: "Mode", Low: true}}}
		for _, f := range c.Files {
			grid.Rows = append(grid.Rows, []officeview.Cell{{Text: f.Name, Mono: true}, {Text: sizeOf(f.Size)}, {Text: f.Mode, Mono: true}})
		}
		if c.More {
			grid.Pages.Text = "The first " + strconv.Itoa(len(c.Files)) + " files"
		}
		parts = append(parts, officeview.Grid(grid))
	case c.Odd == "":
		parts = append(parts, officeview.Text("It is empty."))
	}
	return officeview.Card("content-title", "Content", parts...)
}

// usesCard says which clusters use which version of a file.
func usesCard(versions []loom.Resource, uses map[int][]catalog.ResourceCluster) templ.Component {
	grid := officeview.GridModel{ID: "uses", Caption: "Clusters by version", ShowCaption: true, Columns: []ui.Column{{Label: "Version"}, {Label: "Nodes", Numeric: true}, {Label: "Clusters"}},
		Empty: ui.EmptyModel{Icon: "cluster", Text: "No cluster is known to use it."}}
	add := func(version int, name officeview.Cell) {
		nodes := 0
		for _, use := range uses[version] {
			nodes += use.Nodes
		}
		if nodes > 0 {
			grid.Rows = append(grid.Rows, []officeview.Cell{name, {Text: strconv.Itoa(nodes)}, {Part: adminview.ResourceClusters(useLinks(uses[version]))}})
		}
	}
	for _, v := range versions {
		add(v.Version, officeview.Cell{Text: strconv.Itoa(v.Version), Href: resourceURL(v)})
	}
	add(0, officeview.Cell{Text: "a deleted version"})
	return officeview.Grid(grid)
}

// maxUses is how many clusters of a version are named before the rest is counted.
const maxUses = 50

func useLinks(uses []catalog.ResourceCluster) (links []adminview.Use) {
	for i, use := range uses {
		if i == maxUses {
			return append(links, adminview.Use{Name: "and " + strconv.Itoa(len(uses)-i) + " more"})
		}
		links = append(links, adminview.Use{Name: use.Name, Href: route.Cluster(use.Cluster), Field: ui.Count(use.Nodes, "node", "nodes")})
	}
	return links
}

func (s *Server) versionGrid(versions []loom.Resource, shown int) templ.Component {
	grid := officeview.GridModel{ID: "versions", Caption: "Versions", ShowCaption: true, Now: s.now(),
		Columns: []ui.Column{{Label: "Version"}, {Label: "State"}, {Label: "Size", Numeric: true, Low: true}, {Label: "SHA-256", Low: true}, {Label: "Uploaded", Low: true}, {Label: "By", Low: true}, {Label: "Actions", LabelHidden: true}}}
	for _, v := range versions {
		state := ui.ResourceState(v.Status())
		first := officeview.Cell{Text: strconv.Itoa(v.Version), Href: resourceURL(v)}
		if v.Version == shown {
			first = officeview.Cell{Text: strconv.Itoa(v.Version), Sub: "this one"}
		}
		grid.Rows = append(grid.Rows, []officeview.Cell{first, {State: &state}, {Text: sizeOf(v.Size)}, {Text: v.SHA256[:min(12, len(v.SHA256))], Mono: true}, {Time: v.Created}, {Text: string(v.Author)}, {Part: adminview.ResourceActions(versionRow(v))}})
	}
	return officeview.Grid(grid)
}

// versionRow is what can be done with a version on its page.
func versionRow(v loom.Resource) adminview.ResourceRow {
	slated := 0
	if v.Slated {
		slated = v.Version
	}
	return resourceRow(v, slated, adminview.BackShow)
}

// resourceURL is the page of a version.
func resourceURL(v loom.Resource) string { return resourceQuery(v, adminview.ResourceShow()) }

// resourceQuery is an address that says which version it is about.
func resourceQuery(v loom.Resource, base string) string {
	return adminview.ResourceRef{Kind: v.Kind, Plugin: v.Plugin, Type: v.Type, Name: v.Name, Version: strconv.Itoa(v.Version)}.Query(base)
}

func resourceDiff(before int, old, fresh string) templ.Component {
	budget := lineBudget(maxDiffCells)
	lines, _ := budget.diffLines(strings.Split(old, "\n"), strings.Split(fresh, "\n"), math.MaxInt)
	if len(lines) == 0 {
		return officeview.Card("diff-title", "Against version "+strconv.Itoa(before), officeview.Text("The text is the same."))
	}
	return officeview.Card("diff-title", "Against version "+strconv.Itoa(before), ui.Code(ui.CodeModel{ID: "diff", Label: "Changed lines: + put in, − taken out", Text: strings.Join(lines, "\n")}))
}

// adminResourceSyncAsk shows what a sync would do, and who has fetched what.
func (s *Server) adminResourceSyncAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	set, fetches, err := s.Catalog.Fetched(r.Context(), actor)
	if err != nil {
		return err
	}
	m := officeview.SheetModel{Title: "Sync of plugin resources", Intro: "A sync puts all staged versions in use and takes all recalled ones out of use, at once. Tasks that run keep the files they began with."}
	m.Parts = []templ.Component{syncGrid(resources)}
	if staged, recalled := waiting(resources); staged+recalled > 0 {
		m.Parts = append(m.Parts, officeview.Act(adminview.ResourceSync(), ui.ButtonModel{Label: "Sync now", Busy: "Syncing…", Icon: "rotate", Kind: ui.Primary, Submit: true}))
	}
	m.Parts = append(m.Parts, s.fetchGrid(set, fetches))
	return s.liveSheet(w, r, actor, route.TopicTenant(), adminFrame("Sync", route.AdminResources(), resourceCrumbs("Sync")...), m)
}

// syncGrid lists what changes by name: the version in use now, and that after.
func syncGrid(resources []loom.Resource) templ.Component {
	type change struct{ now, then *loom.Resource }
	byRef, order := map[loom.ResourceRef]*change{}, []loom.ResourceRef{}
	for i, r := range resources {
		if !r.Live && !r.Slated {
			continue
		}
		c := byRef[r.ResourceRef]
		if c == nil {
			c = &change{}
			byRef[r.ResourceRef] = c
			order = append(order, r.ResourceRef)
		}
		if r.Live {
			c.now = &resources[i]
		}
		if r.Slated {
			c.then = &resources[i]
		}
	}
	grid := officeview.GridModel{ID: "outcome", Caption: "What a sync changes now", ShowCaption: true, Columns: []ui.Column{{Label: "Resource"}, {Label: "Change"}, {Label: "Version"}},
		Empty: ui.EmptyModel{Icon: "check-circle", Text: "Nothing waits for a sync.", More: "Plugin resources", MoreHref: route.AdminResources()}}
	for _, ref := range order {
		c := byRef[ref]
		row := []officeview.Cell{{Text: ref.Name, Mono: true, Sub: ref.Plugin + " · " + ref.Type}, {}, {}}
		switch {
		case c.now == c.then:
			continue
		case c.now == nil:
			row[1].State, row[2].Text = &ui.State{Word: "Added", Icon: "plus", Tone: ui.ToneOK}, strconv.Itoa(c.then.Version)
			row[2].Href = resourceURL(*c.then)
		case c.then == nil:
			row[1].State, row[2].Text = &ui.State{Word: "Removed", Icon: "minus", Tone: ui.ToneBad}, strconv.Itoa(c.now.Version)
			row[2].Href = resourceURL(*c.now)
		default:
			row[1].State, row[2].Text = &ui.State{Word: "Replaced", Icon: "rotate", Tone: ui.ToneWarn}, strconv.Itoa(c.now.Version)+" → "+strconv.Itoa(c.then.Version)
			row[2].Href = resourceURL(*c.then)
		}
		grid.Rows = append(grid.Rows, row)
	}
	return officeview.Grid(grid)
}

func (s *Server) fetchGrid(set int, fetches []catalog.ResourceFetch) templ.Component {
	grid := officeview.GridModel{ID: "fetches", Caption: "Who has fetched set " + strconv.Itoa(set), ShowCaption: true, Now: s.now(),
		Columns: []ui.Column{{Label: "Host of provisioners"}, {Label: "State"}, {Label: "Has set", Numeric: true}, {Label: "Fetched"}},
		Empty:   ui.EmptyModel{Icon: "server", Text: "No provisioner has fetched anything yet; each does with its next task."}}
	for _, f := range fetches {
		state := ui.State{Word: "Has it", Icon: "check-circle", Tone: ui.ToneOK}
		if f.Set < set {
			state = ui.State{Word: "With its next task", Icon: "clock", Tone: ui.ToneIdle}
		}
		grid.Rows = append(grid.Rows, []officeview.Cell{{Text: f.Host, Mono: true}, {State: &state}, {Text: strconv.Itoa(f.Set)}, {Time: f.Time}})
	}
	return officeview.Grid(grid)
}
