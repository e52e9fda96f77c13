package clusters

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// listQuery is the query string of the list of clusters.
type listQuery struct {
	Q, Status, Health, Template, Provider, Owner, Shared, Label, Lease, Sort string
	After, Before, Limit                                                     string
}

func readListQuery(q url.Values) listQuery {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	list := listQuery{
		Q: text("q"), Status: q.Get("status"), Health: q.Get("health"), Template: q.Get("template"), Provider: q.Get("provider"), Owner: text("owner"), Shared: q.Get("shared"),
		Label: text("label"), Lease: text("lease"), Sort: q.Get("sort"), After: q.Get("after"), Before: q.Get("before"), Limit: q.Get("limit"),
	}
	// Links to what is pending or failed choose that of the facet.
	if facet := map[string]string{string(loom.ClusterPending): clusters.FacetChanging, "attention": clusters.FacetFailed}[list.Status]; facet != "" {
		list.Status, list.Health = "", facet
	}
	return list
}

// terminated says that the list is the history of what was deleted.
func (q listQuery) terminated() bool { return q.Status == string(loom.ClusterTerminated) }

// shared says that the list is what others shared.
func (q listQuery) shared() bool { return q.Shared == "true" }

// filters are the parts that say which clusters are listed.
func (q listQuery) filters() []string {
	return []string{"q", q.Q, "status", q.Status, "health", q.Health, "template", q.Template, "provider", q.Provider, "owner", q.Owner, "shared", q.Shared, "label", q.Label, "lease", q.Lease}
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
	return q.Q != "" || q.Health != "" || q.Template != "" || q.Provider != "" || q.Owner != "" || q.Label != "" || q.Lease != "" || q.Status != "" && !q.terminated()
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

// input asks for a page of that many rows.
func (q listQuery) input(rows int) clusters.ListInput {
	in := clusters.ListInput{
		Page:     loom.Page{Limit: rows, After: q.After, Before: q.Before, Sort: q.Sort},
		Template: q.Template, Provider: q.Provider, Owner: q.Owner, Shared: q.shared(), Q: q.search(),
	}
	in.Statuses = q.statuses()
	switch q.Health {
	case "":
	case clusters.FacetChanging:
		in.Statuses = []loom.ClusterStatus{loom.ClusterPending}
	case clusters.FacetFailed:
		in.Statuses = attentionStatuses
	default:
		in.Statuses, in.Health = []loom.ClusterStatus{loom.ClusterActive}, []loom.HealthStatus{loom.HealthStatus(q.Health)}
	}
	return in
}

// statuses are those of the list before a facet is chosen.
func (q listQuery) statuses() []loom.ClusterStatus {
	if q.Status == "" {
		return liveStatuses
	}
	return []loom.ClusterStatus{loom.ClusterStatus(q.Status)}
}

func (s *Server) clusterList(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := readListQuery(r.URL.Query())
	status := http.StatusOK
	m := clusterview.ListModel{
		Q: q.Q, MayCreate: actor.MayAtAll(loom.Create) == nil, Filtered: q.filtered(), ClearHref: listURL(q.unfiltered()),
	}
	for _, h := range []clusterview.HiddenField{{Name: "limit", Value: q.Limit}, {Name: "status", Value: q.Status}, {Name: "sort", Value: q.Sort}, {Name: "owner", Value: q.Owner}, {Name: "shared", Value: q.Shared}, {Name: "provider", Value: q.Provider}} {
		if h.Value != "" {
			m.Hidden = append(m.Hidden, h)
		}
	}
	if s.API != nil {
		address := listURL(q.first())
		m.CSV, m.JSON = route.Export(address, page.AsCSV), route.Export(address, page.AsAll)
	}
	list, err := s.Clusters.Clusters(r.Context(), actor, q.input(s.PageRows(r)))
	var counts clusters.Counts
	if err == nil {
		counts, err = s.Clusters.Count(r.Context(), actor, clusters.CountInput{Statuses: q.statuses(), Owner: q.Owner, Shared: q.shared(), Q: q.Q, Health: q.Health, Template: q.Template, Label: q.Label, Lease: q.Lease})
	}
	if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid {
		// A wrong filter keeps the page, with the message where it was typed.
		m.QError, status = e.Message, http.StatusUnprocessableEntity
	} else if err != nil {
		return err
	}
	m.Tabs = scopeTabs(q, actor, counts)
	m.Chips = listChips(q, actor)
	m.Facets = listFacets(q, counts)
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

// unfiltered is the same list without what narrows it.
func (q listQuery) unfiltered() listQuery {
	all := listQuery{Shared: q.Shared, Sort: q.Sort, Limit: q.Limit}
	if q.terminated() {
		all.Status = q.Status
	}
	return all
}

// scopeTabs are the scopes of the list: one's own clusters where others are seen as well, what
// others shared, all, and the history of those that were deleted.
func scopeTabs(q listQuery, actor loom.Actor, counts clusters.Counts) []ui.Tab {
	mine := string(actor.User)
	to := q.first()
	to.Status, to.Shared = "", ""
	own, all := to, to
	own.Owner = mine
	if q.Owner == mine {
		all.Owner = ""
	}
	shared := all
	shared.Shared = "true"
	gone := all
	gone.Status, gone.Health, gone.Lease = string(loom.ClusterTerminated), "", ""
	tabs := []ui.Tab{
		{Label: "All", Href: listURL(all), Count: countText(counts.All), Current: !q.terminated() && !q.shared() && q.Owner != mine},
		{Label: "Terminated", Href: listURL(gone), Count: countText(counts.Terminated), Current: q.terminated()},
	}
	if slices.ContainsFunc(actor.Grants, loom.Grant.Shares) {
		tabs = append([]ui.Tab{{Label: "Shared with me", Href: listURL(shared), Count: countText(counts.Shared), Current: !q.terminated() && q.shared()}}, tabs...)
	}
	if seesOthers(actor) {
		tabs = append([]ui.Tab{{Label: "Mine", Href: listURL(own), Count: countText(counts.Mine), Current: !q.terminated() && !q.shared() && q.Owner == mine}}, tabs...)
	}
	return tabs
}

// countText is a count as far as was counted.
func countText(n int) string {
	if n > loom.CountLimit {
		return "10,000+"
	}
	return strconv.Itoa(n)
}

// listChips are filters of the address that no facet shows, each with the list without it.
func listChips(q listQuery, actor loom.Actor) []ui.Tab {
	var chips []ui.Tab
	chip := func(label, value string, drop func(q *listQuery)) {
		if value == "" {
			return
		}
		to := q.first()
		drop(&to)
		chips = append(chips, ui.Tab{Label: label + ": " + value, Href: listURL(to)})
	}
	if q.Owner != string(actor.User) || q.terminated() {
		chip("Owner", q.Owner, func(q *listQuery) { q.Owner = "" })
	}
	chip("Provider", q.Provider, func(q *listQuery) { q.Provider = "" })
	if !q.terminated() {
		chip("Status", q.Status, func(q *listQuery) { q.Status = "" })
	}
	return chips
}

// healthWords are the values of the facet of health, what needs somebody first.
var healthWords = []page.FacetValue{
	{Value: clusters.FacetFailed, Word: "Failed"}, {Value: string(loom.HealthFailing), Word: "Failing"}, {Value: string(loom.HealthDegraded), Word: "Degraded"}, {Value: clusters.FacetChanging, Word: "Changing"},
	{Value: string(loom.HealthUnknown), Word: "Unknown"}, {Value: string(loom.HealthHealthy), Word: "Healthy"}, {Value: string(loom.HealthOff), Word: "Not checked"},
}

// leaseWords are the values of the facet of the lease.
var leaseWords = []page.FacetValue{{Value: "ended", Word: "Expired"}, {Value: "48h", Word: "Expires in 48 hours"}, {Value: "7d", Word: "Expires in 7 days"}, {Value: "30d", Word: "Expires in 30 days"}, {Value: "none", Word: "No expiry"}}

// listFacets are the choices that narrow a list, with how many clusters each has. The
// history of what was deleted has neither health nor leases.
func listFacets(q listQuery, counts clusters.Counts) []ui.FieldModel {
	var facets []ui.FieldModel
	facet := func(name, label, all, chosen string, values []page.FacetValue, found []clusters.FacetCount) {
		if f, some := page.Facet(name, label, all, chosen, values, found, counts.Many); some {
			facets = append(facets, f)
		}
	}
	if !q.terminated() {
		facet("health", "Health", "Any health", q.Health, healthWords, counts.Health)
	}
	facet("template", "Template", "Any template", q.Template, page.FacetNames(counts.Template), counts.Template)
	facet("label", "Label", "Any label", q.Label, page.FacetNames(counts.Label), counts.Label)
	if !q.terminated() {
		facet("lease", "Lease", "Any lease", q.Lease, leaseWords, counts.Leases)
	}
	return facets
}

func (s *Server) listTable(actor loom.Actor, q listQuery, list clusters.List, rows int) clusterview.ListTable {
	t := clusterview.ListTable{ShowOwner: seesOthers(actor), MaySelect: q.Status != string(loom.ClusterTerminated)}
	t.Columns = listColumns(q, seesOthers(actor), t.MaySelect)
	var ids []string
	t.Rows = list.Items
	for _, c := range list.Items {
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
	t.Bulk = sharedview.BulkBar{Noun: "cluster", Filters: q.filters(), Total: list.Total, All: manyClusters(list.Total), Buttons: bulkButtons(actor)}
	t.Empty = emptyList(q)
	return t
}

// bulkButtons are what can be done to several clusters.
func bulkButtons(actor loom.Actor) []ui.ButtonModel {
	button := func(verb, label, icon string, kind ui.ButtonKind) ui.ButtonModel {
		return ui.ButtonModel{Label: label, Icon: icon, Kind: kind, Small: true, Submit: true, FormAction: route.ClustersBulk(verb)}
	}
	buttons := []ui.ButtonModel{button("lease", "Extend leases", "clock", ui.Secondary), button("restart", "Restart", "rotate", ui.Secondary)}
	if actor.May(loom.Administer, actor.InTenant()) == nil {
		buttons = append(buttons, button("owner", "Change owner", "user", ui.Secondary))
	}
	return append(buttons, button("delete", "Delete", "trash", ui.Danger))
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
		return countText(n) + " clusters"
	}
	return ui.Count(n, "cluster", "clusters")
}

// namedTable is the list of the clusters with these ids alone, as they are now and in that order.
func (s *Server) namedTable(r *http.Request, actor loom.Actor, ids []loom.ClusterID) (clusterview.ListTable, error) {
	now, err := s.Summaries(r.Context(), actor, ids)
	if err != nil {
		return clusterview.ListTable{}, err
	}
	owner := seesOthers(actor)
	t := clusterview.ListTable{ShowOwner: owner, Columns: listColumns(listQuery{}, owner, false), Only: true}
	for i := range t.Columns {
		t.Columns[i].Sort = ""
	}
	var named []string
	for _, id := range ids {
		if c, there := now[id]; there {
			t.Rows = append(t.Rows, c)
			named = append(named, id.String())
		}
	}
	t.Live = route.Query(route.ClustersRows(), "only", strings.Join(named, ","))
	return t, nil
}

func rowsURL(q listQuery, ids []string, total int) string {
	return route.Query(route.Query(route.ClustersRows(), q.pairs()...), "ids", strings.Join(ids, ","), "total", strconv.Itoa(total))
}

func emptyList(q listQuery) ui.EmptyModel {
	create := ui.ButtonModel{Label: "New cluster", Icon: "plus", Href: route.ClusterNew()}
	switch {
	case q.filtered():
		return ui.EmptyModel{Icon: "search", Text: "No matches.", More: "Clear filters", MoreHref: listURL(q.unfiltered())}
	case q.terminated():
		return ui.EmptyModel{Icon: "square", Text: "No clusters deleted yet."}
	case q.shared():
		return ui.EmptyModel{Icon: "cluster", Text: "No clusters of others are shared with you."}
	}
	return ui.EmptyModel{Icon: "cluster", Text: "No clusters yet. A cluster is a set of nodes made from a template.", Action: create}
}

// seesOthers reports whether the list may have clusters of others.
func seesOthers(actor loom.Actor) bool {
	return actor.May(loom.See, actor.InTenant()) == nil || len(actor.Grants) > 0
}

func listColumns(q listQuery, owner, selectable bool) []ui.Column {
	sorted := func(label, key string) ui.Column { // up, down, then the newest first again
		c := ui.Column{Label: label}
		next := q.first()
		next.Sort = key
		switch q.Sort {
		case key:
			c.Sorted, next.Sort = ui.Ascending, "-"+key
		case "-" + key:
			c.Sorted, next.Sort = ui.Descending, ""
		}
		c.Sort = listURL(next)
		return c
	}
	columns := []ui.Column{sorted("Name", "name"), sorted("Status", "status"), {Label: "Template"}, {Label: "Nodes", Numeric: true}}
	if selectable {
		columns = append([]ui.Column{{Label: "Select", LabelHidden: true, Select: true}}, columns...)
	}
	if owner {
		columns = append(columns, ui.Column{Label: "Owner"})
	}
	end := sorted("Lease", "expireTime")
	if q.Status == string(loom.ClusterTerminated) {
		end = ui.Column{Label: "Ended"}
	}
	return append(columns, end, ui.Column{Label: "Last change"}, ui.Column{Label: "Actions", LabelHidden: true})
}

// clusterRows gives the rows of a page of the list as they are now, in the order
// in which they were shown: nothing moves under the pointer. What came new is
// counted and offered.
func (s *Server) clusterRows(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if only := r.URL.Query().Get("only"); only != "" {
		m, err := s.namedTable(r, actor, page.ReadIDs(strings.Split(only, ","), maxBulk))
		if err != nil {
			return err
		}
		return s.Fragment(w, r, http.StatusOK, clusterview.ListRows(m))
	}
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
			m.Rows = append(m.Rows, c)
		}
	}
	total, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err == nil && list.Total > total && q.After == "" && q.Before == "" {
		m.Fresh, m.FreshHref = list.Total-total, listURL(q)
	}
	m.Live = rowsURL(q, ids, total)
	return s.Fragment(w, r, http.StatusOK, clusterview.ListRows(m))
}
