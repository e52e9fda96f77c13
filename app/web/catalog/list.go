package catalog

import (
	"net/http"
	"strconv"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

const (
	sortName   = "name"
	sortUpdate = "-updateTime"

	showUsable     = "usable"
	showDeprecated = "deprecated"
)

// adminList lists the entries of a kind, or with ?as=json the same as documents.
func (s *Server) adminList(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		q := r.URL.Query()
		in := catalog.ListInput{Q: q.Get(adminview.FieldQ), Page: loom.Page{
			Limit: s.PageRows(r), Sort: q.Get(adminview.FieldSort), After: q.Get("after"), Before: q.Get("before"),
		}}
		show := q.Get(adminview.FieldShow)
		if show == showUsable || show == showDeprecated {
			deprecated := show == showDeprecated
			in.Deprecated = &deprecated
		}
		if show == showDeleted {
			return s.deletedList(w, r, actor, kind, in.Q)
		}
		list, err := s.Catalog.Entries(r.Context(), actor, kind, in)
		if err != nil {
			return err
		}
		if q.Get("as") == "json" {
			return httpx.WriteJSON(w, entriesOf(list))
		}
		m := listModel(kind, in, show, list)
		m.Now = s.Now()
		m.CSV, m.JSON = s.ExportsOf(r)
		counts, err := s.Catalog.UseCounts(r.Context(), actor, kind)
		if err != nil {
			return err
		}
		for i, row := range m.Rows {
			if n := counts[row.Name]; n > 0 {
				m.Rows[i].Used, m.Rows[i].UsesHref = ui.Count(n, "entry", "entries"), adminview.EntryUses(kind, row.Name)
			}
		}
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
		row.Test, row.TestHref = notTested, route.AdminProbe(row.Name)
		t, there := tests[row.Name]
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
		row.TestOld = !t.Open && row.Updated.After(t.Time)
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

func listModel(kind loom.EntityKind, in catalog.ListInput, show string, list catalog.List) adminview.ListModel {
	// with gives the list's address with the filters and one more part.
	with := func(pairs ...string) string {
		return route.Query(route.AdminKind(kind), append([]string{adminview.FieldQ, in.Q, adminview.FieldShow, show}, pairs...)...)
	}
	m := adminview.ListModel{
		Kind: kind, Q: in.Q, Filtered: in.Q != "" || show != "", Text: ui.Count(list.Total, kind.Word(), kind.Word()+"s"),
		NameSort: with(adminview.FieldSort, sortName), UpdateSort: with(adminview.FieldSort, sortUpdate),
		Show: []ui.Option{
			{Value: "", Label: "All", Selected: in.Deprecated == nil}, {Value: showUsable, Label: "Not deprecated", Selected: show == showUsable},
			{Value: showDeprecated, Label: "Deprecated", Selected: show == showDeprecated}, {Value: showDeleted, Label: "Deleted", Selected: show == showDeleted},
		},
	}
	if in.Sort == sortUpdate {
		m.UpdateOrder = ui.Descending
	} else {
		m.NameOrder = ui.Ascending
	}
	if list.Next != "" {
		m.Next = with(adminview.FieldSort, in.Sort, "after", list.Next)
	}
	if list.Prev != "" {
		m.Prev = with(adminview.FieldSort, in.Sort, "before", list.Prev)
	}
	for _, item := range list.Items {
		meta := item.Entry.Meta()
		m.Rows = append(m.Rows, adminview.EntryRow{
			Name: meta.Name, Label: meta.Label, Description: meta.Description, Deprecated: meta.Deprecated, Href: route.AdminEntry(kind, meta.Name),
			Version: strconv.Itoa(item.Version), Author: string(item.Author), Updated: item.Time,
		})
	}
	return m
}
