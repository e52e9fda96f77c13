package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// listRows is the length of a page of clusters.
const listRows = 25

// listQuery is the query string of the list of clusters.
type listQuery struct {
	Q, Status, Template, Provider, Owner, Sort string
	After, Before                              string
}

func readListQuery(q url.Values) listQuery {
	return listQuery{
		Q: strings.TrimSpace(q.Get("q")), Status: q.Get("status"), Template: q.Get("template"), Provider: q.Get("provider"),
		Owner: strings.TrimSpace(q.Get("owner")), Sort: q.Get("sort"), After: q.Get("after"), Before: q.Get("before"),
	}
}

func (q listQuery) pairs() []string {
	return []string{
		"q", q.Q, "status", q.Status, "template", q.Template, "provider", q.Provider,
		"owner", q.Owner, "sort", q.Sort, "after", q.After, "before", q.Before,
	}
}

func listURL(q listQuery) string { return route.Query(route.Clusters(), q.pairs()...) }

// first is the same list from its first page, turn one that is cut elsewhere.
func (q listQuery) first() listQuery { return q.turn("", "") }

func (q listQuery) turn(after, before string) listQuery {
	q.After, q.Before = after, before
	return q
}

func (q listQuery) filtered() bool {
	return q.Q != "" || q.Template != "" || q.Provider != "" || q.Owner != ""
}

// statusTabs are the tabs of the list; the terminated ones are a history of their own.
var statusTabs = []struct {
	word, label string
	statuses    []loom.ClusterStatus
}{
	{"", "All live", liveStatuses},
	{"active", "Active", []loom.ClusterStatus{loom.ClusterActive}},
	{"pending", "Pending", []loom.ClusterStatus{loom.ClusterPending}},
	{"attention", "Need attention", attentionStatuses},
	{"terminated", "Terminated", []loom.ClusterStatus{loom.ClusterTerminated}},
}

func (q listQuery) input() lifecycle.ListInput {
	in := lifecycle.ListInput{
		Page:     loom.Page{Limit: listRows, After: q.After, Before: q.Before, Sort: q.Sort},
		Template: q.Template, Provider: q.Provider, Owner: q.Owner, Q: q.Q,
	}
	for _, tab := range statusTabs {
		if tab.word == q.Status {
			in.Statuses = tab.statuses
			return in
		}
	}
	in.Statuses = []loom.ClusterStatus{loom.ClusterStatus(q.Status)}
	return in
}

func (s *Server) clusterList(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := readListQuery(r.URL.Query())
	status := http.StatusOK
	m := clusterview.ListModel{
		Q: q.Q, Owner: q.Owner, Status: q.Status, Sort: q.Sort, ShowOwner: actor.IsAdmin(), MayCreate: true,
		Filtered: q.filtered(), ClearHref: listURL(listQuery{Status: q.Status, Sort: q.Sort}),
	}
	for _, tab := range statusTabs {
		to := q.first()
		to.Status = tab.word
		m.Tabs = append(m.Tabs, ui.Tab{Label: tab.label, Href: listURL(to), Current: tab.word == q.Status})
	}
	list, err := s.Clusters.Clusters(r.Context(), actor, q.input())
	if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid {
		// A wrong filter keeps the page, with the message where it was typed.
		m.QError, status = e.Message, http.StatusUnprocessableEntity
	} else if err != nil {
		return err
	}
	if err := s.listOptions(r.Context(), actor, q, &m); err != nil {
		return err
	}
	m.Table = s.listTable(actor, q, list)
	page := clusterPage("Clusters", "")
	page.Crumbs = nil
	page.Topics = []string{route.TopicClusters()}
	reloading(r, &page, slices.ContainsFunc(list.Items, func(c loom.ClusterSummary) bool { return c.Status == loom.ClusterPending }))
	return s.render(w, r, actor, status, page, clusterview.ListPage(m))
}

// listOptions offers the templates and providers there are.
func (s *Server) listOptions(ctx context.Context, actor loom.Actor, q listQuery, m *clusterview.ListModel) error {
	for _, o := range []struct {
		kind  loom.EntityKind
		all   string
		value string
		into  *[]ui.Option
	}{{loom.KindTemplate, "All templates", q.Template, &m.Templates}, {loom.KindProvider, "All providers", q.Provider, &m.Providers}} {
		entries, err := s.Catalog.Entries(ctx, actor, o.kind, catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}})
		if err != nil {
			return err
		}
		*o.into = []ui.Option{{Value: "", Label: o.all}}
		for _, item := range entries.Items {
			name := item.Entry.Meta().Name
			*o.into = append(*o.into, ui.Option{Value: name, Label: name, Selected: name == o.value})
		}
	}
	return nil
}

func (s *Server) listTable(actor loom.Actor, q listQuery, list lifecycle.List) clusterview.ListTable {
	t := clusterview.ListTable{ShowOwner: actor.IsAdmin(), Now: s.now(), Columns: listColumns(q, actor.IsAdmin())}
	var ids []string
	for _, c := range list.Items {
		t.Rows = append(t.Rows, s.listRow(c))
		ids = append(ids, c.ID.String())
	}
	t.Live = rowsURL(q, ids, list.Total)
	t.Pagination = ui.PaginationModel{Label: "Pages of clusters", Text: ui.Count(list.Total, "cluster", "clusters")}
	if list.Prev != "" {
		t.Pagination.Prev = listURL(q.turn("", list.Prev))
	}
	if list.Next != "" {
		t.Pagination.Next = listURL(q.turn(list.Next, ""))
	}
	if len(list.Items) < list.Total {
		t.Pagination.Text = strconv.Itoa(len(list.Items)) + " of " + t.Pagination.Text
	}
	t.Empty = emptyList(q)
	return t
}

func rowsURL(q listQuery, ids []string, total int) string {
	return route.Query(route.Query(route.ClustersRows(), q.pairs()...), "ids", strings.Join(ids, ","), "total", strconv.Itoa(total))
}

func emptyList(q listQuery) ui.EmptyModel {
	create := ui.ButtonModel{Label: "New cluster", Icon: "plus", Href: route.ClusterNew()}
	switch {
	case q.filtered():
		return ui.EmptyModel{Icon: "search", Text: "No cluster matches these filters.", More: "Clear filters", MoreHref: listURL(listQuery{Status: q.Status, Sort: q.Sort})}
	case q.Status == "attention":
		return ui.EmptyModel{Icon: "check-circle", Text: "Nothing needs attention."}
	case q.Status == "terminated":
		return ui.EmptyModel{Icon: "square", Text: "No cluster was deleted so far."}
	case q.Status != "":
		return ui.EmptyModel{Icon: "cluster", Text: "No cluster is in this state.", More: "Show all", MoreHref: route.Clusters()}
	}
	return ui.EmptyModel{Icon: "cluster", Text: "No clusters yet. A cluster is a set of machines made from a template.", Action: create}
}

func listColumns(q listQuery, owner bool) []ui.Column {
	sorted := func(label, key string, down bool) ui.Column {
		c := ui.Column{Label: label}
		present := q.Sort
		if present == "" {
			present = "-createTime"
		}
		next := q.first()
		if next.Sort = key; down {
			next.Sort = "-" + key
		}
		switch present {
		case key:
			c.Sorted, next.Sort = ui.Ascending, "-"+key
		case "-" + key:
			c.Sorted, next.Sort = ui.Descending, key
		}
		c.Sort = listURL(next)
		return c
	}
	low := func(c ui.Column) ui.Column { c.Low = true; return c }
	columns := []ui.Column{sorted("Name", "name", false), sorted("Status", "status", false), {Label: "Template"}, {Label: "Nodes", Numeric: true}}
	if owner {
		columns = append(columns, ui.Column{Label: "Owner", Low: true})
	}
	return append(columns, low(sorted("Created", "createTime", true)), low(sorted("Lease", "expireTime", false)),
		ui.Column{Label: "Last operation", Low: true}, ui.Column{Label: "Actions", LabelHidden: true})
}
