package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// ActivityQuery is what the filters of the feed say.
type ActivityQuery struct {
	actor, about, cluster, verb, result, since, until, Tenant string
}

// ReadActivity reads the filters of the activity from an address.
func ReadActivity(q url.Values) ActivityQuery {
	return ActivityQuery{strings.TrimSpace(q.Get("actor")), q.Get("about"), strings.TrimSpace(q.Get("cluster")), q.Get("verb"), q.Get("result"), q.Get("since"), q.Get("until"), strings.TrimSpace(q.Get("tenant"))}
}

func (q ActivityQuery) pairs() []string {
	return []string{"actor", q.actor, "about", q.about, "cluster", q.cluster, "verb", q.verb, "result", q.result, "since", q.since, "until", q.until, "tenant", q.Tenant}
}

func (q ActivityQuery) input(see ui.Viewer) (in account.ActivityInput, errs []loom.FieldError) {
	in = account.ActivityInput{Tenant: q.Tenant, About: q.about, Cluster: q.cluster,
		ActivityFilter: account.ActivityFilter{Actor: loom.UserID(q.actor), Verb: q.verb, Result: q.result}}
	in.Since, in.Until, errs = readDays(see, q.since, q.until)
	return in, errs
}

// ActivityPage answers with what happened, filtered.
func (s *Shared) ActivityPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, page layout.Model, base, intro string, all bool, q ActivityQuery) error {
	see := ui.ViewerOf(r.Context())
	in, bad := q.input(see)
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
	m := adminview.PageModel{Title: "Activity", Intro: intro,
		Calls: []ui.JSONCall{Call("audit", http.MethodGet, route.Query("/v2/audit", "actor", q.actor, "verb", q.verb, "result", q.result), "")},
		Parts: []templ.Component{activityFilters(base, all, q, errs), s.ActivityFeed(see, base, all, q, list)}}
	return s.Sheet(w, r, actor, status, page, m)
}

var (
	activityAbouts = []string{"", "Everything", "clusters", "Clusters and leases", "catalog", "Catalog", "resources", "Files", "credentials", "Credentials"}
	activityVerbs  = []string{"", "Any", "create", "Created", "update", "Changed", "apply", "Applied", "finish", "Ended", "delete", "Deleted", "abort", "Aborted", "pause", "Paused", "resume", "Resumed", "skip", "Skipped", "reveal", "Keys downloaded", "import", "Imported", "stage", "Staged", "recall", "Withdrawn", "sync", "Released"}
)

func activityFilters(base string, all bool, q ActivityQuery, errs ui.FormErrors) templ.Component {
	text := func(name, label, value string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Value: value, Optional: true, Width: "s", MaxLength: 255, Error: errs.For(name)}
	}
	choice := func(name, label, value string, pairs []string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: Options(value, pairs...), Error: errs.For(name)}
	}
	since, until := text("since", "From day", q.since), text("until", "To day", q.until)
	since.Kind, until.Kind = ui.FieldDate, ui.FieldDate
	cluster := text("cluster", "Cluster", q.cluster)
	cluster.Placeholder = "Name or id"
	m := adminview.FiltersModel{Action: base, Target: "feed", Fields: []ui.FieldModel{
		choice("about", "About", q.about, activityAbouts), text("actor", "Who", q.actor), choice("verb", "Did", q.verb, activityVerbs),
		choice("result", "Result", q.result, []string{"", "Any", "ok", "Done", "refused", "Refused", "failed", "Failed"}), cluster}}
	if all {
		m.Fields = append(m.Fields, text("tenant", "Tenant", q.Tenant))
	}
	m.Fields = append(m.Fields, since, until)
	if q != (ActivityQuery{}) {
		m.Clear = base
	}
	return adminview.Filters(m)
}

// ActivityFeed shows the entries by day; several alike become one. Without a base it is a part
// of another page, with all of that of the tenant q.tenant.
func (s *Shared) ActivityFeed(see ui.Viewer, base string, all bool, q ActivityQuery, list account.ActivityList) templ.Component {
	m := adminview.FeedModel{ID: "feed", Now: s.Now(), Pages: Turned("Pages of the activity", base, list.Next, list.Prev, q.pairs()...),
		Empty: ui.EmptyModel{Icon: "activity", Text: "No activity yet.", Action: ui.ButtonModel{Label: "Create a cluster", Href: route.ClusterNew()}}}
	switch {
	case base == "" && all: // a part of the page of a tenant
		if q.Tenant != string(loom.SuperTenant) { // a cluster created here would be one of one's own tenant
			m.Empty.Action = Opening("Act as administrator of "+q.Tenant, "", route.SystemActAs(q.Tenant), ui.Secondary)
		}
	case all && q == (ActivityQuery{}):
		m.Empty.Action = ui.ButtonModel{}
	case q != (ActivityQuery{}):
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: base}}
	}
	for _, group := range bursts(ended(list.Items)) {
		day := see.Day(group[0].Time)
		if n := len(m.Days); n == 0 || m.Days[n-1].Title != day {
			m.Days = append(m.Days, adminview.FeedDay{Title: day})
		}
		d := &m.Days[len(m.Days)-1]
		d.Items = append(d.Items, feedItem(see, group, all))
	}
	return adminview.Feed(m)
}

// ended gives each operation one entry: how it ended is shown where it began, if that is on
// the same page.
func ended(items []loom.Activity) []loom.Activity {
	var out []loom.Activity
	finishes := map[loom.OperationRef]loom.Activity{}
	for _, item := range items { // the newest first
		if item.Verb == "finish" && slices.ContainsFunc(items, func(a loom.Activity) bool { return a.Operation == item.Operation && begins(a) }) {
			finishes[item.Operation] = item
			continue
		}
		if end, is := finishes[item.Operation]; is && begins(item) {
			item.Status, item.Message, item.FailedTasks, item.FailedNodes = end.Status, end.Message, end.FailedTasks, end.FailedNodes
		}
		out = append(out, item)
	}
	return out
}

// begins reports whether an entry is that of the request that an operation carries out.
func begins(a loom.Activity) bool {
	return a.Operation != (loom.OperationRef{}) && a.Kind == "cluster" && a.Verb != "finish"
}

// OfOperation reports whether an entry says that an operation was requested, or how it ended.
func OfOperation(a loom.Activity) bool { return begins(a) || a.Verb == "finish" }

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
func feedItem(see ui.Viewer, group []loom.Activity, all bool) adminview.FeedItem {
	a := group[0]
	item := adminview.FeedItem{Icon: activityIcon(a), Who: string(a.Actor), Time: a.Time}
	if all {
		item.Who += " of " + a.TenantName
	}
	if a.Verb == "finish" {
		item.Who = ""
	}
	if len(group) > 1 {
		item.Text = verbPast(a.Verb) + " " + strconv.Itoa(len(group)) + " times: " + a.Kind
		if a.Kind != "catalog" {
			item.Text = verbPast(a.Verb) + " " + ui.Count(len(group), a.Kind, Plural(a.Kind))
		}
		for _, one := range group {
			item.More = append(item.More, adminview.FeedLink{Text: one.Object, Href: activityHref(one, all), Time: one.Time})
		}
	} else {
		item.Text = activityText(a)
		item.Link = adminview.FeedLink{Text: activityObject(a), Href: activityHref(a, all)}
		item.Note = activityNote(see, a)
	}
	if state, ok := auditStates[a.Result]; ok && a.Result != "ok" {
		item.State = &state
	}
	if a.Status != "" && a.Status != loom.OperationComplete {
		state := ui.OperationState(a.Status, a.Status == loom.OperationAborted)
		item.State = &state
	}
	return item
}

var pastVerbs = map[string]string{
	"create": "created", "update": "changed", "apply": "changed", "delete": "deleted", "abort": "aborted", "pause": "paused", "resume": "resumed",
	"skip": "skipped", "reveal": "downloaded the key of", "import": "imported into", "stage": "staged", "recall": "withdrew", "sync": "released", "retry": "retried", "finish": "ended",
	"probe": "tested", "sweep": "searched", "upload": "uploaded",
}

func verbPast(verb string) string { return cmp.Or(pastVerbs[verb], verb) }

// activityIcon is of the kind of what happened.
func activityIcon(a loom.Activity) string {
	switch {
	case a.LeaseMoved():
		return "clock"
	case a.Verb == "reveal":
		return "key"
	case a.Cluster != 0:
		return "cluster"
	case a.Kind == "resource":
		return "file"
	}
	return "template"
}

// activityText is what was done, up to the name of what it was done to.
func activityText(a loom.Activity) string {
	switch {
	case a.Verb == "finish":
		return Capital(doneTo(a.Action))
	case a.LeaseMoved() && a.Action == "":
		return "changed expiry of"
	case a.Kind == "cluster" && a.Action != "":
		return doneTo(a.Action)
	case a.Verb == "reveal", a.Kind == "cluster" && a.Verb == "apply":
		return verbPast(a.Verb)
	case a.Kind == "resource" && a.Verb == "sync":
		return "released staged files:"
	case a.Kind == "operation", a.Kind == "task":
		return verbPast(a.Verb) + " " + numbered(a.Object) + " of"
	case a.Kind == "catalog":
		return verbPast(a.Verb) + " the"
	case a.Kind == "node" || a.Kind == "cluster":
		return verbPast(a.Verb) + " cluster"
	}
	return verbPast(a.Verb) + " " + a.Kind
}

// doneTo is what an operation did, up to the name of the cluster: "scaled up", "added services
// to".
func doneTo(action loom.ClusterAction) string {
	text := strings.ToLower(action.Done())
	verb, object, _ := strings.Cut(text, " ")
	switch {
	case object == "" || object == "up" || object == "down" || object == "back":
		return text
	case verb == "added":
		return text + " to"
	case verb == "removed":
		return text + " from"
	}
	return text + " of"
}

func activityObject(a loom.Activity) string {
	switch {
	case a.Cluster != 0:
		return cmp.Or(a.ClusterName, a.Cluster.String())
	case a.Kind == "catalog":
		return "catalog"
	}
	return a.Object
}

// activityNote is the rest of the sentence.
func activityNote(see ui.Viewer, a loom.Activity) string {
	switch {
	case a.FailedTasks > 0:
		note := ui.Count(a.FailedTasks, "task", "tasks") + " failed"
		if a.FailedNodes > 0 {
			note += " on " + ui.Count(a.FailedNodes, "node", "nodes")
		}
		return note
	case a.Status == loom.OperationFailed && a.Message != "":
		return CutShort(a.Message)
	case a.LeaseMoved():
		return "from " + leaseWord(see, a.LeaseBefore) + " to " + leaseWord(see, a.LeaseAfter)
	}
	return ""
}

// numbered writes the id of an operation, "00000042-003", or of a task, "00000042-003-007",
// as it is called where the cluster is named beside it: "task 7 of operation 3".
func numbered(id string) string {
	parts := strings.Split(id, "-")
	number := func(text string) string { return cmp.Or(strings.TrimLeft(text, "0"), "0") }
	switch len(parts) {
	case 2:
		return "operation " + number(parts[1])
	case 3:
		return "task " + number(parts[2]) + " of operation " + number(parts[1])
	}
	return id
}

// leaseWord writes the end of a lease, milliseconds since 1970.
func leaseWord(see ui.Viewer, millis string) string {
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil || n == 0 {
		return "no expiry"
	}
	return see.Moment(time.UnixMilli(n))
}

// activityHref leads to what it is about; pages of other tenants cannot be opened.
func activityHref(a loom.Activity, all bool) string {
	if all {
		return ""
	}
	if a.Operation != (loom.OperationRef{}) {
		return route.Operation(a.Operation)
	}
	if a.Cluster != 0 {
		return route.Cluster(a.Cluster)
	}
	switch a.Kind {
	case loom.KindTemplate.Word():
		return route.CatalogTemplate(strings.TrimSuffix(a.Object, versionOf(a.Object)))
	case "resource", "catalog":
		return ""
	}
	return ""
}

// versionOf is the end of a name that names a version of it: "web 3".
func versionOf(object string) string {
	if at := strings.LastIndex(object, " "); at >= 0 {
		return object[at:]
	}
	return ""
}
