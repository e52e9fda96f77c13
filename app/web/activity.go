package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// activityQuery is what the filters of the feed say.
type activityQuery struct {
	actor, about, cluster, verb, result, since, until, tenant string
}

func readActivity(q url.Values) activityQuery {
	return activityQuery{strings.TrimSpace(q.Get("actor")), q.Get("about"), strings.TrimSpace(q.Get("cluster")), q.Get("verb"), q.Get("result"), q.Get("since"), q.Get("until"), strings.TrimSpace(q.Get("tenant"))}
}

func (q activityQuery) pairs() []string {
	return []string{"actor", q.actor, "about", q.about, "cluster", q.cluster, "verb", q.verb, "result", q.result, "since", q.since, "until", q.until, "tenant", q.tenant}
}

func (q activityQuery) input(see ui.Viewer) (in account.ActivityInput, errs []loom.FieldError) {
	in = account.ActivityInput{Tenant: q.tenant, About: q.about, Cluster: q.cluster,
		ActivityFilter: account.ActivityFilter{Actor: loom.UserID(q.actor), Verb: q.verb, Result: q.result}}
	in.Since, in.Until, errs = readDays(see, q.since, q.until)
	return in, errs
}

func (s *Server) activity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := readActivity(r.URL.Query())
	q.tenant = ""
	page := layout.Model{Title: "Activity", Area: layout.AreaClusters, Here: route.Activity()}
	intro := "Operations, leases and credentials of your clusters, and what changed in the catalog."
	if actor.IsAdmin() {
		intro = "Operations, leases, credentials and catalog changes of the whole tenant."
	}
	return s.activityPage(w, r, actor, page, route.Activity(), intro, false, q)
}

func (s *Server) systemActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.activityPage(w, r, actor, systemFrame("Activity", route.SystemActivity()), route.SystemActivity(),
		"Operations, leases, credentials and catalog changes of all tenants.", true, readActivity(r.URL.Query()))
}

func (s *Server) activityPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, page layout.Model, base, intro string, all bool, q activityQuery) error {
	see := ui.ViewerOf(r.Context())
	in, bad := q.input(see)
	in.All, in.Page = all, s.pageOf(r)
	in.Page.Sort = ""
	errs, status := ui.FormErrors{}, http.StatusOK
	var list account.ActivityList
	err := loom.InvalidFields(bad)
	if err == nil {
		list, err = s.Accounts.Activity(r.Context(), actor, in)
	}
	if err != nil {
		e := loom.AsError(err)
		switch {
		case e.Kind == loom.Invalid && len(e.Fields) > 0:
			errs = ui.NewFormErrors("", e.Fields)
		case e.Kind == loom.NotFound:
			errs = ui.NewFormErrors("", []loom.FieldError{{Field: "tenant", Message: e.Message}})
		default:
			return err
		}
		status = http.StatusUnprocessableEntity
	}
	m := officeview.SheetModel{Title: "Activity", Intro: intro,
		Calls: []ui.JSONCall{call("audit", http.MethodGet, route.Query("/v2/audit", "actor", q.actor, "verb", q.verb, "result", q.result), "")},
		Parts: []templ.Component{activityFilters(base, all, q, errs), s.activityFeed(see, base, all, q, list)}}
	return s.sheet(w, r, actor, status, page, m)
}

var (
	activityAbouts = []string{"", "Everything", "clusters", "Clusters and leases", "catalog", "Catalog", "resources", "Plugin resources", "credentials", "Credentials"}
	activityVerbs  = []string{"", "Any", "create", "Created", "update", "Changed", "apply", "Applied", "finish", "Ended", "delete", "Deleted", "abort", "Aborted", "pause", "Paused", "resume", "Resumed", "skip", "Left out", "reveal", "Revealed", "import", "Imported", "stage", "Staged", "recall", "Recalled", "sync", "Synced"}
)

func activityFilters(base string, all bool, q activityQuery, errs ui.FormErrors) templ.Component {
	text := func(name, label, value string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Value: value, Optional: true, Width: "s", MaxLength: 255, Error: errs.For(name)}
	}
	choice := func(name, label, value string, pairs []string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: options(value, pairs...), Error: errs.For(name)}
	}
	since, until := text("since", "From day", q.since), text("until", "To day", q.until)
	since.Kind, until.Kind = ui.FieldDate, ui.FieldDate
	cluster := text("cluster", "Cluster", q.cluster)
	cluster.Placeholder = "Name or id"
	m := officeview.FiltersModel{Action: base, Target: "feed", Fields: []ui.FieldModel{
		choice("about", "About", q.about, activityAbouts), text("actor", "Who", q.actor), choice("verb", "Did", q.verb, activityVerbs),
		choice("result", "Result", q.result, []string{"", "Any", "ok", "Done", "refused", "Refused", "failed", "Failed"}), cluster}}
	if all {
		m.Fields = append(m.Fields, text("tenant", "Tenant", q.tenant))
	}
	m.Fields = append(m.Fields, since, until)
	if q != (activityQuery{}) {
		m.Clear = base
	}
	return officeview.Filters(m)
}

// activityFeed shows the entries by day; several alike become one. Without a base it is a part
// of another page, with all of that of the tenant q.tenant.
func (s *Server) activityFeed(see ui.Viewer, base string, all bool, q activityQuery, list account.ActivityList) templ.Component {
	m := officeview.FeedModel{ID: "feed", Now: s.now(), Pages: turned("Pages of the activity", base, list.Next, list.Prev, q.pairs()...),
		Empty: ui.EmptyModel{Icon: "activity", Text: "Nothing happened yet.", Action: ui.ButtonModel{Label: "Create a cluster", Href: route.ClusterNew()}}}
	switch {
	case base == "" && all: // a part of the page of a tenant
		if q.tenant != string(loom.SuperTenant) { // a cluster created here would be one of one's own tenant
			m.Empty.Action = opening("Act as administrator of "+q.tenant, "", route.SystemActAs(q.tenant), ui.Secondary)
		}
	case all && q == (activityQuery{}):
		m.Empty.Action = ui.ButtonModel{}
	case q != (activityQuery{}):
		m.Empty = ui.EmptyModel{Icon: "search", Text: "Nothing that happened matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: base}}
	}
	for _, group := range bursts(list.Items) {
		day := see.Day(group[0].Time)
		if n := len(m.Days); n == 0 || m.Days[n-1].Title != day {
			m.Days = append(m.Days, officeview.FeedDay{Title: day})
		}
		d := &m.Days[len(m.Days)-1]
		d.Items = append(d.Items, feedItem(see, group, all))
	}
	return officeview.Feed(m)
}

// burstGap is how far apart entries of a burst are at most.
const burstGap = 10 * time.Minute

// bursts puts together neighbours in which the same one did the same to things of
// the same kind, shortly after each other. Clusters are never put together: each
// operation is one's own.
func bursts(items []loom.Activity) [][]loom.Activity {
	var groups [][]loom.Activity
	for _, item := range items {
		if n := len(groups); n > 0 && item.Cluster == 0 {
			last := groups[n-1]
			before := last[len(last)-1]
			if before.Actor == item.Actor && before.Tenant == item.Tenant && before.Verb == item.Verb && before.Kind == item.Kind && before.Result == item.Result && before.Time.Sub(item.Time) < burstGap {
				groups[n-1] = append(last, item)
				continue
			}
		}
		groups = append(groups, []loom.Activity{item})
	}
	return groups
}

// feedItem says what a burst, or one entry, is.
func feedItem(see ui.Viewer, group []loom.Activity, all bool) officeview.FeedItem {
	a := group[0]
	item := officeview.FeedItem{Icon: activityIcon(a), Who: string(a.Actor), Time: a.Time}
	if all {
		item.Who += " of " + a.TenantName
	}
	if a.Verb == "finish" {
		item.Who = ""
	}
	if len(group) > 1 {
		item.Text = verbPast(a.Verb) + " " + strconv.Itoa(len(group)) + " times: " + a.Kind
		if a.Kind != "catalog" {
			item.Text = verbPast(a.Verb) + " " + ui.Count(len(group), a.Kind, plural(a.Kind))
		}
		for _, one := range group {
			item.More = append(item.More, officeview.FeedLink{Text: one.Object, Href: activityHref(one, all), Time: one.Time})
		}
	} else {
		item.Text = activityText(a)
		item.Link = officeview.FeedLink{Text: activityObject(a), Href: activityHref(a, all)}
		item.Note = activityNote(see, a)
	}
	if state, ok := auditStates[a.Result]; ok && a.Result != "ok" {
		item.State = &state
	}
	if a.Status != "" {
		state := ui.OperationState(a.Status, a.Status == loom.OperationAborted)
		item.State = &state
	}
	return item
}

func plural(kind string) string {
	if strings.HasSuffix(kind, "s") {
		return kind
	}
	return kind + "s"
}
