package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// addition is what an add_services brings to a cluster: part of the body of its
// preview. The bodies of the services are among those of the draft, whose nodes
// have them already.
type addition struct {
	// Asked are the services of the request, New those of them that the cluster
	// did not have; both sorted.
	Asked []string `json:"asked"`
	New   []string `json:"new"`
	// Nodes get at least one of them, in the order of their numbers.
	Nodes []loom.NodeID `json:"nodes"`
	// Because says of each new service why it comes on these nodes and no others.
	Because map[string]string `json:"because"`
	// Versions are the services that must still be the newest ones.
	Versions []store.EntryVersion `json:"versions"`
}

// draftAdd works out where services go and what comes of that for the nodes, the
// copies of services and the config.
func (u *Clusters) draftAdd(ctx context.Context, d *liveDraft, cluster loom.Cluster, asked []string) error {
	names, err := newServices(cluster, asked)
	if err != nil {
		return err
	}
	catalog, err := store.Services(ctx, u.db, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	if err := loom.InvalidFields(checkNamed(names, has(catalog))); err != nil {
		return err
	}
	nodes, err := u.place(ctx, cluster, d.Nodes, catalog, names)
	if err != nil {
		return err
	}
	d.Added = &addition{Asked: slices.Compact(slices.Sorted(slices.Values(asked))), New: names, Because: map[string]string{}}
	d.Services = maps.Clone(cluster.Services)
	if d.Services == nil {
		d.Services = map[string]loom.Service{}
	}
	for _, name := range names {
		s := catalog[name]
		d.Services[name] = s
		d.Added.Versions = append(d.Added.Versions, store.EntryVersion{Kind: loom.KindService, Name: s.Name, Version: s.Version})
	}
	d.put(nodes, cluster.Template)
	d.warnOfUses(names)
	return d.underlay(cluster, names)
}

// newServices gives the services of a request that a cluster does not have.
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

// place asks the solver which nodes the services go to and gives the nodes as
// they are then. Unsolvable, Unavailable.
func (u *Clusters) place(ctx context.Context, cluster loom.Cluster, nodes []loom.Node, catalog map[string]loom.Service, names []string) ([]solver.Node, error) {
	known := maps.Clone(catalog)
	maps.Copy(known, cluster.Services) // what is there counts as it is there
	c := solver.Cluster{Input: present(cluster, cluster.Template, nodes, nil, known)}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, solver.Node{ID: string(n.ID), NodeLayout: loom.NodeLayout{
			HardwareType: n.HardwareType, ImageType: n.ImageType, Services: slices.Sorted(slices.Values(n.Services)),
		}})
	}
	solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	out, unsat, err := solver.Add(solving, c, names)
	if err != nil {
		return nil, err
	}
	if unsat != nil {
		unsat.Suggestions = solver.SuggestChange(solving, c, names, nil, unsat)
		return nil, &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
	}
	return out.Nodes, nil
}

// put gives the draft's nodes the services that the solver placed, and says why
// they are where they are.
func (d *liveDraft) put(placed []solver.Node, t loom.Template) {
	on := map[string]int{}
	for i := range d.Nodes {
		n := &d.Nodes[i]
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
		n.Automators = automatorsOf(services, d.Services)
		d.Added.Nodes = append(d.Added.Nodes, n.ID)
	}
	for _, name := range d.Added.New {
		most := loom.Unlimited
		if q := t.Constraints.Services[name].Quantities; q != nil && q.Max != nil {
			most = *q.Max
		}
		switch {
		case on[name] == len(d.Nodes):
			d.Added.Because[name] = "The template allows it on every node."
		case on[name] == most:
			d.Added.Because[name] = fmt.Sprintf("The template has it on at most %s.", count(most, "node"))
		default:
			d.Added.Because[name] = "The template’s rules keep it off the other nodes."
		}
	}
}

// warnOfUses says what new services could use and does not come.
func (d *liveDraft) warnOfUses(names []string) {
	for _, name := range names {
		deps := d.Services[name].Dependencies
		for _, used := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(deps.Install.Uses, deps.Runtime.Uses)))) {
			if !slices.ContainsFunc(sortedNames(d.Services), func(other string) bool {
				return other == used || slices.Contains(d.Services[other].Dependencies.Provides, used)
			}) {
				d.Warnings = append(d.Warnings, fmt.Sprintf("“%s” can use “%s”, which is not on the cluster.", name, used))
			}
		}
	}
}

// underlay puts the default configs of new services, or new versions of them, below the cluster's config,
// of which nothing changes (lifecycle.md 7), and checks what comes of it, as all
// of it is expanded for the new services. Invalid.
func (d *liveDraft) underlay(cluster loom.Cluster, names []string) error {
	defaults := map[string]any{}
	for _, name := range names {
		if c := d.Services[name].DefaultConfig; c != nil {
			defaults = loom.MergePatch(defaults, c)
		}
	}
	config, _ := below(cluster.Config, defaults).(map[string]any) // of two objects comes one
	if errs := checkStorable("config", config); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if !sameJSON(cluster.Config, config) {
		if errs := loom.CheckConfigSize("config", config); len(errs) > 0 {
			return loom.InvalidFields(errs)
		}
		d.Before, d.After = cluster.Config, config
	}
	return d.checkMacros(cluster.Owner.User, "config", config)
}

// below lays a document under another, which wins wherever it says anything: a
// null in it stays one. Neither is changed.
func below(top, under any) any {
	a, isObject := top.(map[string]any)
	b, too := under.(map[string]any)
	if !isObject || !too {
		return top
	}
	out := maps.Clone(b)
	for key, value := range a {
		out[key] = value
		if lower, both := b[key]; both {
			out[key] = below(value, lower)
		}
	}
	return out
}

// changedNodes are the nodes that new services come to.
func (d *liveDraft) changedNodes() []loom.Node {
	changed := make(map[loom.NodeID]bool, len(d.Added.Nodes))
	for _, id := range d.Added.Nodes {
		changed[id] = true
	}
	return slices.DeleteFunc(slices.Clone(d.Nodes), func(n loom.Node) bool { return !changed[n.ID] })
}

// adds reports whether a service is one of those that come.
func (d *liveDraft) adds(name string) bool {
	return d.Added != nil && slices.Contains(d.Added.New, name)
}

// onAdding says what an add_services does to a service on a node: to a new one, to
// one that a new one needs, or to one that follows a new one.
func (d *liveDraft) onAdding(c *Change, actions map[loom.TaskAction]bool) {
	if because, isNew := d.Added.Because[c.Name]; isNew {
		*c = Change{Change: "create", Object: "service", Name: c.Name, Node: c.Node, Because: because}
		return
	}
	for _, name := range d.Added.New {
		switch {
		case actions[loom.ActionConfigure] && follows(d.Services, c.Name, name):
			c.Because = fmt.Sprintf("It follows “%s”.", name)
			return
		case actions[loom.ActionStart] && dependsOn(d.Services, name, c.Name):
			c.Because = fmt.Sprintf("“%s” needs it to run.", name)
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
