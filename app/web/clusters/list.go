package clusters

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// listQuery is the query string of the list of clusters.
type listQuery struct {
	Q, Status, Template, Provider, Owner, Label, Lease, Sort string
	After, Before, Limit                                     string
}

func readListQuery(q url.Values) listQuery {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return listQuery{
		Q: text("q"), Status: q.Get("status"), Template: q.Get("template"), Provider: q.Get("provider"), Owner: text("owner"),
		Label: text("label"), Lease: text("lease"), Sort: q.Get("sort"), After: q.Get("after"), Before: q.Get("before"), Limit: q.Get("limit"),
	}
}

// filters are the parts that say which clusters are listed.
func (q listQuery) filters() []string {
	return []string{"q", q.Q, "status", q.Status, "template", q.Template, "provider", q.Provider, "owner", q.Owner, "label", q.Label, "lease", q.Lease}
}

func (q listQuery) pairs() []string {
	return append(q.filters(), "sort", q.Sort, "after", q.After, "before", q.Before, "limit", q.Limit)
}

func listURL(q listQuery) string { return route.Query(route.Clusters(), q.pairs()...) }

// first is the same list from its first page, turn one that is cut elsewhere.
func (q listQuery) first() listQuery { return q.turn("", "") }

func (q listQuery) turn(after, before string) listQuery {
	q.After, q.Before = after, before
	return q
}

func (q listQuery) filtered() bool {
	return q.Q != "" || q.Template != "" || q.Provider != "" || q.Owner != "" || q.Label != "" || q.Lease != ""
}

// search is what is typed with the facets that are terms of a search.
func (q listQuery) search() string {
	parts := []string{q.Q}
	for field, value := range map[string]string{"label": q.Label, "lease": q.Lease} {
		if value != "" {
			parts = append(parts, field+`:"`+strings.ReplaceAll(value, `"`, "")+`"`)
		}
	}
	slices.Sort(parts[1:])
	return strings.TrimSpace(strings.Join(parts, " "))
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

// input asks for a page of that many rows.
func (q listQuery) input(rows int) clusters.ListInput {
	in := clusters.ListInput{
		Page:     loom.Page{Limit: rows, After: q.After, Before: q.Before, Sort: q.Sort},
		Template: q.Template, Provider: q.Provider, Owner: q.Owner, Q: q.search(),
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
		Q: q.Q, Owner: q.Owner, Label: q.Label, Status: q.Status, Sort: q.Sort, Limit: q.Limit, ShowOwner: actor.May(loom.See, actor.InTenant()) == nil, MayCreate: true,
		Filtered: q.filtered(), ClearHref: listURL(listQuery{Status: q.Status, Sort: q.Sort, Limit: q.Limit}),
		Leases: page.Options(q.Lease, "", "Any lease", "ended", "Expired", "48h", "Expires in 48 hours", "7d", "Expires in 7 days", "30d", "Expires in 30 days", "none", "No expiry"),
	}
	without := q.first()
	without.Label = ""
	m.WithoutLabel = listURL(without)
	if s.API != nil {
		address := listURL(q.first())
		m.CSV, m.JSON = route.Export(address, page.AsCSV), route.Export(address, page.AsAll)
	}
	for _, tab := range statusTabs {
		to := q.first()
		to.Status = tab.word
		m.Tabs = append(m.Tabs, ui.Tab{Label: tab.label, Href: listURL(to), Current: tab.word == q.Status})
	}
	list, err := s.Clusters.Clusters(r.Context(), actor, q.input(s.PageRows(r)))
	if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid {
		// A wrong filter keeps the page, with the message where it was typed.
		m.QError, status = e.Message, http.StatusUnprocessableEntity
	} else if err != nil {
		return err
	}
	if err := s.listOptions(r.Context(), actor, q, &m); err != nil {
		return err
	}
	m.Table = s.listTable(actor, q, list, s.PageRows(r))
	if m.QError != "" {
		m.Table = clusterview.ListTable{Empty: ui.EmptyModel{Icon: "search", Text: "Nothing was searched for.", More: "Clear filters", MoreHref: m.ClearHref}}
	}
	frame := clusterPage("Clusters", "")
	frame.Crumbs = nil
	frame.Topics = []string{route.TopicClusters()}
	page.Reloading(r, &frame, slices.ContainsFunc(list.Items, func(c loom.ClusterSummary) bool { return c.Status == loom.ClusterPending }))
	if frame.StopRefresh != "" {
		frame.StopRefresh = route.Query(listURL(q), "refresh", "off")
	}
	return s.Render(w, r, actor, status, frame, clusterview.ListPage(m))
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
		// Clusters outlive what they were made from, and an address may name anything.
		if o.value != "" && !slices.ContainsFunc(*o.into, func(c ui.Option) bool { return c.Selected }) {
			*o.into = append(*o.into, ui.Option{Value: o.value, Label: o.value, Selected: true})
		}
	}
	return nil
}

func (s *Server) listTable(actor loom.Actor, q listQuery, list clusters.List, rows int) clusterview.ListTable {
	t := clusterview.ListTable{ShowOwner: actor.May(loom.See, actor.InTenant()) == nil, Now: s.Now(), MaySelect: q.Status != string(loom.ClusterTerminated)}
	t.Columns = listColumns(q, actor.May(loom.See, actor.InTenant()) == nil, t.MaySelect)
	var ids []string
	for _, c := range list.Items {
		t.Rows = append(t.Rows, s.listRow(c))
		ids = append(ids, c.ID.String())
	}
	t.Live = rowsURL(q, ids, list.Total)
	t.Pagination = ui.PaginationModel{Label: "Pages of clusters", Text: manyClusters(list.Total)}
	if list.Prev != "" {
		t.Pagination.Prev = listURL(q.turn("", list.Prev))
	}
	if list.Next != "" {
		t.Pagination.Next = listURL(q.turn(list.Next, ""))
	}
	if len(list.Items) < list.Total {
		t.Pagination.Text = strconv.Itoa(len(list.Items)) + " of " + t.Pagination.Text
	}
	if list.Total > loom.RowChoices[0] {
		t.Pagination.Sizes = pageSizes(q, rows)
	}
	t.Bulk = clusterview.BulkBar{Filters: q.filters(), Total: list.Total, All: manyClusters(list.Total), Owners: actor.May(loom.Administer, actor.InTenant()) == nil}
	t.Empty = emptyList(q)
	return t
}

// pageSizes are the links to the same list in pages of other lengths.
func pageSizes(q listQuery, rows int) []ui.Tab {
	var sizes []ui.Tab
	for _, n := range loom.RowChoices {
		to := q.first()
		to.Limit = strconv.Itoa(n)
		sizes = append(sizes, ui.Tab{Label: to.Limit, Href: listURL(to), Current: n == rows})
	}
	return sizes
}

// manyClusters says how many there are, as far as was counted.
func manyClusters(n int) string {
	if n > loom.CountLimit {
		return "10,000+ clusters"
	}
	return ui.Count(n, "cluster", "clusters")
}

func rowsURL(q listQuery, ids []string, total int) string {
	return route.Query(route.Query(route.ClustersRows(), q.pairs()...), "ids", strings.Join(ids, ","), "total", strconv.Itoa(total))
}

func emptyList(q listQuery) ui.EmptyModel {
	create := ui.ButtonModel{Label: "New cluster", Icon: "plus", Href: route.ClusterNew()}
	switch {
	case q.filtered():
		return ui.EmptyModel{Icon: "search", Text: "No cluster matches these filters.", More: "Clear filters", MoreHref: listURL(listQuery{Status: q.Status, Sort: q.Sort, Limit: q.Limit})}
	case q.Status == "attention":
		return ui.EmptyModel{Icon: "check-circle", Text: "Nothing needs attention."}
	case q.Status == "terminated":
		return ui.EmptyModel{Icon: "square", Text: "No cluster was deleted so far."}
	case q.Status != "":
		return ui.EmptyModel{Icon: "cluster", Text: "No cluster is in this state.", More: "Show all", MoreHref: route.Clusters()}
	}
	return ui.EmptyModel{Icon: "cluster", Text: "No clusters yet. A cluster is a set of nodes made from a template.", Action: create}
}

func listColumns(q listQuery, owner, selectable bool) []ui.Column {
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
	if selectable {
		columns = append([]ui.Column{{Label: "Select", LabelHidden: true, Select: true}}, columns...)
	}
	if owner {
		columns = append(columns, ui.Column{Label: "Owner", Low: true})
	}
	end := sorted("Lease", "expireTime", false)
	if q.Status == string(loom.ClusterTerminated) {
		end = ui.Column{Label: "Ended"}
	}
	return append(columns, low(sorted("Created", "createTime", true)), low(end),
		ui.Column{Label: "Last change", Low: true}, ui.Column{Label: "Actions", LabelHidden: true})
}

// clusterRows gives the rows of a page of the list as they are now, in the order
// in which they were shown: nothing moves under the pointer. What came new is
// counted and offered.
func (s *Server) clusterRows(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := readListQuery(r.URL.Query())
	rows := s.PageRows(r)
	list, err := s.Clusters.Clusters(r.Context(), actor, q.input(rows))
	if err != nil {
		return err
	}
	shown := page.ReadIDs(strings.Split(r.URL.Query().Get("ids"), ","), loom.RowChoices[len(loom.RowChoices)-1])
	now, err := s.Summaries(r.Context(), actor, shown)
	if err != nil {
		return err
	}
	m := s.listTable(actor, q, list, rows)
	m.Rows = nil
	var ids []string
	for _, id := range shown {
		// What left the filter while it was looked at stays until the next load.
		if c, there := now[id]; there {
			ids = append(ids, id.String())
			m.Rows = append(m.Rows, s.listRow(c))
		}
	}
	total, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err == nil && list.Total > total && q.After == "" && q.Before == "" {
		m.Fresh, m.FreshHref = list.Total-total, listURL(q)
	}
	m.Live = rowsURL(q, ids, total)
	return s.Fragment(w, r, http.StatusOK, clusterview.ListRows(m))
}

func (s *Server) listRow(c loom.ClusterSummary) clusterview.Row {
	row := clusterview.Row{
		ID: c.ID.String(), Name: c.Name, Href: route.Cluster(c.ID), Description: c.Description, State: ui.ClusterBadge(c.Status, c.Progress, c.Health, s.Now()),
		Template: c.Template.Name, TemplateText: cmp.Or(c.Template.Label, c.Template.Name) + " " + ui.Version(c.Template.Version), Icon: page.IconOf(loom.KindTemplate, &c.Template),
		Nodes: strconv.Itoa(c.Nodes), NodesText: ui.Count(c.Nodes, "node", "nodes"), Owner: string(c.Owner.User), Created: c.Created, Expires: c.Expires, Ended: c.Ended,
		NewerTemplate: newer(c), Protected: c.Protected,
		LeaseSoon: c.Status != loom.ClusterTerminated && (c.LeaseSoon || loom.LeaseSoon(c.Created, c.Expires, s.Now())), Deleted: c.DeletedAt,
	}
	if c.Linked && c.Status == loom.ClusterActive {
		row.Open = route.ClusterOpen(c.ID)
	}
	switch p := c.Progress; {
	case c.LatestOperation == 0:
	case p.Ended.IsZero():
		row.Running, row.Elapsed = !p.Started.IsZero(), s.Now().Sub(p.Started)
	case p.Status == loom.OperationComplete: // of others the badge says that they failed
		row.Change, row.Changed = p.Action.Done(), p.Ended
		row.ChangeHref = route.Operation(loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
	}
	lease := route.ClusterLease(c.ID)
	if c.WhyNot(loom.ChangeLease) == "" {
		row.Menu = append(row.Menu, ui.MenuItem{Label: "Change expiry", Icon: "clock", Href: lease, Attrs: ui.OpensDialog(lease)})
	}
	row.Menu = append(row.Menu, ui.MenuItem{Label: "Duplicate", Icon: "copy", Href: route.ClusterNewLike(c.ID)})
	if why := c.WhyNot(loom.ChangeDelete); why == "" || c.Protected {
		row.Menu = append(row.Menu, ui.MenuItem{Label: "Delete", Icon: "trash", Href: route.ClusterDelete(c.ID), Danger: true, WhyNot: why, Divider: true, Attrs: ui.OpensDialog(route.ClusterDelete(c.ID))})
	}
	return row
}

// newer is the version of the template that is out, 0 unless it is newer than the
// cluster's copy.
func newer(c loom.ClusterSummary) int {
	if c.Status == loom.ClusterTerminated || c.NewestTemplate <= c.Template.Version {
		return 0
	}
	return c.NewestTemplate
}
