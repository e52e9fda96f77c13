package web

import (
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// clusterFacts is what the top of each of its pages says of a cluster; labels where they
// do not stand below with the description.
func (s *Server) clusterFacts(v lifecycle.ClusterView, labelled bool) []ui.Def {
	template := v.Template.Name + " " + strconv.Itoa(v.Template.Version)
	change := ""
	if why, offered := v.Allowed[loom.VerbLease]; offered && why == "" {
		change = route.ClusterLease(v.ID)
	}
	lease := ui.Def{Term: "Lease", Value: clusterview.LeaseFact(v.Expires, s.now(), change)}
	if !v.Expires.IsZero() {
		lease.Term = "Lease ends"
	}
	facts := []ui.Def{
		{Term: "Id", Value: ui.CopyText(v.ID.String(), "id")},
		{Term: "Owner", Text: string(v.Owner.User)},
		{Term: "Created", Value: ui.Time(v.Created, s.now())},
		{Term: "Template", Text: template},
		{Term: "Provider", Text: v.Provider.Name},
	}
	if v.Status != loom.ClusterTerminated {
		facts = append(facts, lease)
	}
	if labelled && len(v.Labels) > 0 {
		var labels []string
		for key, value := range v.Labels {
			labels = append(labels, key+"="+value)
		}
		slices.Sort(labels)
		facts = append(facts, ui.Def{Term: "Labels", Text: strings.Join(labels, ", ")})
	}
	return facts
}
