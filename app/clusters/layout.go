package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/solver"
)

// layoutDraft is a draft of a change of the layout or of versions: it checks what all of
// these have in common, before and after.
func layoutDraft(draft func(ctx context.Context, u *Clusters, r request, c *change) error) func(ctx context.Context, u *Clusters, r request, c *change) error {
	return func(ctx context.Context, u *Clusters, r request, c *change) error {
		if errs := checkLayoutRequest(r.in.Change); len(errs) > 0 {
			return loom.InvalidFields(errs)
		}
		if err := checkDead(r.in.Change); err != nil {
			return err
		}
		err := draft(ctx, u, r, c)
		if err != nil || c.Kind == loom.ChangeUpgrade || c.Kind == loom.ChangeUpdate { // which have looked at their own config
			return err
		}
		return c.checkConfig(r.cluster.Owner.User, &r.cluster.Template, "config", r.cluster.Config)
	}
}

// checkDead returns Invalid for nodes that are called dead and are not named.
func checkDead(in ChangeInput) error {
	for _, id := range in.Dead {
		if !slices.Contains(in.Nodes, id) {
			return invalid("dead", "Node “%.40s” is not among the nodes that the request names; name it there as well.", id)
		}
	}
	return nil
}

// checkLayoutRequest finds what is wrong with a request whatever the cluster is.
func checkLayoutRequest(in ChangeInput) []loom.FieldError {
	var errs []loom.FieldError
	for i, name := range in.Services {
		errs = append(errs, checkStorable(fmt.Sprintf("services[%d]", i), name)...)
	}
	errs = append(errs, checkStorable("hardwaretype", in.HardwareType)...)
	if in.Batch < 0 {
		errs = append(errs, loom.FieldError{Field: "batch", Message: "A batch has at least 1 node."})
	}
	if in.MinHealthy != nil && *in.MinHealthy < 0 {
		errs = append(errs, loom.FieldError{Field: "minHealthy", Message: "The number of nodes that must be up is 0 or more."})
	}
	return errs
}

// applyTypeSettings gives a node whose machine is to be made what its types say of the provider
// now. A type that is gone, or says nothing of it any more, leaves what the node had.
func (c *change) applyTypeSettings(cv *catalogView, n *loom.Node) {
	hardware, image := cv.hardwareType(n.HardwareType), cv.imageType(n.ImageType)
	if size := hardware.ProviderMap[c.Provider.Name]; size["flavor"] != "" {
		n.Flavor, c.Types.Hardware[hardware.Name] = size["flavor"], size
		c.version(loom.KindHardwareType, &hardware.Base)
	}
	if root := image.ProviderMap[c.Provider.Name]; root["image"] != "" {
		n.Image, n.SSHUser, c.Types.Image[image.Name] = root["image"], loom.DefaultSSHUser, root
		if user := root["sshuser"]; user != "" {
			n.SSHUser = user
		}
		c.version(loom.KindImageType, &image.Base)
	}
}

// solverCluster asks the solver about a cluster that is there. Nodes go by their numbers,
// which its sentences name.
func solverCluster(cluster loom.Cluster, nodes []loom.Node, services map[string]loom.Service) solver.Cluster {
	q := solver.Cluster{Input: solverInput(cluster, cluster.Template, nodes, nil, services)}
	for _, n := range nodes {
		q.Nodes = append(q.Nodes, solver.Node{ID: strconv.Itoa(n.Number), NodeLayout: loom.NodeLayout{
			HardwareType: n.HardwareType, ImageType: n.ImageType, Services: slices.Sorted(slices.Values(n.Services)),
		}})
	}
	return q
}

// nodesNumbered returns the nodes of some numbers, as the solver knows them.
func nodesNumbered(nodes []loom.Node, names []string) []loom.NodeID {
	var ids []loom.NodeID
	for _, n := range nodes {
		if slices.Contains(names, strconv.Itoa(n.Number)) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func unsolvable(unsat *loom.Unsat, nodes []loom.Node, ways []solver.Way) error {
	for _, w := range ways {
		s := w.Suggestion
		s.Nodes, s.Services = nodesNumbered(nodes, w.Nodes), w.Services
		unsat.Suggestions = append(unsat.Suggestions, s)
	}
	return &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
}

// checkNodes returns Invalid, about the field nodes, for ids that are not among the nodes.
func checkNodes(cluster loom.Cluster, nodes []loom.Node, ids []loom.NodeID) error {
	var errs []loom.FieldError
	for _, id := range ids {
		if !slices.ContainsFunc(nodes, func(n loom.Node) bool { return n.ID == id }) {
			errs = append(errs, loom.FieldError{Field: "nodes",
				Message: fmt.Sprintf("Cluster %s has no node “%.40s”; name nodes by the ids that the cluster lists.", cluster.ID, id)})
		}
		if len(errs) == 10 {
			break
		}
	}
	return loom.InvalidFields(errs)
}

// checkOnCluster returns NotFound, about the field services, for one that is not there.
func checkOnCluster(cluster loom.Cluster, names []string) error {
	for _, name := range names {
		if _, there := cluster.Services[name]; !there {
			return missing("services", "Cluster %s has no service “%.255s”.", cluster.ID, name)
		}
	}
	return nil
}

// checkRules returns Unsolvable, with the reasons, unless nodes with services as they
// are to be satisfy the rules.
func (u *Clusters) checkRules(ctx context.Context, cluster loom.Cluster, nodes []loom.Node, services map[string]loom.Service) error {
	solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	_, unsat, err := solver.Check(solving, solverCluster(cluster, nodes, services))
	if err == nil && unsat != nil {
		err = unsolvable(unsat, nodes, nil)
	}
	return err
}

// solverInput asks the solver's question about machines that are there: a template,
// the services that are or shall be on them, and their own types, whatever the
// catalog says of those today. The template's default types do not matter to
// machines that exist.
func solverInput(c loom.Cluster, t loom.Template, nodes []loom.Node, services []string, catalog map[string]loom.Service) solver.Input {
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

// nodesText words some nodes: "Node 1001 has", "Nodes 1001, 1002 have".
func nodesText(nodes []loom.Node, one, many string) string {
	if len(nodes) == 1 {
		return fmt.Sprintf("Node %d %s", nodes[0].Number, one)
	}
	var names []string
	for i, n := range nodes {
		if i == 5 {
			names = append(names, fmt.Sprintf("%d more", len(nodes)-i))
			break
		}
		names = append(names, fmt.Sprint(n.Number))
	}
	return "Nodes " + strings.Join(names, ", ") + " " + many
}

func itOrThem(nodes []loom.Node) string {
	if len(nodes) == 1 {
		return "it"
	}
	return "them"
}
