package catalog

import (
	"net/http"
	"net/url"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

const (
	sortName   = "name"
	sortUpdate = "-updateTime"

	showUsable     = "usable"
	showDeprecated = "deprecated"
)

// listQuery is the query string of a list of entries.
type listQuery struct {
	Kind                         loom.EntityKind
	Q, Show, Sort, After, Before string
	catalog.FacetChoice
}

// facetFields are the names of the facets, as the REST API has them.
var facetFields = []string{"label", "provider", "automator", adminview.FieldFindings, "use"}

func readListQuery(kind loom.EntityKind, v url.Values) listQuery {
	return listQuery{Kind: kind, Q: v.Get(adminview.FieldQ), Show: v.Get(adminview.FieldShow), Sort: v.Get(adminview.FieldSort), After: v.Get("after"), Before: v.Get("before"),
		FacetChoice: catalog.FacetChoice{Label: v.Get("label"), Provider: v.Get("provider"), Automator: v.Get("automator"), Findings: v.Get(adminview.FieldFindings), Use: v.Get("use")}}
}

// filters are the parts that say which entries are listed.
func (q listQuery) filters() []string {
	return []string{adminview.FieldQ, q.Q, adminview.FieldShow, q.Show, "label", q.Label, "provider", q.Provider, "automator", q.Automator, adminview.FieldFindings, q.Findings, "use", q.Use}
}

// with gives the list's address with the filters and one more part.
func (q listQuery) with(pairs ...string) string {
	return route.Query(route.AdminKind(q.Kind), append(q.filters(), pairs...)...)
}

func (q listQuery) filtered() bool {
	return q.Q != "" || q.Show != "" || q.FacetChoice != (catalog.FacetChoice{})
}

// input asks for a page of that many rows.
func (q listQuery) input(rows int) catalog.ListInput {
	in := catalog.ListInput{Q: q.Q, FacetChoice: q.FacetChoice, Counted: true, Page: loom.Page{Limit: rows, Sort: q.Sort, After: q.After, Before: q.Before}}
	if q.Show == showUsable || q.Show == showDeprecated {
		deprecated := q.Show == showDeprecated
		in.Deprecated = &deprecated
	}
	return in
}

// adminList lists the entries of a kind, or with ?as=json the same as documents.
func (s *Server) adminList(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		q := readListQuery(kind, r.URL.Query())
		if q.Show == showDeleted {
			return s.deletedList(w, r, actor, kind, q.Q)
		}
		list, err := s.Catalog.Entries(r.Context(), actor, kind, q.input(s.PageRows(r)))
		if err != nil {
			return err
		}
		if r.URL.Query().Get("as") == "json" {
			return httpx.WriteJSON(w, entriesOf(list))
		}
		m := listModel(q, list)
		m.Now = s.Now()
		m.CSV, m.JSON = s.ExportsOf(r)
		if kind == loom.KindProvider {
			if err := s.addTests(r, actor, &m); err != nil {
				return err
			}
		}
		page := page.AdminFrame(adminview.Plural(kind), route.AdminKind(kind))
		return s.Render(w, r, actor, http.StatusOK, page, adminview.ListPage(m))
	}
}

// addTests adds how the last test of each provider went.
func (s *Server) addTests(r *http.Request, actor loom.Actor, m *adminview.ListModel) error {
	tests, err := s.Processes.ProbeOutcomes(r.Context(), actor)
	if err != nil {
		return err
	}
	for i := range m.Rows {
		row := &m.Rows[i]
		row.Test, row.TestHref = notTested, route.AdminProbe(row.Entry.Name)
		t, there := tests[row.Entry.Name]
		switch {
		case !there:
			continue
		case t.Open:
			row.Test = testRuns
		case t.OK:
			row.Test, row.TestTime = testPassed, t.Time
		default:
			row.Test, row.TestTime = testFailed, t.Time
		}
		row.TestOld = !t.Open && savedSince(t.Asked, row.Info.Time)
	}
	return nil
}

func entriesOf(list catalog.List) []loom.Entry {
	entries := make([]loom.Entry, len(list.Items))
	for i, item := range list.Items {
		entries[i] = item.Entry
	}
	return entries
}

func listModel(q listQuery, list catalog.List) adminview.ListModel {
	kind := q.Kind
	m := adminview.ListModel{
		Kind: kind, Q: q.Q, Filtered: q.filtered(), Text: ui.Count(list.Total, kind.Word(), kind.Word()+"s"),
		NameSort: q.with(adminview.FieldSort, sortName), UpdateSort: q.with(adminview.FieldSort, sortUpdate),
		Show:   page.Options(q.Show, "", "Not deleted", showUsable, "Not deprecated", showDeprecated, "Deprecated", showDeleted, "Deleted"),
		Facets: listFacets(q, list.Facets),
	}
	m.Bulk = sharedview.BulkBar{Noun: kind.Word(), Filters: q.filters(), Total: list.Total, All: m.Text, Buttons: bulkButtons(kind)}
	if q.Sort == sortUpdate {
		m.UpdateOrder = ui.Descending
	} else {
		m.NameOrder = ui.Ascending
	}
	if list.Next != "" {
		m.Next = q.with(adminview.FieldSort, q.Sort, "after", list.Next)
	}
	if list.Prev != "" {
		m.Prev = q.with(adminview.FieldSort, q.Sort, "before", list.Prev)
	}
	for _, item := range list.Items {
		meta := item.Entry.Meta()
		m.Rows = append(m.Rows, adminview.EntryRow{Entry: meta, Info: item.VersionInfo, Href: route.AdminEntry(kind, meta.Name),
			Icon: ui.IconOf(kind, meta, adminview.KindIcon(kind)), Uses: list.Facets.Uses[meta.Name], Worst: list.Facets.Worst[meta.Name]})
	}
	return m
}

// findingWords are the values of the facet of findings, the worst first.
var findingWords = []page.FacetValue{
	{Value: string(loom.FindingError), Word: "Errors"}, {Value: string(loom.FindingWarning), Word: "Warnings"}, {Value: string(loom.FindingDangling), Word: "Missing entry or file"},
	{Value: string(loom.FindingIncomplete), Word: "Settings missing or wrong"}, {Value: string(loom.FindingUnsolvable), Word: "No layout"}, {Value: string(loom.FindingCycle), Word: "Circle"},
	{Value: string(loom.FindingMacro), Word: "Macros"}, {Value: string(loom.FindingParameter), Word: "Parameters"}, {Value: string(loom.FindingNoMapping), Word: "No provider"},
	{Value: string(loom.FindingImmutable), Word: "Locked settings"}, {Value: string(loom.FindingPointless), Word: "Without effect"}, {Value: string(loom.FindingInsecure), Word: "Certificates not checked"},
	{Value: string(loom.FindingUnchecked), Word: "No check"},
}

// listFacets are the choices that narrow a list, with how many entries each has.
func listFacets(q listQuery, found catalog.Facets) []ui.FieldModel {
	var facets []ui.FieldModel
	add := func(name, label, all, chosen string, values []page.FacetValue, counts []catalog.FacetCount) {
		if f, some := page.Facet(name, label, all, chosen, values, counts, false); some {
			facets = append(facets, f)
		}
	}
	add("label", "Label", "Any label", q.Label, page.FacetNames(found.Label), found.Label)
	add("provider", "Provider", "Any provider", q.Provider, page.FacetNames(found.Provider), found.Provider)
	add("automator", "Automator", "Any automator", q.Automator, page.FacetNames(found.Automator), found.Automator)
	add(adminview.FieldFindings, "Findings", "Any findings", q.Findings, findingWords, found.Findings)
	add("use", "Use", "Any use", q.Use, []page.FacetValue{{Value: catalog.FacetUnused, Word: "Unused"}}, found.Use)
	return facets
}
