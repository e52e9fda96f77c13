package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// feedID is the list of a page of activity.
const feedID = "feed"

// ActivityQuery is what the filters of the feed say.
type ActivityQuery struct {
	user, about, cluster, action, result, period, Tenant string
}

// ReadActivity reads the filters of the activity from an address.
func ReadActivity(q url.Values) ActivityQuery {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return ActivityQuery{text("user"), text("about"), text("cluster"), text("action"), text("result"), text("period"), text("tenant")}
}

func (q ActivityQuery) pairs() []string {
	return []string{"user", q.user, "about", q.about, "cluster", q.cluster, "action", q.action, "result", q.result, "period", q.period, "tenant", q.Tenant}
}

// activityPeriods are the ranges that a feed offers, the newest activity of each.
var activityPeriods = []struct {
	name, label string
	length      time.Duration
}{{"1h", "1 h", time.Hour}, {"24h", "24 h", 24 * time.Hour}, {"7d", "7 d", 7 * 24 * time.Hour}, {"", "All", 0}}

func (q ActivityQuery) input(now time.Time) (in account.ActivityInput, errs []loom.FieldError) {
	in = account.ActivityInput{Tenant: q.Tenant, About: q.about, Cluster: q.cluster, Action: q.action,
		ActivityFilter: account.ActivityFilter{Actor: loom.UserID(q.user), Result: q.result}}
	since, bad := lately(q.period, now)
	if bad != nil {
		return in, []loom.FieldError{*bad}
	}
	in.Since = since
	return in, nil
}

// lately reads one of the ranges: when it began, the zero time for all.
func lately(period string, now time.Time) (time.Time, *loom.FieldError) {
	for _, p := range activityPeriods {
		switch {
		case p.name != period:
		case p.length == 0:
			return time.Time{}, nil
		default: // to the minute, so that the list stays the same one from page to page
			return now.Add(-p.length).Truncate(time.Minute), nil
		}
	}
	return time.Time{}, &loom.FieldError{Field: "period", Message: "The range is 1h, 24h or 7d."}
}

// ranges are the links to the same list over other times.
func ranges(chosen string, href func(period string) string) []ui.Tab {
	var tabs []ui.Tab
	for _, p := range activityPeriods {
		tabs = append(tabs, ui.Tab{Label: p.label, Href: href(p.name), Current: p.name == chosen})
	}
	return tabs
}

// chosenOf makes a field a choice among pairs of values and labels, or none of them. What is
// chosen and not among them is offered too: an address may name anything.
func chosenOf(f ui.FieldModel, chosen string, pairs []string) ui.FieldModel {
	f.Kind, f.Optional, f.LabelHidden, f.Width = ui.FieldSelect, true, true, "s"
	f.Options = Options(chosen, append([]string{"", "Any " + strings.ToLower(f.Label)}, pairs...)...)
	if !slices.ContainsFunc(f.Options, func(o ui.Option) bool { return o.Value == chosen }) {
		f.Options = append(f.Options, ui.Option{Value: chosen, Label: cmp.Or(CutShort(chosen), "–"), Selected: true})
	}
	return f
}

// ActivityPage answers with what happened, filtered: in the actor's tenant, or in all of them.
func (s *Shared) ActivityPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, frame layout.Model, base string, all bool, q ActivityQuery) error {
	in, bad := q.input(s.Now())
	in.All, in.Page = all, s.PageOf(r)
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
	feed := s.feedModel(ui.ViewerOf(r.Context()), actor, base, all, q, list)
	if !all {
		if err := s.waysOn(r, actor, list, &feed); err != nil {
			return err
		}
		frame.Topics = []string{route.TopicClusters(), route.TopicTenant()}
		feed.Attrs = ui.Live(r.URL.RequestURI(), frame.Topics...)
		Reloading(r, &frame, slices.ContainsFunc(list.Items, func(a loom.Activity) bool { return a.Began != nil && !a.Began.Status.Final() }))
		if frame.StopRefresh != "" {
			frame.StopRefresh = route.Query(base, append(q.pairs(), "refresh", "off")...)
		}
	}
	if Wants(r, feedID) {
		return s.Fragment(w, r, status, adminview.Feed(feed))
	}
	filters, err := s.activityFilters(r, actor, base, in, q, errs)
	if err != nil {
		return err
	}
	return s.Sheet(w, r, actor, status, frame, adminview.PageModel{Title: "Activity", Parts: []templ.Component{adminview.Filters(filters), adminview.Feed(feed)},
		Calls: []ui.JSONCall{Call("audit", http.MethodGet, route.Query("/v2/audit", "actor", q.user), "")}})
}

var (
	activityAbouts  = []string{"clusters", "Clusters", "catalog", "Catalog", "resources", "Files", "credentials", "Credentials"}
	activityResults = []string{loom.ActivityRunning, "Running", loom.ActivityDone, "Done", loom.ActivityFailed, "Failed", loom.ActivityRefused, "Refused"}
)

// activityFilters offers the users, clusters and actions there are.
func (s *Shared) activityFilters(r *http.Request, actor loom.Actor, base string, in account.ActivityInput, q ActivityQuery, errs ui.FormErrors) (adminview.FiltersModel, error) {
	m := adminview.FiltersModel{Action: base, Whole: true, Label: "Filter activity", RangesLabel: "Time range", Hidden: []adminview.HiddenField{{Name: "period", Value: q.period}}}
	names, err := s.Accounts.ActivityNames(r.Context(), actor, in)
	if err != nil && loom.AsError(err).Kind != loom.NotFound {
		return m, err
	}
	var users, clusters, actions, tenants []string
	for _, id := range names.Users {
		users = append(users, string(id), userName(actor, actor.Tenant, id))
	}
	users = append(users, string(loom.SystemUser), userName(actor, "", loom.SystemUser))
	for _, name := range names.Clusters {
		clusters = append(clusters, name, name)
	}
	for _, a := range account.ActivityActions {
		actions = append(actions, a.Name, a.Label)
	}
	choice := func(name, label, chosen string, pairs []string) {
		m.Fields = append(m.Fields, chosenOf(ui.FieldModel{Name: name, Label: label, Error: errs.For(name)}, chosen, pairs))
	}
	if in.All {
		list, err := s.Accounts.Tenants(r.Context(), actor)
		if err != nil {
			return m, err
		}
		for _, t := range list {
			tenants = append(tenants, t.Name, t.Name)
		}
		choice("tenant", "Tenant", q.Tenant, tenants)
	}
	choice("user", "User", q.user, users)
	choice("cluster", "Cluster", q.cluster, clusters)
	choice("action", "Action", q.action, actions)
	choice("about", "Subject", q.about, activityAbouts)
	choice("result", "Result", q.result, activityResults)
	m.Ranges = ranges(q.period, func(period string) string {
		to := q
		to.period = period
		return route.Query(base, to.pairs()...)
	})
	m.RangesError = errs.For("period")
	if q != (ActivityQuery{}) {
		m.Clear = base
	}
	return m, nil
}
