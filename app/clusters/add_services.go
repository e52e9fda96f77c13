package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
	"loom/solver"
)

// draftAdd works out where services go and what comes of that for the nodes, the
// copies of services and the config.
func draftAdd(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, asked := r.cluster, r.in.Services
	names, err := newServices(cluster, asked)
	if err != nil {
		return err
	}
	catalog, err := store.Services(ctx, u.q, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	if err := loom.InvalidFields(checkNamed(names, contains(catalog))); err != nil {
		return err
	}
	nodes, err := u.placeServices(ctx, cluster, c.After.Nodes, catalog, names)
	if err != nil {
		return err
	}
	c.Input.Services = slices.Compact(slices.Sorted(slices.Values(asked)))
	c.Services, c.Because = names, map[string]string{}
	c.After.Services = maps.Clone(cluster.Services)
	if c.After.Services == nil {
		c.After.Services = map[string]loom.Service{}
	}
	for _, name := range names {
		s := catalog[name]
		c.After.Services[name] = s
		c.Versions = append(c.Versions, store.EntryVersion{Kind: loom.KindService, Name: s.Name, Version: s.Version})
	}
	c.assignServices(nodes, cluster.Template)
	c.warnOfUses(names)
	config, err := c.mergeDefaults(cluster, names)
	if err != nil {
		return err
	}
	return c.checkConfig(cluster.Owner.User, &cluster.Template, "config", config)
}

// newServices returns the services of a request that a cluster does not have.
// Invalid, about the field services, when there are none.
func newServices(cluster loom.Cluster, asked []string) ([]string, error) {
	if errs := checkStorable("services", strings.Join(asked, " ")); len(errs) > 0 {
		return nil, loom.InvalidFields(errs)
	}
	names := slices.Compact(slices.Sorted(slices.Values(asked)))
	names = slices.DeleteFunc(names, func(name string) bool { _, there := cluster.Services[name]; return there })
	switch {
	case len(asked) == 0:
		return nil, invalid("services", "Name the services to add.")
	case len(names) == 0:
		return nil, invalid("services", "All of these services are on the cluster already.")
	}
	return names, nil
}

// placeServices asks the solver which nodes the services go to and returns the nodes as
// they are then. Unsolvable, Unavailable.
func (u *Clusters) placeServices(ctx context.Context, cluster loom.Cluster, nodes []loom.Node, catalog map[string]loom.Service, names []string) ([]solver.Node, error) {
	known := maps.Clone(catalog)
	maps.Copy(known, cluster.Services) // what is there counts as it is there
	q := solver.Cluster{Input: solverInput(cluster, cluster.Template, nodes, nil, known)}
	for _, n := range nodes {
		q.Nodes = append(q.Nodes, solver.Node{ID: string(n.ID), NodeLayout: loom.NodeLayout{
			HardwareType: n.HardwareType, ImageType: n.ImageType, Services: slices.Sorted(slices.Values(n.Services)),
		}})
	}
	solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	out, unsat, err := solver.Add(solving, q, names)
	if err != nil {
		return nil, err
	}
	if unsat != nil {
		unsat.Suggestions = solver.SuggestChange(solving, q, names, nil, unsat)
		return nil, &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
	}
	return out.Nodes, nil
}

// assignServices gives the draft's nodes the services that the solver placed, and says why
// they are where they are.
func (c *change) assignServices(placed []solver.Node, t loom.Template) {
	on := map[string]int{}
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		services := placed[i].Services
		if len(services) == len(n.Services) {
			continue // nothing leaves a node
		}
		for _, name := range services {
			if !slices.Contains(n.Services, name) {
				on[name]++
			}
		}
		n.Services = services
		n.Automators = automatorsOf(services, c.After.Services)
	}
	for _, name := range c.Services {
		most := loom.Unlimited
		if limits := t.Constraints.Services[name].Quantities; limits != nil && limits.Max != nil {
			most = *limits.Max
		}
		switch {
		case on[name] == len(c.After.Nodes):
			c.Because[name] = "The template allows it on every node."
		case on[name] == most:
			c.Because[name] = fmt.Sprintf("The template has it on at most %s.", count(most, "node"))
		default:
			c.Because[name] = "The template’s rules keep it off the other nodes."
		}
	}
}

// warnOfUses says what new services could use and does not come, each once.
func (c *change) warnOfUses(names []string) {
	users := map[string][]string{}
	for _, name := range names {
		deps := c.After.Services[name].Dependencies
		for _, used := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(deps.Install.Uses, deps.Runtime.Uses)))) {
			if !slices.ContainsFunc(sortedNames(c.After.Services), func(other string) bool {
				return other == used || slices.Contains(c.After.Services[other].Dependencies.Provides, used)
			}) {
				users[used] = append(users[used], name)
			}
		}
	}
	c.unchosen = map[string]string{}
	for _, used := range slices.Sorted(maps.Keys(users)) {
		who := "“" + users[used][0] + "”"
		if n := len(users[used]); n > 1 {
			who = count(n, "service")
		}
		c.warn("%s can use “%s”, which is not on the cluster.", who, used)
		c.unchosen[c.Warnings[len(c.Warnings)-1]] = used
	}
}

// mergeDefaults puts the default configs of new services, or new versions of them, below the cluster's config
// and returns the result. No value of the cluster's config changes. The result must be checked as a whole, because all of it is
// expanded for the new services. Invalid.
func (c *change) mergeDefaults(cluster loom.Cluster, names []string) (map[string]any, error) {
	defaults := map[string]any{}
	for _, name := range names {
		s := c.After.Services[name]
		defaults = loom.MergePatch(defaults, s.Defaults())
	}
	config, _ := mergeUnder(cluster.Config, defaults).(map[string]any) // of two objects comes one
	if errs := checkStorable("config", config); len(errs) > 0 {
		return nil, loom.InvalidFields(errs)
	}
	if !sameJSON(cluster.Config, config) {
		if errs := loom.CheckConfigSize("config", config); len(errs) > 0 {
			return nil, loom.InvalidFields(errs)
		}
		c.SetsConfig, c.Before.Config, c.After.Config = true, cluster.Config, config
	}
	return config, nil
}

// mergeUnder lays a document under another, which wins wherever it says anything: a
// null in it stays one. Neither is changed.
func mergeUnder(top, under any) any {
	a, isObject := top.(map[string]any)
	b, too := under.(map[string]any)
	if !isObject || !too {
		return top
	}
	out := maps.Clone(b)
	for key, value := range a {
		out[key] = value
		if lower, both := b[key]; both {
			out[key] = mergeUnder(value, lower)
		}
	}
	return out
}

// reasonOfAdding says what an add_services does to a service on a node: to a new one, to
// one that a new one needs, or to one that follows a new one.
func reasonOfAdding(c *change, line *ChangeLine, actions map[loom.TaskAction]bool) {
	if because, isNew := c.Because[line.Name]; isNew {
		*line = ChangeLine{Change: "create", Object: "service", Name: line.Name, Node: line.Node, Because: because}
		return
	}
	for _, name := range c.Services {
		switch {
		case actions[loom.ActionConfigure] && follows(c.After.Services, line.Name, name):
			line.Because = fmt.Sprintf("It is configured again after “%s”.", name)
			return
		case actions[loom.ActionStart] && dependsOn(c.After.Services, name, line.Name):
			line.Because = fmt.Sprintf("“%s” needs it to run.", name)
			return
		}
	}
}

// follows reports whether a service wants to hear of changes of another.
func follows(services map[string]loom.Service, name, other string) bool {
	return slices.ContainsFunc(services[name].Follows, func(wanted string) bool {
		return wanted == other || slices.Contains(services[other].Dependencies.Provides, wanted)
	})
}

// nodesGainingServices are the nodes that new services come to.
func (c *change) nodesGainingServices() []loom.Node {
	return c.filter(func(before, after *loom.Node) bool {
		return before != nil && after != nil && len(before.Services) != len(after.Services)
	})
}

// planAdd plans the steps of the new services, and of what follows or serves them.
func planAdd(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	scope := planner.Scope{Services: c.Services, Nodes: []loom.NodeID{}}
	for _, n := range c.nodesGainingServices() {
		scope.Nodes = append(scope.Nodes, n.ID)
	}
	return c.steps(scope)
}

func showAdd(v *PreviewView, c *change, list *changeList) error {
	v.Added, v.AddedTo = c.Services, len(c.nodesGainingServices())
	return showInPlace(v, c, list)
}

func summarizeAdd(v *PreviewView) string {
	return fmt.Sprintf("Adds %s to %s", count(len(v.Added), "service"), count(v.AddedTo, "node"))
}
