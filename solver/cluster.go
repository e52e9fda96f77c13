package solver

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"loom/app/loom"
)

// More codes of loom.Unsat and loom.Reason.
const (
	CodePresent    = "ALREADY_PRESENT"
	CodeNotPresent = "NOT_PRESENT"
	CodeEmptyNode  = "EMPTY_NODE"
	CodeUnknownID  = "NOT_FOUND"
)

// Node is a machine of a cluster. ID names it to the caller and means nothing
// here; it is "" for a machine that is to be made. Services are sorted.
type Node struct {
	ID string `json:"id"`
	loom.NodeLayout
}

// Cluster is a cluster that exists, with the template it must satisfy and the
// catalog of its services. Of Input, Services and Machines are not looked at, nor
// are the template's defaults for services and types: HardwareType and ImageType
// are for machines to be made, empty for any.
type Cluster struct {
	Input Input
	// Nodes by node number, the lowest first.
	Nodes []Node
}

// Outcome is a cluster after a change.
type Outcome struct {
	// Nodes are all of them, those that were there in their order, then new ones.
	Nodes []Node
	// Layout counts them, preferred layouts first.
	Layout loom.Layout
	// Leaving are the ids of those that go, Why says how they were chosen, one
	// sentence per layout. Only shrinking sets them.
	Leaving []string
	Why     []string
}

// Check answers whether the cluster is valid as it is: what a template sync asks
// with the new template. The Unsat names one broken rule after the other, each a
// reason of its own. Errors of this and the functions below are those of Solve.
func Check(ctx context.Context, c Cluster) (Outcome, *loom.Unsat, error) {
	return Alter(ctx, c, nil, nil)
}

// Add places services on the nodes that are there: all or none of
// them; nothing moves and no node is added.
func Add(ctx context.Context, c Cluster, services []string) (Outcome, *loom.Unsat, error) {
	return Alter(ctx, c, services, nil)
}

// Remove takes services off all nodes.
func Remove(ctx context.Context, c Cluster, services []string) (Outcome, *loom.Unsat, error) {
	return Alter(ctx, c, nil, services)
}

// Alter takes services off and puts others on in one step: only what comes of both
// must be valid. With neither it is Check. Suggestions are not made; SuggestChange
// makes them.
func Alter(ctx context.Context, c Cluster, add, remove []string) (Outcome, *loom.Unsat, error) {
	p, nodes, unsat := c.problem(add, remove, len(c.Nodes))
	if unsat != nil {
		return Outcome{}, unsat, nil
	}
	p, at := columns(p, nodes)
	st, err := newClusterModel(p, false)
	if err != nil {
		return Outcome{}, nil, err
	}
	s := &search{ctx: ctx}
	s.check()
	if ok := s.fill(st, st.placements(), st.low, st.high); s.err != nil {
		return Outcome{}, nil, s.err
	} else if !ok {
		unsat, err := explainNodes(ctx, p, nodes)
		return Outcome{}, unsat, err
	}
	for _, sp := range s.placeServices(p, st, at) {
		l := st.layout(sp)
		for _, i := range sp.nodes {
			nodes[i].NodeLayout = l
		}
	}
	if s.err != nil {
		return Outcome{}, nil, s.err
	}
	return c.outcome(nodes), nil, nil
}

// Expand adds machines up to the given total, with the preferred
// layouts among those that make the whole valid. Nodes that are there stay as they
// are. Unsat.Sizes are the totals that work.
func Expand(ctx context.Context, c Cluster, total int) (Outcome, *loom.Unsat, error) {
	p, nodes, unsat := c.problem(nil, nil, total)
	if unsat != nil && (unsat.Code != CodeSize || len(unsat.Reasons) > 1) {
		return Outcome{}, unsat, nil
	}
	if total <= len(c.Nodes) {
		return Outcome{}, nil, loom.NewError(loom.Invalid, "The cluster has %s already; expand it to more, or shrink it.", count(len(c.Nodes), "node"))
	}
	p, _ = columns(p, nodes)
	s, err := newGrowth(ctx, p)
	if err != nil {
		return Outcome{}, nil, err
	}
	low, high := s.span()
	if s.err != nil {
		return Outcome{}, nil, s.err
	}
	more := max(low, int64(len(nodes)+1)) // the present total is no expansion
	if unsat != nil {
		unsat.Headline = fmt.Sprintf("No layout for %s.", count(total, "node"))
		unsat.Sizes = sizesWithin(p, more, high)
		return Outcome{}, unsat, nil
	}
	if int64(total) < low || int64(total) > high {
		unsat, err := explainNodes(ctx, p, nodes)
		if unsat != nil {
			unsat.Sizes = sizesWithin(p, more, high)
		}
		return Outcome{}, unsat, err
	}
	for _, g := range s.rest.walk(int64(total - len(nodes))) {
		for range g.Count {
			nodes = append(nodes, Node{NodeLayout: g.NodeLayout})
		}
	}
	if s.rest.err != nil {
		return Outcome{}, nil, s.rest.err
	}
	return c.outcome(nodes), nil, nil
}

// Resize returns the nodes with any of the services, or all nodes where none is
// named, another hardware type and checks what comes of it.
func Resize(ctx context.Context, c Cluster, hardware string, services []string) (Outcome, *loom.Unsat, error) {
	c, unsat := c.resized(hardware, services)
	if unsat != nil {
		return Outcome{}, unsat, nil
	}
	return Check(ctx, c)
}

// resized is the cluster after a resize, not checked as a whole.
func (c Cluster) resized(hardware string, services []string) (Cluster, *loom.Unsat) {
	in := c.Input
	in.Template.Defaults, in.HardwareType, in.Provider = loom.Defaults{}, hardware, firstSet(in.Provider, in.Template.Defaults.Provider)
	if _, reasons := in.checkHardware(); len(reasons) > 0 {
		return c, &loom.Unsat{Code: reasons[0].Code, Headline: checkHeadline(reasons), Reasons: reasons}
	}
	c.Nodes = slices.Clone(c.Nodes)
	found := false
	for i, n := range c.Nodes {
		if len(services) == 0 || slices.ContainsFunc(services, func(s string) bool { return slices.Contains(n.Services, s) }) {
			c.Nodes[i].HardwareType, found = hardware, true
		}
	}
	if !found {
		return c, refusal(CodeNotPresent, "present("+services[0]+")", fmt.Sprintf("No node has %s.", loom.Or(sortedSet(services))))
	}
	return c, nil
}

func refusal(code, id, message string) *loom.Unsat {
	return &loom.Unsat{Code: code, Headline: message, Reasons: []loom.Reason{{Code: code, ID: id, Message: message}}}
}

func (c Cluster) outcome(nodes []Node) Outcome {
	p, _ := columns(Problem{Preferred: c.Input.Template.Preferences}, nodes)
	out := Outcome{Nodes: nodes}
	for _, col := range p.Nodes {
		col.Services = slices.Clone(col.Services)
		out.Layout = append(out.Layout, loom.LayoutGroup(col))
	}
	return out
}

// services lists what is on the cluster.
func (c Cluster) services() []string {
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		for _, s := range n.Services {
			seen[s] = true
		}
	}
	return sortedKeys(seen)
}

// problem checks sizes, dependencies and conflicts of
// the cluster without and with some services, and gives the problem and the nodes
// as they are before anything is added.
func (c Cluster) problem(add, remove []string, total int) (Problem, []Node, *loom.Unsat) {
	in := c.Input
	present := c.services()
	here := func(s string) bool { _, ok := slices.BinarySearch(present, s); return ok }
	leaves, comes := setOf(remove), setOf(add)
	gone := func(s string) bool { return leaves[s] }
	in.Provider = firstSet(in.Provider, in.Template.Defaults.Provider)
	in.Template.Defaults = loom.Defaults{}
	in.Machines = total
	in.Services = slices.DeleteFunc(sortedSet(slices.Concat(present, add)), func(s string) bool {
		return gone(s) && !comes[s]
	})
	reasons := in.checkSize()
	if total > len(c.Nodes) {
		_, hardware := in.checkHardware()
		_, images := in.checkImages()
		reasons = slices.Concat(reasons, hardware, images)
	}
	if len(in.Services) > 0 {
		reasons = append(reasons, in.checkServices()...)
	}
	for _, s := range sortedSet(add) {
		if here(s) {
			reasons = append(reasons, loom.Reason{Code: CodePresent, ID: "present(" + s + ")", Message: fmt.Sprintf("%s is on the cluster already.", s)})
		}
	}
	for _, s := range sortedSet(remove) {
		if !here(s) {
			reasons = append(reasons, loom.Reason{Code: CodeNotPresent, ID: "present(" + s + ")", Message: fmt.Sprintf("%s is not on the cluster.", s)})
		}
	}
	nodes := make([]Node, len(c.Nodes))
	var empty []string
	for i, n := range c.Nodes {
		nodes[i] = n
		if len(remove) > 0 || !sortedOnce(n.Services) {
			nodes[i].Services = slices.DeleteFunc(sortedSet(n.Services), gone)
		}
		if len(nodes[i].Services) == 0 {
			empty = append(empty, n.ID)
		}
	}
	if len(empty) > 0 && len(add) == 0 {
		reasons = append(reasons, emptyNodes(empty))
	}
	if len(reasons) > 0 {
		return c.sized(in, total), nodes, &loom.Unsat{Code: reasons[0].Code, Headline: checkHeadline(reasons), Reasons: fewReasons(reasons)}
	}
	p := c.sized(in, total)
	p.New = in.placing(add)
	return p, nodes, nil
}

// sized is the problem without its nodes.
func (c Cluster) sized(in Input, total int) Problem {
	hardware, _ := in.checkHardware()
	images, _ := in.checkImages()
	p := in.problem(hardware, images)
	p.OnlyHardware, p.OnlyImages = sortedSet(in.Template.Compatibility.HardwareTypes), sortedSet(in.Template.Compatibility.ImageTypes)
	p.Machines = total
	return p
}

func emptyNodes(ids []string) loom.Reason {
	text := "Node %s would be left without a service; shrink the cluster first."
	if len(ids) > 1 {
		text = "Nodes %s would be left without a service; shrink the cluster first."
	}
	if len(ids) > 5 {
		ids = append(slices.Clone(ids[:4]), fmt.Sprintf("%d more", len(ids)-4))
	}
	return loom.Reason{Code: CodeEmptyNode, ID: "empty", Message: fmt.Sprintf(text, list(ids))}
}

// placing is the order in which services are added: those that the template
// limits first, the fewest nodes first; then by name.
func (in Input) placing(add []string) []string {
	names := sortedSet(add)
	limit := func(name string) (listed bool, least, most int) {
		sc, ok := in.Template.Constraints.Services[name]
		least, most = 1, loom.Unlimited
		if q := sc.Quantities; q != nil {
			if q.Min != nil {
				least = *q.Min
			}
			if q.Max != nil {
				most = *q.Max
			}
		}
		return ok, least, most
	}
	sort.SliceStable(names, func(i, j int) bool {
		a, leastA, mostA := limit(names[i])
		b, leastB, mostB := limit(names[j])
		switch {
		case a != b:
			return a
		case !a:
			return false
		case mostA != mostB:
			return mostA < mostB
		}
		return leastA > leastB
	})
	return names
}

// sortedOnce reports that names are sorted and none is there twice.
func sortedOnce(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

// columns puts the nodes into the problem, counted by layout and in the order of
// preference; at lists the nodes of each column.
func columns(p Problem, nodes []Node) (with Problem, at [][]int) {
	of := map[string]int{}
	var key []byte
	var cols []Column
	for i, n := range nodes {
		key = append(append(append(key[:0], n.HardwareType...), 0), n.ImageType...)
		for _, s := range n.Services {
			key = append(append(key, 0), s...)
		}
		k, ok := of[string(key)]
		if !ok {
			k = len(at)
			of[string(key)] = k
			at = append(at, nil)
			cols = append(cols, Column{NodeLayout: n.NodeLayout})
		}
		cols[k].Count++
		at[k] = append(at[k], i)
	}
	sorted := make([]int, len(at))
	for i := range sorted {
		sorted[i] = i
	}
	order := byTypes(p.Preferred)
	slices.SortFunc(sorted, func(a, b int) int { return order(cols[a].NodeLayout, cols[b].NodeLayout) })
	lists := make([][]int, len(at))
	for i, k := range sorted {
		p.Nodes = append(p.Nodes, cols[k])
		lists[i] = at[k]
	}
	return p, lists
}
