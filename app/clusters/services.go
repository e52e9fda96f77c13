package clusters

import (
	"context"
	"slices"

	"loom/app/loom"
	"loom/solver"
)

// ServicesInput starts, stops or restarts services of a cluster.
type ServicesInput struct {
	// Kind is loom.PreviewStart, PreviewStop or PreviewRestart.
	Kind loom.PreviewKind
	// Service is the one asked for, "" for all. Others that it needs, or that need
	// it, are covered as well (planner.md 5).
	Service        string
	ProviderFields map[string]any
}

// RunServices starts, stops or restarts services of a cluster at once. Errors:
// NotFound, also for a service that is not on the cluster, Conflict, Invalid.
func (u *Clusters) RunServices(ctx context.Context, actor loom.Actor, id loom.ClusterID, in ServicesInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	switch in.Kind {
	case loom.PreviewStart, loom.PreviewStop, loom.PreviewRestart:
	default:
		return loom.OperationRef{}, loom.NewError(loom.Invalid, "Services can be started, stopped and restarted, not “%.40s”.", in.Kind)
	}
	ref, _, err := u.atOnce(ctx, actor, PreviewInput{Kind: in.Kind, Cluster: id, Service: in.Service, ProviderFields: in.ProviderFields}, nil)
	return ref, err
}

// present asks the solver's question about machines that are there: a template,
// the services that are or shall be on them, and their own types, whatever the
// catalog says of those today. The template's default types do not matter to
// machines that exist.
func present(c loom.Cluster, t loom.Template, nodes []loom.Node, services []string, catalog map[string]loom.Service) solver.Input {
	t.Defaults.HardwareType, t.Defaults.ImageType = "", ""
	in := solver.Input{Template: t, Provider: c.Provider.Name, Services: services, Machines: len(nodes), Catalog: catalog}
	hardware, images := map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		hardware[n.HardwareType], images[n.ImageType] = true, true
	}
	for _, name := range sortedNames(hardware) {
		in.HardwareTypes = append(in.HardwareTypes, loom.HardwareType{
			Base: loom.Base{Name: name}, ProviderMap: map[string]map[string]string{c.Provider.Name: {"flavor": name}},
		})
	}
	for _, name := range sortedNames(images) {
		in.ImageTypes = append(in.ImageTypes, loom.ImageType{
			Base: loom.Base{Name: name}, ProviderMap: map[string]map[string]string{c.Provider.Name: {"image": name}},
		})
	}
	return in
}

// layoutOf is the layout of machines that are there, in the order of their numbers.
func layoutOf(nodes []loom.Node) loom.Layout {
	var layout loom.Layout
	for _, n := range nodes {
		services := slices.Sorted(slices.Values(n.Services))
		at := slices.IndexFunc(layout, func(g loom.LayoutGroup) bool {
			return g.HardwareType == n.HardwareType && g.ImageType == n.ImageType && slices.Equal(g.Services, services)
		})
		if at < 0 {
			at = len(layout)
			layout = append(layout, loom.LayoutGroup{NodeLayout: loom.NodeLayout{HardwareType: n.HardwareType, ImageType: n.ImageType, Services: services}})
		}
		layout[at].Count++
	}
	return layout
}
