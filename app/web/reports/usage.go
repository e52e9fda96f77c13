package reports

import (
	"cmp"
	"encoding/csv"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// usageQuery is what the form above the usage says.
type usageQuery struct {
	period, from, to, group, split, unit, user, template, tenant string
}

// usageRoom is one of the three usage pages: whose use, and by what it is split.
type usageRoom struct {
	base   string
	page   layout.Model
	splits []string // values and labels in turn, the first is the default
	// Whose use it is: one's own, that of the tenant, or that of all tenants.
	own, admin, all bool
}

var (
	usagePeriods = []string{"24h", "24 h", "7d", "7 d", "30d", "30 d", periodCustom, "Custom"}
	usageUnits   = []string{"hours", "Node-hours", "days", "Node-days"}
)

// periodCustom is from one day to another.
const periodCustom = "custom"

var splitWords = map[string]string{"user": "User", "clustertemplate": "Template", "cluster": "Cluster", "hardwaretype": "Hardware type", "provider": "Provider", "tenant": "Tenant"}

func (s *Server) usage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.usagePage(w, r, actor, usageRoom{base: route.Usage(), own: true,
		page:   layout.Model{Title: "Usage", Area: layout.AreaClusters, Here: route.Usage()},
		splits: []string{"clustertemplate", "Template", "cluster", "Cluster", "hardwaretype", "Hardware type", "provider", "Provider"}})
}

func (s *Server) adminUsage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.usagePage(w, r, actor, usageRoom{base: route.AdminUsage(), admin: true,
		page:   page.AdminFrame("Usage", route.AdminUsage()),
		splits: []string{"user", "User", "clustertemplate", "Template", "cluster", "Cluster", "hardwaretype", "Hardware type", "provider", "Provider"}})
}

func (s *Server) systemUsage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.usagePage(w, r, actor, usageRoom{base: route.SystemUsage(), all: true,
		page:   page.SystemFrame("Usage", route.SystemUsage()),
		splits: []string{"tenant", "Tenant", "user", "User", "clustertemplate", "Template", "cluster", "Cluster", "hardwaretype", "Hardware type", "provider", "Provider"}})
}

// readUsage reads the form. Without a grouping, the one that suits the period is
// taken.
func readUsage(q url.Values, room usageRoom) usageQuery {
	or := func(name, absent string) string {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			return v
		}
		return absent
	}
	u := usageQuery{period: or("period", "7d"), from: or("from", ""), to: or("to", ""), split: or("split", room.splits[0]), unit: or("unit", "hours"), user: or("user", ""), template: or("template", ""), tenant: or("tenant", "")}
	u.group = or("group", map[string]string{"24h": "hour", "7d": "day", "30d": "day"}[u.period])
	if u.group == "" {
		u.group = "day"
	}
	if room.own {
		u.user = ""
	}
	if !room.all {
		u.tenant = ""
	}
	return u
}

func (u usageQuery) pairs() []string {
	return []string{"period", u.period, "from", u.from, "to", u.to, "group", u.group, "split", u.split, "unit", u.unit, "user", u.user, "template", u.template, "tenant", u.tenant}
}

// with is the address of the page with some of the query changed.
func (u usageQuery) with(base string, changed ...string) string {
	pairs := u.pairs()
	for i := 0; i+1 < len(changed); i += 2 {
		if at := slices.Index(pairs, changed[i]); at >= 0 && at%2 == 0 {
			pairs[at+1] = changed[i+1]
			continue
		}
		pairs = append(pairs, changed[i], changed[i+1])
	}
	return route.Query(base, pairs...)
}

// input makes times of the period: it begins at a full hour or day.
func (u usageQuery) input(see ui.Viewer, room usageRoom, now time.Time) (in processes.ReportInput, errs []loom.FieldError) {
	now = see.In(now)
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	in = processes.ReportInput{Own: room.own, All: room.all, Tenant: u.tenant, User: loom.UserID(u.user), Template: u.template, GroupBy: u.group, Split: u.split, End: now, Zone: now.Location()}
	if !slices.Contains([]string{"hours", "days"}, u.unit) {
		errs = append(errs, loom.FieldError{Field: "unit", Message: "The unit is hours or days."})
	}
	switch u.period {
	case "24h":
		in.Start = time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), 0, 0, 0, now.Location()).Add(-23 * time.Hour)
	case "7d":
		in.Start = day.AddDate(0, 0, -6)
	case "30d":
		in.Start = day.AddDate(0, 0, -29)
	case periodCustom:
		in.Start, in.End = day.AddDate(0, 0, -6), now
		for _, d := range []struct {
			name, text string
			into       *time.Time
			more       int
		}{{"from", u.from, &in.Start, 0}, {"to", u.to, &in.End, 1}} {
			if d.text == "" {
				continue
			}
			at, err := see.ParseDay(d.text)
			if err != nil {
				errs = append(errs, loom.FieldError{Field: d.name, Message: "Give a day as year-month-day, such as 2026-06-09."})
				continue
			}
			*d.into = at.AddDate(0, 0, d.more)
		}
	default:
		errs = append(errs, loom.FieldError{Field: "period", Message: "The period is 24h, 7d, 30d or custom."})
	}
	return in, errs
}

func (s *Server) usagePage(w http.ResponseWriter, r *http.Request, actor loom.Actor, room usageRoom) error {
	u := readUsage(r.URL.Query(), room)
	in, bad := u.input(ui.ViewerOf(r.Context()), room, s.Now())
	var report processes.Report
	err := loom.InvalidFields(bad)
	if err == nil {
		report, err = s.Processes.Report(r.Context(), actor, in)
	}
	e := loom.AsError(err)
	if err != nil && (e.Kind != loom.Invalid || len(e.Fields) == 0) {
		return err
	}
	if err == nil && r.URL.Query().Get("as") == "csv" {
		return usageCSV(w, u, report)
	}
	status, errs := http.StatusOK, ui.FormErrors{}
	m := adminview.PageModel{Title: "Usage"}
	if err != nil {
		status, errs = http.StatusUnprocessableEntity, ui.NewFormErrors("", e.Fields)
		m.Parts = []templ.Component{usageFilters(room, u, in, errs)}
		return s.Sheet(w, r, actor, status, room.page, m)
	}
	parts, err := s.usageParts(r, actor, room, u, report)
	if err != nil {
		return err
	}
	m.Actions = []ui.ButtonModel{{Label: "Download CSV", Icon: "download", Href: u.with(room.base, "as", "csv")}}
	m.Parts = append([]templ.Component{usageFilters(room, u, in, errs)}, parts...)
	m.Calls = []ui.JSONCall{page.Call("read", http.MethodGet, usageCall(actor, room, u, report), "")}
	return s.Sheet(w, r, actor, status, room.page, m)
}

// usageCall is the call of the REST API that answers with the same sums, but for
// months, which have 30 days there.
func usageCall(actor loom.Actor, room usageRoom, u usageQuery, report processes.Report) string {
	tenant, user, split := u.tenant, u.user, u.split
	if !room.all {
		tenant = actor.TenantName
	}
	if room.own {
		user = string(actor.User)
	}
	if split == "tenant" {
		split = ""
	}
	return route.Query("/v2/metrics/nodes/usage", "tenant", tenant, "user", user, "clustertemplate", u.template, "start", strconv.FormatInt(report.Start.Unix(), 10),
		"end", strconv.FormatInt(report.End.Unix(), 10), "groupby", u.group, "timeunit", u.unit, "split", split)
}

// usageFilters are the range and what the use is summed by. Whom and what it is limited to comes
// from links of the list, and is a chip.
func usageFilters(room usageRoom, u usageQuery, in processes.ReportInput, errs ui.FormErrors) templ.Component {
	m := adminview.FiltersModel{Action: room.base, Whole: true, Label: "Filter usage", RangesLabel: "Time range", RangesError: errs.For("period"),
		Hidden: []adminview.HiddenField{{Name: "period", Value: u.period}, {Name: "user", Value: u.user}, {Name: "template", Value: u.template}, {Name: "tenant", Value: u.tenant}}}
	for i := 0; i+1 < len(usagePeriods); i += 2 {
		m.Ranges = append(m.Ranges, ui.Tab{Label: usagePeriods[i+1], Href: u.with(room.base, "period", usagePeriods[i], "group", ""), Current: usagePeriods[i] == u.period})
	}
	if u.period == periodCustom {
		for _, day := range []struct{ name, label, value string }{{"from", "From day", cmp.Or(u.from, in.Start.Format(time.DateOnly))}, {"to", "To day", cmp.Or(u.to, in.End.Format(time.DateOnly))}} {
			m.Fields = append(m.Fields, ui.FieldModel{Name: day.name, Label: day.label, Kind: ui.FieldDate, Value: day.value, Optional: true, Width: "s", Error: errs.For(day.name)})
		}
	}
	choice := func(name, label, value, prefix string, pairs []string) {
		f := ui.FieldModel{Name: name, Label: label, Kind: ui.FieldSelect, Width: "s", LabelHidden: u.period != periodCustom, Options: page.Options(value, pairs...), Error: errs.For(name)}
		for i := range f.Options {
			f.Options[i].Label = page.Capital(prefix + strings.ToLower(f.Options[i].Label))
		}
		m.Fields = append(m.Fields, f)
	}
	choice("group", "Group", u.group, "by ", page.UsageGroups)
	choice("split", "Split", u.split, "by ", room.splits)
	choice("unit", "Unit", u.unit, "", usageUnits)
	for _, part := range []struct{ name, label, value string }{{"tenant", "Tenant", u.tenant}, {"user", "User", u.user}, {"template", "Template", u.template}} {
		if part.value != "" {
			m.Chips = append(m.Chips, ui.Tab{Label: part.label + ": " + page.CutShort(part.value), Href: u.with(room.base, part.name, "")})
		}
	}
	return adminview.Filters(m)
}

// usageCSV sends a line for each interval and part of the chart, and without parts one for
// each interval.
func usageCSV(w http.ResponseWriter, u usageQuery, report processes.Report) error {
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="usage-`+report.Start.Format(time.DateOnly)+"-"+report.End.Format(time.DateOnly)+`.csv"`)
	per, unit := unitOf(u.unit)
	out := csv.NewWriter(w)
	value := func(v float64) string { return strconv.FormatFloat(v/per, 'f', 3, 64) }
	rows := [][]string{{"from", "to", u.split, unit}}
	for i := range report.Hours {
		from, to := report.Marks[i].Format(time.RFC3339), report.Marks[i+1].Format(time.RFC3339)
		rest := report.Hours[i]
		for _, part := range report.Splits {
			if part.Hours != nil {
				rows = append(rows, []string{from, to, page.CsvText(part.Name), value(part.Hours[i])})
				rest -= part.Hours[i]
			}
		}
		if len(report.Splits) == 0 || report.Splits[0].Hours == nil {
			rows = append(rows, []string{from, to, "", value(rest)})
		} else if report.Parts > processes.ReportSeries {
			rows = append(rows, []string{from, to, "(others)", value(max(rest, 0))})
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return nil // the browser went away
	}
	return nil
}

// unitOf gives the hours of a unit and its name.
func unitOf(unit string) (per float64, name string) {
	if unit == "days" {
		return 24, "node-days"
	}
	return 1, "node-hours"
}

// usageParts are the total, the chart and the list of parts.
func (s *Server) usageParts(r *http.Request, actor loom.Actor, room usageRoom, u usageQuery, report processes.Report) ([]templ.Component, error) {
	if report.Total <= 0 {
		empty := ui.EmptyModel{Icon: "clock", Text: "No node time in this range."}
		if report.Before > 0 {
			empty.More, empty.MoreHref = "Show the last 30 days", u.with(room.base, "period", "30d", "group", "day")
		}
		return []templ.Component{adminview.Bare("c-card", ui.Empty(empty))}, nil
	}
	report, ids, err := s.usageNames(r, actor, room, u, report)
	if err != nil {
		return nil, err
	}
	chart := usageChart(u, report)
	parts := []templ.Component{usageFigure(ui.ViewerOf(r.Context()), u, report)}
	if room.admin {
		quota, err := s.Accounts.Quota(r.Context(), actor)
		if err != nil {
			return nil, err
		}
		if quota.MaxNodes < loom.Unlimited {
			per, unit := unitOf(u.unit)
			chart.Limit = &ui.ChartLimit{Name: "quota", Value: widest(report) * float64(quota.MaxNodes) / per}
			if u.user+u.template == "" && !chart.ShowsLimit() {
				parts = append(parts, adminview.Text("The quota of "+ui.Count(quota.MaxNodes, "node", "nodes")+" allows "+ui.Figure(chart.Limit.Value, 0)+" "+unit+" "+perGroup[u.group]+", far above the chart."))
			}
		}
		if u.user+u.template != "" {
			chart.Limit = nil // the quota is not that of a user
		}
	}
	return append(parts, adminview.Bare("c-card", ui.Chart(chart)), usageGrid(room, u, report, ids)), nil
}

// usageNames gives the parts of a report by cluster the names of the clusters in place of
// their ids, and the ids in the order of the parts; nil for other reports and where
// clusters of other tenants are among them. Clusters of the same name keep the id with it.
func (s *Server) usageNames(r *http.Request, actor loom.Actor, room usageRoom, u usageQuery, report processes.Report) (processes.Report, []string, error) {
	if u.split != "cluster" || room.all {
		return report, nil, nil
	}
	texts := make([]string, len(report.Splits))
	for i, part := range report.Splits {
		texts[i] = part.Name
	}
	found, err := s.Summaries(r.Context(), actor, page.ReadIDs(texts, loom.MaxPageLimit))
	if err != nil {
		return report, nil, err
	}
	times := map[string]int{}
	for _, c := range found {
		times[c.Name]++
	}
	report.Splits = slices.Clone(report.Splits)
	for i, text := range texts {
		id, _ := loom.ParseClusterID(text)
		switch c, there := found[id]; {
		case !there:
		case times[c.Name] > 1:
			report.Splits[i].Name = c.Name + " " + text
		default:
			report.Splits[i].Name = c.Name
		}
	}
	return report, texts, nil
}

var perGroup = map[string]string{"hour": "an hour", "day": "a day", "week": "a week", "month": "a month"}

// widest is the length of the longest interval in hours.
func widest(report processes.Report) (hours float64) {
	for i := range report.Hours {
		hours = max(hours, report.Marks[i+1].Sub(report.Marks[i]).Hours())
	}
	return hours
}

// usageFigure is the total, with what it is compared to.
func usageFigure(see ui.Viewer, u usageQuery, report processes.Report) templ.Component {
	per, unit := unitOf(u.unit)
	length := report.End.Sub(report.Start)
	before := "none in the previous " + ui.Duration(length)
	if report.Before > 0 {
		percent := 100 * (report.Total - report.Before) / report.Before
		was := "the " + ui.Figure(report.Before/per, 1) + " in the " + ui.Duration(length) + " before"
		switch {
		case percent >= .5:
			before = ui.Figure(percent, 1) + " % more than " + was
		case percent <= -.5:
			before = ui.Figure(-percent, 1) + " % less than " + was
		default:
			before = "as much as " + was
		}
	}
	return adminview.Figure(adminview.FigureModel{Fact: "usage total", Value: ui.Figure(report.Total/per, 1), Unit: unit, Notes: []string{
		see.Moment(report.Start) + " – " + see.Moment(report.End), smallFigure(report.Total/length.Hours()) + " nodes on average", before,
	}})
}

// usageChart draws the parts by interval. What was not used at all is a gap.
func usageChart(u usageQuery, report processes.Report) ui.ChartModel {
	per, unit := unitOf(u.unit)
	m := ui.ChartModel{ID: "usage-chart", Title: "Use of nodes", Unit: unit, PlaceWord: page.GroupWord(u.group), Decimals: 1}
	for i := range report.Hours {
		m.Places = append(m.Places, page.PlaceOf(report.Marks[i], u.group))
	}
	values := func(hours []float64) []float64 {
		values := make([]float64, len(hours))
		for i, h := range hours {
			if values[i] = h / per; h <= 0 {
				values[i] = math.NaN()
			}
		}
		return values
	}
	rest := slices.Clone(report.Hours)
	for _, part := range report.Splits {
		if part.Hours == nil {
			continue
		}
		m.Series = append(m.Series, ui.ChartSeries{Name: splitName(part.Name), Values: values(part.Hours)})
		for i, h := range part.Hours {
			rest[i] -= h
		}
	}
	switch {
	case len(m.Series) == 0:
		m.Series = []ui.ChartSeries{{Name: unit, Values: values(rest)}}
	case report.Parts > len(m.Series):
		m.Series = append(m.Series, ui.ChartSeries{Name: "others", Values: values(rest)})
	}
	return m
}

func splitName(name string) string {
	if name == "" {
		return "(unknown)"
	}
	return name
}

// usageGrid lists the parts that were used, the greatest first; ids are those of clusters. A user
// leads to his templates, a template and a tenant to their users.
func usageGrid(room usageRoom, u usageQuery, report processes.Report, ids []string) templ.Component {
	per, unit := unitOf(u.unit)
	word := splitWords[u.split]
	m := adminview.TableModel{ID: "parts", Caption: "By " + strings.ToLower(word),
		Columns: []ui.Column{{Label: word}, {Label: page.Capital(unit), Numeric: true}, {Label: "Share", Numeric: true}}}
	for i, part := range report.Splits {
		if part.Total <= 0 {
			continue
		}
		of, sub := part.Name, ""
		if ids != nil {
			of, sub = ids[i], ids[i]
		}
		m.Rows = append(m.Rows, []adminview.Cell{{Text: splitName(part.Name), Sub: sub, Mono: true, Href: usageDrill(room, u, of)}, {Text: smallFigure(part.Total / per)}, {Text: smallFigure(100*part.Total/report.Total) + " %"}})
	}
	if report.Parts > len(report.Splits) {
		m.Pages.Text = "The first " + strconv.Itoa(len(report.Splits)) + " of " + strconv.Itoa(report.Parts)
	}
	return adminview.Table(m)
}

// smallFigure writes a figure with one decimal; what is used does not look unused.
func smallFigure(v float64) string {
	if v > 0 && v < .05 {
		return "< 0.1"
	}
	return ui.Figure(v, 1)
}

// usageDrill leads from a part to what it is made of.
func usageDrill(room usageRoom, u usageQuery, name string) string {
	switch {
	case u.split == "cluster" && !room.all:
		return "/clusters/" + name
	case u.split == "clustertemplate" && u.template == "" && !room.own:
		return u.with(room.base, "template", name, "split", "user")
	case u.split == "clustertemplate" && u.template == "":
		return u.with(room.base, "template", name, "split", "cluster")
	case u.split == "user" && u.user == "":
		return u.with(room.base, "user", name, "split", "clustertemplate")
	case u.split == "tenant" && u.tenant == "":
		return u.with(room.base, "tenant", name, "split", "user")
	}
	return ""
}
