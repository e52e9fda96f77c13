package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// AuditQuery is what the filters of the audit say.
type AuditQuery struct {
	Actor, Verb, Kind, object, Result, from, request, since, until, period, Tenant string
}

// ReadAuditQuery reads the filters of the audit from an address.
func ReadAuditQuery(q url.Values) AuditQuery {
	return AuditQuery{q.Get("actor"), q.Get("verb"), q.Get("kind"), q.Get("object"), q.Get("result"), strings.TrimSpace(q.Get("from")), strings.TrimSpace(q.Get("request")), q.Get("since"), q.Get("until"), q.Get("period"), q.Get("tenant")}
}

func (q AuditQuery) pairs() []string {
	return []string{"actor", q.Actor, "verb", q.Verb, "kind", q.Kind, "object", q.object, "result", q.Result, "from", q.from, "request", q.request, "since", q.since, "until", q.until, "period", q.period, "tenant", q.Tenant}
}

// Input reads the days; until is the last day that is shown. A range up to now replaces the first
// day. Invalid.
func (q AuditQuery) Input(see ui.Viewer, now time.Time) (in account.AuditInput, errs []loom.FieldError) {
	in.Tenant = q.Tenant
	for _, list := range []struct {
		text string
		into *[]string
	}{{q.Actor, &in.Actors}, {strings.ReplaceAll(q.Verb, " ", "_"), &in.Verbs}, {q.Kind, &in.Kinds}, {q.Result, &in.Results}} {
		if list.text != "" {
			*list.into = []string{list.text}
		}
	}
	if strings.Contains(q.Verb, " ") { // some verbs are two words in the log, some are joined
		in.Verbs = append(in.Verbs, q.Verb)
	}
	in.Object, in.From, in.Request = q.object, q.from, q.request
	in.Since, in.Until, errs = readDays(see, q.since, q.until)
	if q.period == "" {
		return in, errs
	}
	since, err := lately(q.period, now)
	if err != nil {
		return in, append(errs, *err)
	}
	in.Since = since
	return in, errs
}

// readDays reads the first and the last day of a list, each "" for none; until is the
// end of its day.
func readDays(see ui.Viewer, first, last string) (since, until time.Time, errs []loom.FieldError) {
	for _, day := range []struct {
		name, text string
		into       *time.Time
		more       int
	}{{"since", first, &since, 0}, {"until", last, &until, 1}} {
		if day.text == "" {
			continue
		}
		at, err := see.ParseDay(day.text)
		if err != nil {
			errs = append(errs, loom.FieldError{Field: day.name, Message: "Enter a day as year-month-day, such as 2026-06-09."})
			continue
		}
		*day.into = at.AddDate(0, 0, day.more)
	}
	return since, until, errs
}

func (q AuditQuery) filtered() bool {
	tenant := q.Tenant
	q.Tenant = ""
	return q != AuditQuery{} || tenant != "" && tenant != "*"
}

// AuditFilters is the form of the filters of the audit: choices of what its newest entries say.
func (s *Shared) AuditFilters(r *http.Request, actor loom.Actor, base string, q AuditQuery, errs ui.FormErrors) (templ.Component, error) {
	of := q.Tenant
	if base != route.SystemAudit() {
		of = ""
	}
	values, err := s.Accounts.AuditValues(r.Context(), actor, of)
	if err != nil {
		return nil, err
	}
	text := func(name, label, value string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Value: value, Optional: true, Width: "s", MaxLength: 255, Error: errs.For(name)}
	}
	m := adminview.FiltersModel{Action: base, Whole: true, Label: "Filter the audit log", RangesLabel: "Time range", RangesError: errs.For("period"), Hidden: []adminview.HiddenField{{Name: "period", Value: q.period}}}
	choice := func(name, label, chosen string, words func(string) string, values []string) {
		var pairs []string
		for _, v := range values {
			pairs = append(pairs, v, words(v))
		}
		m.Fields = append(m.Fields, chosenOf(ui.FieldModel{Name: name, Label: label, Error: errs.For(name)}, chosen, pairs))
	}
	if base == route.SystemAudit() {
		list, err := s.Accounts.Tenants(r.Context(), actor)
		if err != nil {
			return nil, err
		}
		pairs := []string{"*", "All tenants"}
		for _, t := range list {
			pairs = append(pairs, t.Name, t.Name)
		}
		f := chosenOf(ui.FieldModel{Name: "tenant", Label: "Tenant", Error: errs.For("tenant")}, q.Tenant, pairs)
		f.Options = f.Options[1:] // “any” is that of the superadmins
		m.Fields = append(m.Fields, f)
	}
	if base != route.AccountActivity() { // there all is one's own
		choice("actor", "User", q.Actor, func(v string) string { return userName(actor, "", loom.UserID(v)) }, values.Actors)
	}
	choice("verb", "Action", q.Verb, func(v string) string { return Capital(verbPast(v)) }, values.Verbs)
	choice("kind", "Subject", q.Kind, func(v string) string { return Capital(kindWord(v)) }, values.Kinds)
	choice("result", "Result", q.Result, func(v string) string { return auditStates[v].Word }, []string{"ok", "refused", "failed"})
	since, until, from := text("since", "From day", q.since), text("until", "To day", q.until), text("from", "From where", q.from)
	from.Placeholder, since.Kind, until.Kind = "IP or session", ui.FieldDate, ui.FieldDate
	m.More = []ui.FieldModel{since, until, text("object", "Named", q.object), from, text("request", "Request", q.request)}
	m.Ranges = ranges(q.period, func(period string) string {
		to := q
		if to.period = period; period != "" {
			to.since = ""
		}
		return route.Query(base, to.pairs()...)
	})
	if q.filtered() {
		m.Clear = base
	}
	return adminview.Filters(m), nil
}

var auditStates = map[string]ui.State{
	"ok":      {Word: "Done", Icon: "check-circle", Tone: ui.ToneOK},
	"refused": {Word: "Refused", Icon: "ban", Tone: ui.ToneWarn},
	"failed":  {Word: "Failed", Icon: "error", Tone: ui.ToneBad},
}

// AuditGrid lists entries; files are the addresses of all of them as CSV and JSON.
func (s *Shared) AuditGrid(see ui.Viewer, base string, q AuditQuery, list account.AuditList, files ...string) templ.Component {
	m := adminview.TableModel{Flow: true, ID: "audit", Caption: "Audit, the newest first", Now: s.Now(),
		Columns: []ui.Column{{Label: "What"}, {Label: "Result"}, {Label: "When"}, {Label: "From where"}, {Label: "Changed"}},
		Pages:   Turned("Pages of the audit", base, list.Next, list.Prev, q.pairs()...),
		Empty:   ui.EmptyModel{Icon: "list", Text: "Nothing was recorded yet."}}
	if base == "" { // a part of another page
		m.Caption, m.ShowCaption = "Recent activity", true
	}
	if len(files) == 2 {
		m.CSV, m.JSON = files[0], files[1]
	}
	if q.filtered() {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No entry matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: base}}
	}
	for _, e := range list.Items {
		state, ok := auditStates[e.Result]
		if !ok {
			state = ui.State{Word: e.Result, Icon: "circle", Tone: ui.ToneIdle}
		}
		who := userName(loom.Actor{}, "", e.Actor.User)
		if base == route.AccountActivity() {
			who = "You"
		}
		from := adminview.Cell{Text: via(e.Actor)}
		if base == route.SystemAudit() {
			from.Text = e.Actor.TenantName + " · " + from.Text
		}
		words, object := auditWords(e)
		m.Rows = append(m.Rows, []adminview.Cell{{Part: adminview.Deed(who, words, object)}, {State: &state}, {Time: e.Time}, from, {Part: auditDetails(see, e)}})
	}
	return adminview.Table(m)
}

// auditKinds are the words of kinds that are not their own.
var auditKinds = map[string]string{"river_job": "River job", "settings": "settings of the tenant", "preferences": "preferences", "leftover": "leftover machine", "resource": "file"}

func kindWord(kind string) string {
	return cmp.Or(auditKinds[kind], strings.ReplaceAll(kind, "_", " "))
}

// auditWords is what an entry says: "created cluster", and the name of what it is about.
func auditWords(e loom.AuditEntry) (words, object string) {
	verb := verbPast(e.Verb)
	switch {
	case e.Kind == "session" && (e.Verb == "sign_in" || e.Verb == "sign_out"):
		return verb, ""
	case e.Kind == "settings" || e.Kind == "preferences" || e.Kind == "catalog":
		return verb + " the " + kindWord(e.Kind), ""
	}
	if after, ok := Members(e.After).(map[string]any); ok && e.Kind == "cluster" && e.Verb == "apply" {
		action, _ := after["action"].(string) // a create names none
		verb = doneTo(cmp.Or(loom.ClusterAction(action), loom.ClusterCreate).Done(), loom.Activity{})
	}
	if e.Verb == "act_as" && e.Kind == "tenant" {
		verb += " administrator of"
	}
	return verb + " " + kindWord(e.Kind), auditObject(e)
}

// auditObject is the name of what an entry is about; clusters and hooks are recorded by number.
func auditObject(e loom.AuditEntry) string {
	if e.Kind == "cluster" || e.Kind == "hook" {
		for _, body := range []any{e.After, e.Before} {
			if members, ok := Members(body).(map[string]any); ok {
				if name, ok := members["name"].(string); ok {
					return name
				}
			}
		}
	}
	return e.Object
}

func via(a loom.Actor) string {
	with := strings.Replace(a.Via, "token:", "token ", 1)
	if a.Address == "" {
		return with
	}
	return with + " from " + a.Address
}

// maxDifferences is how many values of an entry a page shows.
const maxDifferences = 200

// auditDetails shows what an entry changed as a difference; what was made or
// removed as a whole differs from nothing.
func auditDetails(see ui.Viewer, e loom.AuditEntry) templ.Component {
	before, after := Members(e.Before), Members(e.After)
	differences := catalog.Differences(before, after)
	changes := ChangesOf(differences[:min(len(differences), maxDifferences)])
	summary := "details"
	if len(changes) > 0 {
		summary = ui.Count(len(differences), "value", "values")
	}
	facts := []ui.Def{{Term: "Time", Text: see.Full(e.Time)}, {Term: Capital(kindWord(e.Kind)), Text: e.Object, Mono: true}}
	if e.Actor.RequestID != "" {
		facts = append(facts, ui.Def{Term: "Request", Text: e.Actor.RequestID, Mono: true})
	}
	if len(differences) > len(changes) {
		facts = append(facts, ui.Def{Term: "Shown", Text: fmt.Sprintf("The first %d of %d values; the REST API gives all.", len(changes), len(differences))})
	}
	return adminview.Details(adminview.DetailsModel{Summary: summary, Facts: facts, Changes: changes})
}

// Members gives a stored value as an object; nothing is an empty one.
func Members(v any) any {
	tree := TreeOf(v)
	if tree == nil {
		return map[string]any{}
	}
	return tree
}
