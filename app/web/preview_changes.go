package web

import (
	"slices"
	"strconv"

	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// changeGroups puts changes of the same sort of thing together, in the order in which
// they come first.
func changeGroups(lines []ui.ChangeModel) []clusterview.ChangeGroup {
	var groups []clusterview.ChangeGroup
	at := map[string]int{}
	for _, line := range lines {
		i, there := at[line.Object]
		if !there {
			i = len(groups)
			at[line.Object] = i
			groups = append(groups, clusterview.ChangeGroup{})
		}
		groups[i].Lines = append(groups[i].Lines, line)
	}
	for i, g := range groups {
		what := g.Lines[0].Object
		if len(g.Lines) > 1 {
			what = plural(what)
		}
		groups[i].Title = capital(what) + " (" + strconv.Itoa(len(g.Lines)) + ")"
	}
	return groups
}

// changeSigns are the words of changes in the order of their links.
var changeSigns = []ui.ChangeSign{ui.SignCreate, ui.SignChange, ui.SignRestart, ui.SignReplace, ui.SignRemove, ui.SignKeep}

// onlyChanges leaves out the changes of other signs than only, and offers a link for
// each sign that occurs. What stays is folded unless it was asked for.
func onlyChanges(m *clusterview.PreviewModel, only, page string) {
	counts, all := map[ui.ChangeSign]int{}, 0
	var chosen []ui.ChangeModel
	for _, g := range m.Changes {
		for _, line := range g.Lines {
			counts[line.Sign]++
			all++
			if string(line.Sign) == only {
				chosen = append(chosen, line)
			}
		}
	}
	if m.Kept.Count > 0 {
		counts[ui.SignKeep] = m.Kept.Count
		all += m.Kept.Count
	}
	if len(counts) < 2 {
		return
	}
	none := !slices.Contains(changeSigns, ui.ChangeSign(only)) || counts[ui.ChangeSign(only)] == 0
	m.Only = clusterview.Choices{Label: "Show", Options: []ui.Tab{{Label: "all " + strconv.Itoa(all), Href: page + "#changes", Current: none}}}
	for _, sign := range changeSigns {
		if n := counts[sign]; n > 0 {
			m.Only.Options = append(m.Only.Options, ui.Tab{Label: string(sign) + " " + strconv.Itoa(n), Href: route.Query(page, "only", string(sign)) + "#changes", Current: !none && string(sign) == only})
		}
	}
	if none {
		return
	}
	m.Changes, m.More = changeGroups(chosen), 0
	if m.Kept.Open = only == string(ui.SignKeep); !m.Kept.Open {
		m.Kept = clusterview.KeptChanges{}
	}
}
