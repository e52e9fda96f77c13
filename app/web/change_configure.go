package web

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/ui"
)

// fixedFacts are what another config leaves as it is.
func fixedFacts(v lifecycle.ClusterView) []ui.Def {
	return []ui.Def{
		{Term: "Template", Text: v.Template.Name + " " + strconv.Itoa(v.Template.Version)},
		{Term: "Provider", Text: v.Provider.Name},
		{Term: "Nodes", Text: strconv.Itoa(len(placedNodes(v)))},
		{Term: "Services", Text: strings.Join(slices.Sorted(maps.Keys(v.Services)), ", ")},
	}
}

// restartable names the services that are configured and run, which may need a restart to
// read their settings.
func restartable(v lifecycle.ClusterView) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v.Services)) {
		actions := v.Services[name].Provisioner.Actions
		_, configures := actions[loom.ActionConfigure]
		_, starts := actions[loom.ActionStart]
		if configures && starts {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return " No service of the cluster is both configured and started."
	}
	return " It concerns " + strings.Join(names, ", ") + "."
}
