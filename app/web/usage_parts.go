package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/ui"
)

// usageParts are the totals, the picture and the list of parts.
func (s *Server) usageParts(r *http.Request, actor loom.Actor, room usageRoom, u usageQuery, report fleet.Report) ([]templ.Component, error) {
	if report.Total <= 0 {
		empty := ui.EmptyModel{Icon: "clock", Text: "No finished node time in this range."}
		if report.Before > 0 {
			empty.More, empty.MoreHref = "Show the last 30 days", u.with(room.base, "period", "30d", "group", "day")
		}
		return []templ.Component{officeview.Bare("c-card", ui.Empty(empty))}, nil
	}
	report, ids, err := s.usageNames(r, actor, room, u, report)
	if err != nil {
		return nil, err
	}
	chart := usageChart(u, report)
	parts := []templ.Component{usageFacts(ui.ViewerOf(r.Context()), u, report)}
	if room.admin {
		quota, err := s.Accounts.Quota(r.Context(), actor)
		if err != nil {
			return nil, err
		}
		if quota.MaxNodes < loom.Unlimited {
			per, unit := unitOf(u.unit)
			chart.Limit = &ui.ChartLimit{Name: "quota", Value: widest(report) * float64(quota.MaxNodes) / per}
			if u.user+u.template == "" && !chart.ShowsLimit() {
				parts = append(parts, officeview.Text("The quota of "+ui.Count(quota.MaxNodes, "node", "nodes")+" allows "+ui.Figure(chart.Limit.Value, 0)+" "+unit+" "+perGroup[u.group]+", far above the picture."))
			}
		}
		if u.user+u.template != "" {
			chart.Limit = nil // the quota is not that of a user
		}
	}
	return append(parts, officeview.Bare("c-card", ui.Chart(chart)), usageGrid(room, u, report, ids)), nil
}

// usageNames gives the parts of a report by cluster the names of the clusters in place of
// their ids, and the ids in the order of the parts; nil for other reports and where
// clusters of other tenants are among them. Clusters of the same name keep the id with it.
func (s *Server) usageNames(r *http.Request, actor loom.Actor, room usageRoom, u usageQuery, report fleet.Report) (fleet.Report, []string, error) {
	if u.split != "cluster" || room.all {
		return report, nil, nil
	}
	texts := make([]string, len(report.Splits))
	for i, part := range report.Splits {
		texts[i] = part.Name
	}
	found, err := s.summaries(r.Context(), actor, readIDs(texts, loom.MaxPageLimit))
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
func widest(report fleet.Report) (hours float64) {
	for i := range report.Hours {
		hours = max(hours, report.Marks[i+1].Sub(report.Marks[i]).Hours())
	}
	return hours
}

// usageFacts are the totals and the comparison with the time before.
func usageFacts(see ui.Viewer, u usageQuery, report fleet.Report) templ.Component {
	per, unit := unitOf(u.unit)
	length := report.End.Sub(report.Start)
	change := "nothing was used then"
	if report.Before > 0 {
		percent := 100 * (report.Total - report.Before) / report.Before
		switch {
		case percent >= .5:
			change = ui.Figure(percent, 1) + " % more than"
		case percent <= -.5:
			change = ui.Figure(-percent, 1) + " % less than"
		default:
			change = "as much as"
		}
		change += " the " + ui.Figure(report.Before/per, 1) + " " + unit + " then"
	}
	return officeview.Card("usage-total", ui.Figure(report.Total/per, 1)+" "+unit, ui.Definitions([]ui.Def{
		{Term: "From", Text: see.Full(report.Start)}, {Term: "To", Text: see.Full(report.End)},
		{Term: "Nodes on average", Text: ui.Figure(report.Total/length.Hours(), 1)},
		{Term: "Against the " + ui.Duration(length) + " before", Text: change},
	}))
}

func usageChart(u usageQuery, report fleet.Report) ui.ChartModel {
	per, unit := unitOf(u.unit)
	m := ui.ChartModel{ID: "usage-chart", Title: "Use of nodes", Unit: unit, PlaceWord: groupWord(u.group), Decimals: 1, TableOpen: true}
	for i := range report.Hours {
		m.Places = append(m.Places, placeOf(report.Marks[i], u.group))
	}
	rest := make([]float64, len(report.Hours))
	for i, h := range report.Hours {
		rest[i] = h / per
	}
	others := 0.0
	for _, part := range report.Splits {
		if part.Hours == nil {
			others += part.Total
			continue
		}
		series := ui.ChartSeries{Name: splitName(part.Name), Note: ui.Figure(part.Total/per, 1)}
		for i, h := range part.Hours {
			series.Values = append(series.Values, h/per)
			rest[i] = max(rest[i]-h/per, 0)
		}
		m.Series = append(m.Series, series)
	}
	switch {
	case len(m.Series) == 0:
		m.Series = []ui.ChartSeries{{Name: unit, Values: rest}}
	case report.Parts > len(m.Series):
		m.Series = append(m.Series, ui.ChartSeries{Name: "others", Note: ui.Figure(others/per, 1), Values: rest})
	}
	return m
}

func groupWord(group string) string {
	for i := 0; i+1 < len(usageGroups); i += 2 {
		if usageGroups[i] == group {
			return usageGroups[i+1]
		}
	}
	return group
}

// placeOf names an interval, in the zone of its beginning.
func placeOf(at time.Time, group string) ui.ChartPlace {
	switch group {
	case "hour":
		return ui.ChartPlace{Short: at.Format("15:04"), Long: at.Format("Mon 2 Jan 2006, 15:04 MST")}
	case "week":
		return ui.ChartPlace{Short: at.Format("2 Jan"), Long: "Week from " + at.Format("Mon 2 Jan 2006")}
	case "month":
		return ui.ChartPlace{Short: at.Format("Jan 06"), Long: at.Format("January 2006")}
	}
	return ui.ChartPlace{Short: at.Format("2 Jan"), Long: at.Format("Mon 2 Jan 2006")}
}

func splitName(name string) string {
	if name == "" {
		return "(unknown)"
	}
	return name
}

// usageGrid lists the parts, the greatest first; ids are those of clusters. A user leads
// to his templates, a template and a tenant to their users.
func usageGrid(room usageRoom, u usageQuery, report fleet.Report, ids []string) templ.Component {
	per, unit := unitOf(u.unit)
	word := splitWords[u.split]
	m := officeview.GridModel{ID: "parts", Caption: "By " + strings.ToLower(word), ShowCaption: true,
		Columns: []ui.Column{{Label: word}, {Label: capital(unit), Numeric: true}, {Label: "Share", Numeric: true}, {Label: "Over time", Low: true}}}
	for i, part := range report.Splits {
		of, sub := part.Name, ""
		if ids != nil {
			of, sub = ids[i], ids[i]
		}
		row := []officeview.Cell{{Text: splitName(part.Name), Sub: sub, Mono: true, Href: usageDrill(room, u, of)}, {Text: ui.Figure(part.Total/per, 1)}, {Text: ui.Figure(100*part.Total/report.Total, 1) + " %"}, {}}
		if part.Hours != nil {
			row[3].Part = ui.Spark(ui.SparkModel{Label: part.Name, Values: scaled(part.Hours, per), Unit: unit})
		}
		m.Rows = append(m.Rows, row)
	}
	if report.Parts > len(report.Splits) {
		m.Pages.Text = "The first " + strconv.Itoa(len(report.Splits)) + " of " + strconv.Itoa(report.Parts)
	}
	return officeview.Grid(m)
}

func scaled(hours []float64, per float64) []float64 {
	values := make([]float64, len(hours))
	for i, h := range hours {
		values[i] = h / per
	}
	return values
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
