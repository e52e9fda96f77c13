package clusters

import (
	"fmt"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// checkPanel words the answer of a check.
func checkPanel(actor loom.Actor, st *settled, r clusters.CheckResult) clusterview.CheckPanel {
	var m clusterview.CheckPanel
	switch {
	case r.Unsat != nil:
		m = cannot(actor, st, r.Unsat)
		if r.Exceeded != "" {
			m.Reasons = append(m.Reasons, ui.Reason{Text: r.Exceeded, Origin: "quota"})
		}
	case len(r.Fields) > 0:
		m.Head = ui.CheckModel{State: ui.CheckIncomplete, Headline: "Something is missing or wrong"}
	case r.Exceeded != "":
		m = cannot(actor, st, &loom.Unsat{Headline: "The quota does not allow it", Suggestions: r.Within})
		m.Reasons = []ui.Reason{{Text: r.Exceeded, Origin: "quota"}}
	case r.Unsure:
		m.Head = ui.CheckModel{State: ui.CheckUnsure, Headline: "The search took too long", Note: "The preview searches longer, up to 30 s."}
	default:
		m.Head = ui.CheckModel{State: ui.CheckFits, Headline: page.FitsHeadline(r.Layout)}
	}
	m.Errors = ui.NewFormErrors("", configFields(r.Fields, st.fieldKeys())).Items
	m.Layout = ui.NewLayoutPicture("check-layout", r.Layout)
	m.Layout.Narrow, m.Layout.Folded = true, true
	if len(r.Layout) > 0 {
		m.Facts = checkFacts(r)
	}
	m.Warnings = r.Warnings
	if len(r.Missing) > 0 {
		m.Warnings = append(m.Warnings, "The provider needs "+missingLabels(r.Missing)+" before the cluster is made.")
	}
	return m
}

func checkFacts(r clusters.CheckResult) []ui.Def {
	var facts []ui.Def
	if r.Quota.MaxNodes < loom.Unlimited {
		facts = append(facts, ui.Def{Term: "Nodes used", Text: page.UsedOf(r.Quota.Nodes, r.Quota.MaxNodes)})
	}
	if r.Quota.MaxClusters < loom.Unlimited {
		facts = append(facts, ui.Def{Term: "Clusters used", Text: page.UsedOf(r.Quota.Clusters, r.Quota.MaxClusters)})
	}
	if r.Tasks > 0 {
		facts = append(facts, ui.Def{Term: "How it runs", Text: ui.Count(r.Tasks, "task", "tasks") + " in " + ui.Count(r.Stages, "stage", "stages")})
	}
	if r.Price != nil {
		facts = append(facts, ui.Def{Term: "Price", Text: priceText(*r.Price)})
	}
	return facts
}

func priceText(perHour float64) string { return fmt.Sprintf("%.4g per hour", perHour) }

// cannot words a clash with what would help.
func cannot(actor loom.Actor, st *settled, u *loom.Unsat) clusterview.CheckPanel {
	m := clusterview.CheckPanel{Head: ui.CheckModel{State: ui.CheckCannot, Headline: strings.TrimSuffix(u.Headline, ".")}}
	if u.Sizes != nil {
		m.Head.Note = "What is chosen works with " + page.NodesRange(u.Sizes.Min, u.Sizes.Max) + "."
	}
	for _, r := range u.Reasons {
		m.Reasons = append(m.Reasons, clashReason(actor, st, r))
	}
	for _, su := range u.Suggestions {
		if len(su.Template)+len(su.Catalog) > 0 { // nothing that this form could set
			m.Elsewhere = append(m.Elsewhere, su.Label)
			continue
		}
		name, value := page.SuggestionValue(su)
		suggestion := ui.Suggestion{Label: su.Label, Name: name, Value: value}
		if name == "form" {
			suggestion.Attrs = formAgain()
			suggestion.Attrs["hx-trigger"] = "click"
		}
		m.Suggestions = append(m.Suggestions, suggestion)
	}
	return m
}

// clashReason links a rule to the entry it comes from, for those who may open it.
func clashReason(actor loom.Actor, st *settled, r loom.Reason) ui.Reason {
	out := ui.Reason{Text: r.Message}
	if actor.May(loom.Publish.Reading(), actor.InTenant()) != nil || r.ID == "M" {
		return out
	}
	kind, name := loom.KindTemplate, st.form.of("clusterTemplate")
	for _, rule := range []string{"requires(", "conflicts("} {
		if inside, ok := strings.CutPrefix(r.ID, rule); ok {
			service, _, _ := strings.Cut(strings.TrimSuffix(inside, ")"), ",")
			kind, name = loom.KindService, service
		}
	}
	out.Origin, out.OriginHref = kind.Word()+" "+name, route.AdminEntry(kind, name)
	return out
}

func missingLabels(sets []map[string]loom.FieldSchema) string {
	var parts []string
	for _, set := range sets {
		var names []string
		for _, f := range providerFields(set, nil, nil, ui.FormErrors{}) {
			names = append(names, "“"+f.Label+"”")
		}
		parts = append(parts, strings.Join(names, " and "))
	}
	return strings.Join(parts, ", or ")
}
