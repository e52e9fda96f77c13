package planner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// naive plans by the letter of the rules, with names and with an edge for every
// pair of tasks. It is the reference that gates are compared with.
type naive struct {
	nodes    []loom.Node
	services map[string]loom.Service
	steps    []loom.TaskAction
	planned  func(node loom.NodeID, service string) bool
	tasks    map[string]bool
	edges    map[string]bool
}

func taskName(node loom.NodeID, service string, action loom.TaskAction) string {
	return fmt.Sprintf("%s/%s/%s", node, service, action)
}

// direct returns the services that x depends on, provided names resolved.
func (p *naive) direct(x string, install bool) []string {
	d := p.services[x].Dependencies.Runtime
	if install {
		d = p.services[x].Dependencies.Install
	}
	set := map[string]bool{}
	for _, name := range append(slices.Clone(d.Requires), d.Uses...) {
		for y, s := range p.services {
			if y != x && (y == name || slices.Contains(s.Dependencies.Provides, name)) {
				set[y] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// surely reports whether y is done everywhere once x has waited for all its own
// dependencies: there is a way from x to y over services that wait for all.
func (p *naive) surely(x, y string, install bool) bool {
	if install && p.services[x].Dependencies.Install.Scope == "node" {
		return false
	}
	for _, d := range p.direct(x, install) {
		if d == y || p.surely(d, y, install) {
			return true
		}
	}
	return false
}

func (p *naive) withoutImplied(set []string, install bool) []string {
	return slices.DeleteFunc(slices.Clone(set), func(z string) bool {
		return slices.ContainsFunc(set, func(y string) bool { return y != z && p.surely(y, z, install) })
	})
}

func (p *naive) nearest(x string, install bool, has func(string) bool) []string {
	found := map[string]bool{}
	var walk func(string)
	walk = func(x string) {
		for _, y := range p.withoutImplied(p.direct(x, install), install) {
			if has(y) {
				found[y] = true
			} else {
				walk(y)
			}
		}
	}
	walk(x)
	return p.withoutImplied(slices.Sorted(maps.Keys(found)), install)
}

func (p *naive) on(service string) []loom.NodeID {
	var ids []loom.NodeID
	for _, n := range p.nodes {
		if slices.Contains(n.Services, service) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func (p *naive) hasTask(service string, action loom.TaskAction) bool {
	return slices.ContainsFunc(p.on(service), func(n loom.NodeID) bool { return p.tasks[taskName(n, service, action)] })
}

func (p *naive) join(from, to string) {
	if p.tasks[from] && p.tasks[to] {
		p.edges[from+" -> "+to] = true
	}
}

func (p *naive) plan(plannedNodes map[loom.NodeID]bool) {
	p.tasks, p.edges = map[string]bool{}, map[string]bool{}
	for _, n := range p.nodes {
		if !plannedNodes[n.ID] {
			continue
		}
		for _, service := range append([]string{""}, n.Services...) {
			if service != "" && !p.planned(n.ID, service) {
				continue
			}
			last := ""
			for _, action := range p.steps {
				name := taskName(n.ID, service, action)
				if action.OfNode() {
					name = taskName(n.ID, "", action)
				} else if s := p.services[service]; service == "" || !s.Defines(action) {
					continue
				}
				p.tasks[name] = true
				if last != "" {
					p.join(last, name)
				}
				last = name
			}
		}
	}
	p.confirmBeforeServices(plannedNodes)
	var starts []string
	for x := range p.services {
		if p.hasTask(x, loom.ActionStart) || p.hasTask(x, loom.ActionInitialize) {
			for _, y := range p.nearest(x, false, func(y string) bool { s := p.services[y]; return s.Defines(loom.ActionStart) }) {
				for _, n := range p.on(y) {
					starts = append(starts, taskName(n, y, loom.ActionStart))
				}
			}
		}
	}
	for _, name := range starts {
		p.tasks[name] = true
	}
	for x := range p.services {
		for _, r := range []struct {
			install       bool
			before, after loom.TaskAction
		}{
			{true, loom.ActionInstall, loom.ActionInstall},
			{false, loom.ActionStart, loom.ActionInitialize},
			{false, loom.ActionStart, loom.ActionStart},
			{false, loom.ActionStop, loom.ActionStop},
		} {
			if !p.hasTask(x, r.after) {
				continue
			}
			for _, y := range p.nearest(x, r.install, func(y string) bool { return p.hasTask(y, r.before) }) {
				for _, nx := range p.on(x) {
					for _, ny := range p.on(y) {
						same := slices.Contains(p.on(y), nx)
						if r.install && p.services[x].Dependencies.Install.Scope == "node" && same && nx != ny {
							continue
						}
						from, to := taskName(ny, y, r.before), taskName(nx, x, r.after)
						if r.before == loom.ActionStop {
							from, to = to, from
						}
						p.join(from, to)
					}
				}
			}
		}
	}
}

// confirmBeforeServices: the first tasks of services wait for the CONFIRM of all
// nodes, where there are several.
func (p *naive) confirmBeforeServices(plannedNodes map[loom.NodeID]bool) {
	count := 0
	for _, planned := range plannedNodes {
		if planned {
			count++
		}
	}
	if count < 2 {
		return
	}
	for _, first := range slices.Sorted(maps.Keys(p.tasks)) {
		node := strings.SplitN(first, "/", 2)[0]
		if strings.HasPrefix(first, node+"//") || !p.edges[taskName(loom.NodeID(node), "", loom.ActionBootstrap)+" -> "+first] {
			continue
		}
		for id, planned := range plannedNodes {
			if planned {
				p.join(taskName(id, "", loom.ActionConfirm), first)
			}
		}
	}
}

// contract writes a plan's tasks and the edges that its gates stand for.
func contract(plan loom.Plan) (tasks, edges map[string]bool) {
	tasks, edges = map[string]bool{}, map[string]bool{}
	name := func(v int) string {
		t := plan.Tasks[v-1]
		return taskName(t.Node, t.Service, t.Action)
	}
	for v := range plan.Tasks {
		tasks[name(v+1)] = true
	}
	n := len(plan.Tasks)
	for _, e := range plan.Edges {
		switch {
		case e.From <= n && e.To <= n:
			edges[name(e.From)+" -> "+name(e.To)] = true
		case e.From > n:
			for _, f := range plan.Edges {
				if f.To == e.From {
					edges[name(f.From)+" -> "+name(e.To)] = true
				}
			}
		}
	}
	return tasks, edges
}

func randomCase(r *rand.Rand) ([]loom.Node, map[string]loom.Service, loom.ClusterAction, Scope) {
	letters := strings.Split("abcdefgh", "")[:2+r.IntN(7)]
	some := func(list []string, chance float64) []string {
		var chosen []string
		for _, x := range list {
			if r.Float64() < chance {
				chosen = append(chosen, x)
			}
		}
		return chosen
	}
	defined := map[string]loom.Service{}
	for i, name := range letters {
		s := service(name, strings.Join(some([]string{"install", "configure", "initialize", "start", "stop"}, 0.7), " "))
		// Only earlier names are depended on and provided, so that there is no circle.
		s.Dependencies.Install = loom.PhaseDependency{Requires: some(letters[:i], 0.3), Uses: some(letters[:i], 0.1)}
		s.Dependencies.Runtime = loom.PhaseDependency{Requires: some(letters[:i], 0.3), Uses: some(letters[:i], 0.1)}
		if r.IntN(4) == 0 {
			s.Dependencies.Install.Scope = "node"
		}
		if r.IntN(4) == 0 && i > 0 {
			name := "v" + letters[i]
			s.Dependencies.Provides = []string{name}
			for _, later := range letters[i+1:] {
				if r.IntN(3) == 0 {
					defer func() {
						l := defined[later]
						l.Dependencies.Runtime.Uses = append(l.Dependencies.Runtime.Uses, name)
						defined[later] = l
					}()
				}
			}
		}
		defined[name] = s
	}
	var texts []string
	for range 1 + r.IntN(4) {
		texts = append(texts, strings.Join(some(letters, 0.6), " "))
	}
	list := nodes(texts...)
	actions := []loom.ClusterAction{loom.ClusterCreate, loom.ClusterDelete, loom.ClusterConfigure, loom.ClusterConfigureWithRestart,
		loom.StartServices, loom.StopServices, loom.RestartServices, loom.AddServices}
	var scope Scope
	present := map[string]bool{}
	for _, n := range list {
		for _, s := range n.Services {
			present[s] = true
		}
	}
	if r.IntN(3) > 0 {
		scope.Services = append([]string{}, some(slices.Sorted(maps.Keys(present)), 0.5)...)
	}
	if r.IntN(2) == 0 {
		scope.Nodes = []loom.NodeID{}
		for _, n := range list {
			if r.IntN(2) == 0 {
				scope.Nodes = append(scope.Nodes, n.ID)
			}
		}
	}
	return list, defined, actions[r.IntN(len(actions))], scope
}

func TestGatesGiveTheEdgesOfTheRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4000) {
		checkCase(t, seed)
	}
}

// FuzzMake compares plans of random clusters with the naive ones.
func FuzzMake(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) { checkCase(t, seed) })
}

// coverage names, in order, the services that a start, stop or restart of the
// named services covers: start also what they depend on at runtime, stop and
// restart also what depends on them. For other actions it is the names alone.
// Services are those of the cluster. Errors: NotFound for a name that is not
// among them, Invalid for services that depend on each other in a circle.
func coverage(action loom.ClusterAction, names []string, services map[string]loom.Service) ([]string, error) {
	c := newCatalog(services, nil)
	covered := make([]bool, len(c.names))
	for _, name := range names {
		s, ok := c.index[name]
		if !ok {
			return nil, loom.NewError(loom.NotFound, "There is no service “%s” on this cluster.", name)
		}
		covered[s] = true
	}
	if cycles := c.cycles(runtimePhase); len(cycles) > 0 {
		return nil, cycleError(runtimePhase, cycles)
	}
	c.relation(runtimePhase).cover(action, covered)
	var all []string
	for s, in := range covered {
		if in {
			all = append(all, c.names[s])
		}
	}
	return all, nil
}

// checkCase plans the random cluster of a seed and compares the plan, gates
// contracted, with the naive one.
func checkCase(t *testing.T, seed uint64) {
	t.Helper()
	list, defined, action, scope := randomCase(rand.New(rand.NewPCG(seed, 1)))
	plan, err := Make(action, list, defined, scope)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	checkShape(t, plan)
	present := map[string]loom.Service{}
	for _, n := range list {
		for _, s := range n.Services {
			present[s] = defined[s]
		}
	}
	covered := scope.Services
	if covered != nil {
		if covered, err = coverage(action, covered, present); err != nil {
			t.Fatal(err)
		}
	}
	plannedNodes := map[loom.NodeID]bool{}
	for _, n := range list {
		plannedNodes[n.ID] = scope.Nodes == nil || slices.Contains(scope.Nodes, n.ID)
	}
	p := &naive{nodes: list, services: present, steps: action.Steps(),
		planned: func(n loom.NodeID, s string) bool {
			return plannedNodes[n] && (scope.Services == nil || slices.Contains(covered, s))
		}}
	p.plan(plannedNodes)
	tasks, edges := contract(plan)
	if !maps.Equal(tasks, p.tasks) {
		t.Fatalf("seed %d, %s: tasks\n%v\nwant\n%v", seed, action, slices.Sorted(maps.Keys(tasks)), slices.Sorted(maps.Keys(p.tasks)))
	}
	if !maps.Equal(edges, p.edges) {
		t.Fatalf("seed %d, %s: edges\n%s\nwant\n%s", seed, action,
			strings.Join(slices.Sorted(maps.Keys(edges)), "\n"), strings.Join(slices.Sorted(maps.Keys(p.edges)), "\n"))
	}
	checkOrder(t, seed, p, edges)
}

// checkOrder holds whatever is reduced or bridged: between two services of
// which one depends on the other, directly or not, there is a way through the
// plan for every pair of tasks that a rule puts in order.
func checkOrder(t *testing.T, seed uint64, p *naive, edges map[string]bool) {
	t.Helper()
	after := map[string][]string{}
	for e := range edges {
		from, to, _ := strings.Cut(e, " -> ")
		after[from] = append(after[from], to)
	}
	reaches := func(from, to string) bool {
		seen := map[string]bool{from: true}
		for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
			if queue[0] == to {
				return true
			}
			for _, next := range after[queue[0]] {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
		return false
	}
	check := func(from, to string) {
		if p.tasks[from] && p.tasks[to] && !reaches(from, to) {
			t.Fatalf("seed %d: nothing puts %s before %s", seed, from, to)
		}
	}
	for x := range p.services {
		for y := range p.services {
			for _, nx := range p.on(x) {
				for _, ny := range p.on(y) {
					if x != y && p.surelyRuntime(x, y) {
						check(taskName(ny, y, loom.ActionStart), taskName(nx, x, loom.ActionStart))
						check(taskName(ny, y, loom.ActionStart), taskName(nx, x, loom.ActionInitialize))
						check(taskName(nx, x, loom.ActionStop), taskName(ny, y, loom.ActionStop))
					}
					if slices.Contains(p.direct(x, true), y) {
						nodeOnly := p.services[x].Dependencies.Install.Scope == "node" && slices.Contains(p.on(y), nx)
						if !nodeOnly || nx == ny {
							check(taskName(ny, y, loom.ActionInstall), taskName(nx, x, loom.ActionInstall))
						}
					}
				}
			}
		}
	}
}

func (p *naive) surelyRuntime(x, y string) bool { return p.surely(x, y, false) }
