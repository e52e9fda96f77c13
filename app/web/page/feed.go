package page

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// ActivityFeed is a part of another page: what happened by day, without what that page says of
// failures. Several alike become one. Without a base it is all of that of the tenant q.Tenant.
func (s *Shared) ActivityFeed(see ui.Viewer, actor loom.Actor, base string, all bool, q ActivityQuery, list account.ActivityList) templ.Component {
	m := s.feedModel(see, actor, base, all, q, list)
	for _, day := range m.Days {
		for i := range day.Items {
			day.Items[i].Note = ""
		}
	}
	return adminview.Feed(m)
}

func (s *Shared) feedModel(see ui.Viewer, actor loom.Actor, base string, all bool, q ActivityQuery, list account.ActivityList) adminview.FeedModel {
	m := adminview.FeedModel{ID: feedID, Now: s.Now(), Pages: Turned("Pages of the activity", base, list.Next, list.Prev, q.pairs()...),
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
	for _, group := range bursts(list.Items) {
		day := see.Day(group[0].Time)
		if n := len(m.Days); n == 0 || m.Days[n-1].Title != day {
			m.Days = append(m.Days, adminview.FeedDay{Title: day})
		}
		d := &m.Days[len(m.Days)-1]
		d.Items = append(d.Items, s.feedItem(see, actor, group, all))
	}
	return m
}

// waysOn adds to operations that did not succeed the button that leads on, where nothing else
// was done to the cluster since.
func (s *Shared) waysOn(r *http.Request, actor loom.Actor, list account.ActivityList, m *adminview.FeedModel) error {
	failed := map[string]*loom.Operation{}
	var ids []loom.ClusterID
	for _, a := range list.Items {
		if op := a.Began; op != nil && op.Status.Final() && op.Status != loom.OperationComplete {
			failed[feedKey(a)] = op
			ids = append(ids, a.Cluster)
		}
	}
	found, err := s.Summaries(r.Context(), actor, ids)
	if err != nil {
		return err
	}
	for _, day := range m.Days {
		for i := range day.Items {
			op := failed[day.Items[i].ID]
			if op == nil {
				continue
			}
			c, there := found[op.Ref.Cluster]
			if there && c.LatestOperation == op.Ref.Number && (c.Status == loom.ClusterIncomplete || c.Status == loom.ClusterInconsistent) {
				day.Items[i].Actions = []ui.ButtonModel{WayOn(op, c)}
			}
		}
	}
	return nil
}

// WayOn is the button that leads on from the latest operation of a cluster, which did not
// succeed.
func WayOn(op *loom.Operation, c loom.ClusterSummary) ui.ButtonModel {
	switch {
	case op.NeverBegan():
		return ui.ButtonModel{Label: "Request again", Small: true, Href: route.Cluster(c.ID), Attrs: templ.Attributes{"aria-label": "Request again: " + c.Name}}
	case op.Action == loom.ClusterDelete:
		at := route.ClusterDelete(c.ID)
		return ui.ButtonModel{Label: "Delete again", Small: true, Href: at, WhyNot: c.WhyNot(loom.ChangeDelete), Attrs: ui.OpensDialog(at)}
	}
	// The form offers newer versions, other settings and to leave out what failed: the same again most likely fails again.
	return ui.ButtonModel{Label: "Change and retry", Small: true, Href: route.OperationRetry(op.Ref, nil, nil, true), WhyNot: c.WhyNot(loom.ChangeRetry),
		Attrs: templ.Attributes{"aria-label": "Change and retry " + op.Action.Verb() + " of " + c.Name}}
}

func feedKey(a loom.Activity) string { return "event-" + strconv.FormatInt(a.ID, 10) }

// userName is what a feed calls a user of a tenant: the reader is "You".
func userName(actor loom.Actor, tenant loom.TenantID, id loom.UserID) string {
	switch {
	case id == loom.SystemUser:
		return "Loom"
	case id == actor.User && tenant == actor.Tenant:
		return "You"
	}
	return string(id)
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
func (s *Shared) feedItem(see ui.Viewer, actor loom.Actor, group []loom.Activity, all bool) adminview.FeedItem {
	a := group[0]
	item := adminview.FeedItem{ID: feedKey(a), Icon: activityIcon(a), Who: userName(actor, a.Tenant, a.Actor), Time: a.Time}
	if all {
		item.Who += " of " + a.TenantName
	}
	if state, ok := auditStates[a.Result]; ok && a.Result != loom.ActivityDone && a.Began == nil {
		item.State = &state
	}
	switch {
	case len(group) > 1:
		item.Text = verbPast(a.Verb) + " " + strconv.Itoa(len(group)) + " times: " + a.Kind
		if a.Kind != "catalog" {
			item.Text = verbPast(a.Verb) + " " + ui.Count(len(group), a.Kind, Plural(a.Kind))
		}
		for _, one := range group {
			item.More = append(item.More, adminview.FeedLink{Text: one.Object, Href: activityHref(one, all), Time: one.Time})
		}
	case a.Began != nil:
		s.operationItem(a, all, &item)
	default:
		item.Text = activityText(a)
		item.Link = adminview.FeedLink{Text: activityObject(a), Href: activityHref(a, all)}
		if a.LeaseMoved() {
			item.Rest = "from " + leaseWord(see, a.LeaseBefore) + " to " + leaseWord(see, a.LeaseAfter)
		}
		if a.HandedOver() {
			item.Rest = "from " + ownerWord(actor, a, a.OwnerBefore) + " to " + ownerWord(actor, a, a.OwnerAfter)
			if a.OwnerBefore == actor.User && actor.May(loom.See, loom.Object{Tenant: a.Tenant, Owner: a.OwnerAfter, Cluster: a.Cluster}) != nil {
				item.Link.Href = "" // whoever had it need not see it still
			}
		}
	}
	return item
}

// longestReason is how much of the message of an operation a feed shows, in characters.
const longestReason = 200

// operationItem says what an operation does, did or was to do, and how it is.
func (s *Shared) operationItem(a loom.Activity, all bool, item *adminview.FeedItem) {
	op := a.Began
	item.Link = adminview.FeedLink{Text: activityObject(a)}
	state := ui.OperationState(op.Status, op.Aborted)
	switch {
	case op.Status == loom.OperationComplete:
		item.Text, item.StateSays = doneTo(op.Action.Done(), a), state.Word+" in"
		state.Word = ui.Duration(op.Ended.Sub(op.Started))
	case op.Status.Final():
		if op.Refused() {
			state = ui.RefusedState()
		}
		item.Text = "tried to " + doneTo(op.Action.Verb(), a)
		if reason := []rune(op.Message); len(reason) > longestReason {
			item.Note = string(reason[:longestReason]) + "…"
		} else {
			item.Note = op.Message
		}
	default:
		item.Text = "is " + doneTo(op.Action.Doing(), a)
		if item.Who == "You" {
			item.Text = "are " + doneTo(op.Action.Doing(), a)
		}
		if p := op.Progress(); p.Total > 0 {
			state.Detail = strconv.Itoa(100*p.Done/p.Total) + " %"
		}
	}
	switch {
	case scaled(a):
		item.Rest = "from " + strconv.Itoa(a.NodesBefore) + " to " + strconv.Itoa(a.NodesAfter)
	case op.Action == loom.ClusterCreate && !op.Retries && a.NodesAfter > 0:
		item.Rest = "with " + ui.Count(a.NodesAfter, "node", "nodes")
	}
	if op.Retries {
		item.Rest = strings.TrimSpace(item.Rest + " (retry)")
	}
	state.Fact = "operation " + op.Ref.String()
	item.State = &state
	if !all { // pages of other tenants cannot be opened
		item.Link.Href, item.StateHref = route.Cluster(a.Cluster), route.Operation(op.Ref)
	}
}

// scaled reports whether the number of nodes changes, and from what to what is known.
func scaled(a loom.Activity) bool {
	return (a.Action == loom.ClusterExpand || a.Action == loom.ClusterShrink) && a.NodesBefore > 0 && a.NodesAfter > 0
}

var pastVerbs = map[string]string{
	"create": "created", "update": "changed", "apply": "changed", "delete": "deleted", "abort": "aborted", "pause": "paused", "resume": "resumed",
	"skip": "skipped", "reveal": "downloaded the key of", "import": "imported into", "stage": "staged", "recall": "withdrew", "withdraw": "withdrew", "sync": "released", "release": "released", "retry": "retried", "retry-now": "retried", "stop-retrying": "stopped retrying", "probe": "tested", "sweep": "searched", "upload": "uploaded", "maintain": "started maintenance of", "end maintenance": "ended maintenance of", "decline repair": "declined the repair of",
	"sign_in": "signed in", "sign_out": "signed out", "act_as": "acted as", "extend": "extended", "unlock": "unlocked", "test": "tested", "verify": "mapped sizes and images of",
	"remove": "removed", "drain": "drained", "cancel": "canceled", "rotate": "renewed", "add": "added",
}

func verbPast(verb string) string { return cmp.Or(pastVerbs[verb], strings.ReplaceAll(verb, "_", " ")) }

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

// ownerWord is what a feed calls an owner: the reader is "you".
func ownerWord(actor loom.Actor, a loom.Activity, id loom.UserID) string {
	if name := userName(actor, a.Tenant, id); name != "You" {
		return name
	}
	return "you"
}

// activityText is what was done, up to the name of what it was done to.
func activityText(a loom.Activity) string {
	switch {
	case a.HandedOver():
		return "handed over"
	case a.LeaseMoved() && a.Action == "":
		return "changed expiry of"
	case a.Kind == "cluster" && a.Action != "":
		return "asked to " + doneTo(a.Action.Verb(), a) // once what runs now has ended
	case a.Kind == "cluster" && strings.HasSuffix(verbPast(a.Verb), " of"), a.Kind == "cluster" && a.Verb == "apply":
		return verbPast(a.Verb)
	case a.Verb == "reveal":
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

// doneTo joins what is done with the name of the cluster that follows: "added services to".
func doneTo(words string, a loom.Activity) string {
	words = strings.ToLower(words)
	verb, object, _ := strings.Cut(words, " ")
	switch {
	case object == "up" || object == "down":
		if scaled(a) {
			return verb
		}
		return words
	case object == "" || object == "back":
		return words
	case strings.HasPrefix(verb, "add"):
		return words + " to"
	case strings.HasPrefix(verb, "remov"):
		return words + " from"
	}
	return words + " of"
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
