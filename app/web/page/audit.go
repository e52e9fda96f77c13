package page

import (
	"fmt"
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
	Actor, Verb, Kind, object, Result, from, request, since, until, Tenant string
}

// ReadAuditQuery reads the filters of the audit from an address.
func ReadAuditQuery(q url.Values) AuditQuery {
	return AuditQuery{q.Get("actor"), q.Get("verb"), q.Get("kind"), q.Get("object"), q.Get("result"), strings.TrimSpace(q.Get("from")), strings.TrimSpace(q.Get("request")), q.Get("since"), q.Get("until"), q.Get("tenant")}
}

func (q AuditQuery) pairs() []string {
	return []string{"actor", q.Actor, "verb", q.Verb, "kind", q.Kind, "object", q.object, "result", q.Result, "from", q.from, "request", q.request, "since", q.since, "until", q.until, "tenant", q.Tenant}
}

// Input reads the days; until is the last day that is shown. Invalid.
func (q AuditQuery) Input(see ui.Viewer) (in account.AuditInput, errs []loom.FieldError) {
	in.Tenant = q.Tenant
	for _, list := range []struct {
		text string
		into *[]string
	}{{q.Actor, &in.Actors}, {strings.ReplaceAll(q.Verb, " ", "_"), &in.Verbs}, {q.Kind, &in.Kinds}, {q.Result, &in.Results}} {
		if list.text != "" {
			*list.into = []string{list.text}
		}
	}
	in.Object, in.From, in.Request = q.object, q.from, q.request
	in.Since, in.Until, errs = readDays(see, q.since, q.until)
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

// AuditFilters is the form of the filters of the audit.
func AuditFilters(base string, q AuditQuery, errs ui.FormErrors) templ.Component {
	text := func(name, label, value string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Value: value, Optional: true, Width: "s", MaxLength: 255, Error: errs.For(name)}
	}
	verb, kind, from := text("verb", "Did", q.Verb), text("kind", "To a", q.Kind), text("from", "From where", q.from)
	verb.Placeholder, kind.Placeholder, from.Placeholder = "update", "cluster", "IP or session"
	since, until := text("since", "From day", q.since), text("until", "To day", q.until)
	since.Kind, until.Kind = ui.FieldDate, ui.FieldDate
	m := adminview.FiltersModel{Action: base, Target: "audit-list"}
	if base != route.AccountActivity() { // there all is one's own
		m.Fields = append(m.Fields, text("actor", "Who", q.Actor))
	}
	m.Fields = append(m.Fields, verb,
		ui.FieldModel{Name: "result", Label: "Result", Kind: ui.FieldSelect, Width: "s", Optional: true, Options: Options(q.Result, "", "Any", "ok", "Done", "refused", "Refused", "failed", "Failed")},
		since, until)
	m.More = []ui.FieldModel{kind, text("object", "Named", q.object), from, text("request", "Request", q.request)}
	if base == route.SystemAudit() {
		m.Fields = append(m.Fields, ui.FieldModel{Name: "tenant", Label: "Tenant", Value: q.Tenant, Optional: true, Width: "s", MaxLength: 255, Help: "“*” is all of them.", Error: errs.For("tenant")})
	}
	if q.filtered() {
		m.Clear = base
	}
	return adminview.Filters(m)
}

var auditStates = map[string]ui.State{
	"ok":      {Word: "Done", Icon: "check-circle", Tone: ui.ToneOK},
	"refused": {Word: "Refused", Icon: "ban", Tone: ui.ToneWarn},
	"failed":  {Word: "Failed", Icon: "error", Tone: ui.ToneBad},
}

// AuditGrid lists entries; files are the addresses of all of them as CSV and JSON.
func (s *Shared) AuditGrid(see ui.Viewer, base string, q AuditQuery, list account.AuditList, files ...string) templ.Component {
	m := adminview.TableModel{ID: "audit", Caption: "Audit, the newest first", Now: s.Now(),
		Columns: []ui.Column{{Label: "When"}, {Label: "Did what"}, {Label: "Who"}, {Label: "Result"}, {Label: "Changed"}},
		Pages:   Turned("Pages of the audit", base, list.Next, list.Prev, q.pairs()...),
		Empty:   ui.EmptyModel{Icon: "list", Text: "Nothing was recorded yet."}}
	if base == route.AccountActivity() {
		m.Columns[2].Label = "From where"
	}
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
		who := adminview.Cell{Text: string(e.Actor.User), Mono: true, Sub: via(e.Actor)}
		if base == route.AccountActivity() {
			who = adminview.Cell{Text: via(e.Actor)}
		}
		if base == route.SystemAudit() {
			who.Sub = e.Actor.TenantName + " · " + who.Sub
		}
		m.Rows = append(m.Rows, []adminview.Cell{{Time: e.Time}, {Text: strings.ReplaceAll(e.Verb, "_", " ") + " " + e.Kind, Sub: e.Object}, who, {State: &state}, {Part: auditDetails(see, e)}})
	}
	return adminview.Table(m)
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
	facts := []ui.Def{{Term: "Time", Text: see.Full(e.Time)}, {Term: "Object", Text: e.Kind + " " + e.Object, Mono: true}}
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
