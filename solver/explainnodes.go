package solver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
)

// clashesNodes is clashes for a problem with machines that exist.
func (c *conflict) clashesNodes(p Problem) bool {
	var ok bool
	var steps int
	var err error
	switch {
	case c.test != nil:
		ok, steps, err = c.test(p)
	case c.grows:
		var g *growth
		if g, err = newGrowth(c.ctx, p); err == nil {
			g.rest.limit = questionSteps
			low, high := g.span()
			ok = low <= high && (!c.machines || int64(p.Machines) >= low && int64(p.Machines) <= high)
			steps, err = g.rest.steps, g.rest.err
		}
	default:
		var st *clusterModel
		if st, err = newClusterModel(p, false); err == nil {
			s := &search{ctx: c.ctx, limit: questionSteps}
			ok = s.fill(st, st.placements(), st.low, st.high)
			steps, err = s.steps, s.err
		}
	}
	c.left -= steps + 20
	return c.decided(ok, err)
}

// explainNodes says why nothing valid comes of a problem with machines that exist.
func explainNodes(ctx context.Context, p Problem, nodes []Node) (*loom.Unsat, error) {
	have := len(nodes)
	c := conflict{ctx: ctx, p: p, left: explainSteps, grows: p.Machines > have}
	if c.grows {
		g, err := newGrowth(ctx, p)
		if err != nil {
			return nil, err
		}
		low, high := g.span()
		if g.err != nil {
			return nil, g.err
		}
		c.machines = low <= high
	}
	if ids := nodesWithoutServices(nodes); len(ids) > 0 && c.clashes(nil) {
		// The new services cannot reach all nodes that lost theirs.
		r := emptyNodes(ids)
		return &loom.Unsat{Code: CodeEmptyNode, Headline: r.Message, Reasons: []loom.Reason{r}}, c.err
	}
	if !c.grows && len(p.New) == 0 {
		return c.breaches(nodes)
	}
	keep := c.smallest(rules(p), nil)
	if c.err != nil {
		return nil, c.err
	}
	w := words{p: p, q: p.restrictTo(keep), keep: keep}
	u := &loom.Unsat{Code: CodeUnsat}
	for _, r := range keep {
		u.Reasons = append(u.Reasons, w.reason(r))
	}
	if !c.grows {
		u.Headline = p.cannotHold()
		return u, nil
	}
	u.Headline = "No layout for any number of nodes beside those that exist."
	if c.machines {
		g, err := newGrowth(ctx, w.q)
		if err != nil {
			return nil, err
		}
		low, high := g.span()
		text := fmt.Sprintf("%s can be given a service", atMost(high, "node"))
		if int64(p.Machines) < low {
			text = fmt.Sprintf("at least %d are needed", low)
		}
		u.Headline = fmt.Sprintf("No layout for %s: %s.", count(p.Machines, "node"), text)
		u.Reasons = append(u.Reasons, loom.Reason{Code: CodeUnsat, ID: "M", Message: fmt.Sprintf("%s asked for, but %s.", are(p.Machines, "node"), text)})
	}
	return u, nil
}

func nodesWithoutServices(nodes []Node) []string {
	var ids []string
	for _, n := range nodes {
		if len(n.Services) == 0 {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// breaches names every rule that the nodes break as they are: each is a clash by
// itself, so that any one of them is a minimal reason.
func (c *conflict) breaches(nodes []Node) (*loom.Unsat, error) {
	u := &loom.Unsat{Code: CodeUnsat}
	w := words{p: c.p}
	for _, r := range rules(c.p) {
		if c.clashes([]rule{r}) {
			reason := w.reason(r)
			if len(u.Reasons) < maxListed { // the others are counted
				reason.Message = strings.TrimSuffix(reason.Message, ".") + c.p.where(r, nodes) + "."
			}
			u.Reasons = append(u.Reasons, reason)
		}
	}
	switch len(u.Reasons) {
	case 0:
		// Rules that only clash together: must-coexist sets that chain.
		for _, r := range c.smallest(rules(c.p), nil) {
			u.Reasons = append(u.Reasons, w.reason(r))
		}
		u.Headline = "The nodes break the template's constraints."
	case 1:
		u.Headline = "The nodes break a constraint of the template."
	default:
		u.Headline = fmt.Sprintf("The nodes break %d constraints of the template.", len(u.Reasons))
	}
	u.Reasons = fewReasons(u.Reasons)
	return u, c.err
}

// where says which nodes break a rule, or on how many a service is.
func (p Problem) where(r rule, nodes []Node) string {
	if r.kind == minRule || r.kind == maxRule {
		n := 0
		for _, c := range p.Nodes {
			if slices.Contains(c.Services, p.Services[r.at].Name) {
				n += c.Count
			}
		}
		return fmt.Sprintf("; it is on %d", n)
	}
	q := p.restrictTo([]rule{r})
	var ids []string
	for _, n := range nodes {
		q.Nodes = []Column{{Count: 1, NodeLayout: n.NodeLayout}}
		if st, err := newClusterModel(q, true); err == nil && st.broken {
			ids = append(ids, n.ID)
		}
	}
	switch {
	case len(ids) == 0:
		return ""
	case len(ids) > 5:
		ids = append(ids[:4], fmt.Sprintf("%d more", len(ids)-4))
	}
	return "; broken on " + list(ids)
}

// cannotHold says which new services find no room, and where.
func (p Problem) cannotHold() string {
	comes := setOf(p.New)
	for _, name := range p.New {
		q := p
		q.New = []string{name}
		q.Services = slices.DeleteFunc(slices.Clone(p.Services), func(s Service) bool {
			return s.Name != name && comes[s.Name]
		})
		st, err := newClusterModel(q.withoutAbsent(), false)
		if err != nil || len(st.groups) == 0 {
			continue
		}
		var room int64
		var where []string
		for _, k := range st.kinds {
			if k.accept.has(0) {
				room += k.count
			} else if len(where) < 4 {
				where = append(where, fmt.Sprintf("%d × {%s}", k.count, strings.Join(k.Services, ", ")))
			}
		}
		switch {
		case room == 0:
			return fmt.Sprintf("No existing node may hold %s: %s.", name, strings.Join(where, ", "))
		case room < st.low[0]:
			return fmt.Sprintf("%s existing nodes may hold %s, which must be on %d.", capital(fmt.Sprintf("only %d", room)), name, st.low[0])
		}
	}
	return fmt.Sprintf("The existing nodes cannot take %s.", list(sortedSet(p.New)))
}

// withoutAbsent drops from the layout sets what is not on the cluster.
func (p Problem) withoutAbsent() Problem {
	here := map[string]bool{}
	for _, s := range p.Services {
		here[s.Name] = true
	}
	present := func(n string) bool { return here[n] }
	var must, cant []Set
	for _, set := range p.Must {
		set.Services = slices.DeleteFunc(slices.Clone(set.Services), func(n string) bool { return !present(n) })
		if len(set.Services) > 1 {
			must = append(must, set)
		}
	}
	for _, set := range p.Cant {
		if !slices.ContainsFunc(set.Services, func(n string) bool { return !present(n) }) {
			cant = append(cant, set)
		}
	}
	p.Must, p.Cant = must, cant
	return p
}
