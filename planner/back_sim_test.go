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

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// world is a simulated cluster. It is stricter than machines are: what cannot be is
// an error, such as a second machine for a node or a start of what is not installed.
type world struct {
	machines map[loom.NodeID]*simMachine
	// serial of the machine made last.
	serial int
	// adopts lets CREATE and others meet what an earlier try left.
	adopts bool
	// early lets a service be configured in the version that it is about to get.
	early bool
}

type simMachine struct {
	serial              int
	hardware            string
	confirmed, prepared bool
	services            map[string]*simService
}

// simService is a service on a machine; configured is the version, and knows the nodes, of
// which its last CONFIGURE was told.
type simService struct {
	installed, dirty bool
	version          int
	configured       int
	knows            string
	running, drained bool
	// limping is running of a sort, after a start that failed.
	limping bool
	// tried says that something failed that was to put it on or take it off.
	tried bool
}

// newWorld has a cluster as a finished operation leaves it.
func newWorld(s State) *world {
	w := &world{machines: map[loom.NodeID]*simMachine{}}
	for _, n := range s.Nodes {
		w.serial++
		w.machines[n.ID] = &simMachine{serial: w.serial, hardware: n.HardwareType, confirmed: true, prepared: true, services: map[string]*simService{}}
	}
	for _, n := range s.Nodes {
		for _, name := range n.Services {
			d := s.Services[name]
			on := &simService{running: d.Defines(loom.ActionStart)}
			if d.Defines(loom.ActionInstall) {
				on.installed, on.version = true, d.Version
			}
			if d.Defines(loom.ActionConfigure) {
				on.configured, on.knows = d.Version, w.view(s, d)
			}
			w.machines[n.ID].services[name] = on
		}
	}
	return w
}

// view is what a service learns of the nodes it follows.
func (w *world) view(s State, d loom.Service) string {
	var all []string
	for _, n := range s.Nodes {
		for _, name := range n.Services {
			other := s.Services[name]
			if slices.ContainsFunc(d.Follows, func(f string) bool { return f == name || slices.Contains(other.Dependencies.Provides, f) }) {
				serial := 0
				if m := w.machines[n.ID]; m != nil {
					serial = m.serial
				}
				all = append(all, fmt.Sprintf("%s@%s#%d", name, n.ID, serial))
			}
		}
	}
	slices.Sort(all)
	if len(s.Config) > 0 {
		all = append(all, fmt.Sprint(s.Config))
	}
	return strings.Join(all, " ")
}

// run carries out a task of an operation that leads to layout; half says that it fails
// somewhere on the way.
func (w *world) run(task loom.PlanTask, layout State, d loom.Service, half bool, r *rand.Rand) error {
	if task.Action.OfNode() {
		return w.runOnNode(task, layout, half, r)
	}
	m := w.machines[task.Node]
	if m == nil || !m.prepared {
		return fmt.Errorf("there is no machine that is ready for it")
	}
	s := m.services[task.Service]
	if s == nil {
		s = &simService{}
		m.services[task.Service] = s
	}
	installs := d.Defines(loom.ActionInstall)
	ready := !installs || s.installed && !s.dirty && s.version == d.Version
	something := !installs || s.installed || w.adopts
	s.tried = s.tried || half && (task.Action == loom.ActionInstall || task.Action == loom.ActionRemove)
	if half && r.IntN(3) == 0 {
		return nil // it did not get to do anything
	}
	switch task.Action {
	case loom.ActionInstall:
		if s.running && d.Defines(loom.ActionStop) && !w.adopts {
			return fmt.Errorf("it is running")
		}
		*s = simService{installed: true, version: d.Version, dirty: half, running: s.running, tried: half}
	case loom.ActionConfigure:
		if !ready && !(w.early && s.installed) {
			return fmt.Errorf("it is not installed: %+v", *s)
		}
		s.configured, s.knows = d.Version, w.view(layout, d)
		if half {
			s.configured, s.knows = -1, "half"
		}
	case loom.ActionInitialize:
		if !ready || s.running && d.Defines(loom.ActionStop) && !w.adopts {
			return fmt.Errorf("it is not installed, or running: %+v", *s)
		}
	case loom.ActionStart:
		if !ready || d.Defines(loom.ActionConfigure) && s.configured != d.Version {
			return fmt.Errorf("it is not installed or configured: %+v", *s)
		}
		if s.running = !half || r.IntN(2) == 0; s.running {
			s.drained, s.limping = false, half
		}
	case loom.ActionDrain:
		if !something {
			return fmt.Errorf("it is not installed")
		}
		s.drained = true
	case loom.ActionStop:
		if !something || installs && !s.dirty && s.version != d.Version && !s.tried && !w.adopts {
			return fmt.Errorf("it is not installed, or in another version: %+v", *s)
		}
		s.running = half && s.running && r.IntN(2) == 0
	case loom.ActionRemove:
		if !something && !s.tried || s.running && !s.limping && d.Defines(loom.ActionStop) {
			return fmt.Errorf("it is not installed, or running: %+v", *s)
		}
		s.installed, s.dirty, s.configured = half, half, -1
	}
	return nil
}

func (w *world) runOnNode(task loom.PlanTask, layout State, half bool, r *rand.Rand) error {
	m := w.machines[task.Node]
	switch task.Action {
	case loom.ActionCreate:
		if m != nil && !w.adopts {
			return fmt.Errorf("there is a machine already")
		}
		if half && r.IntN(2) == 0 {
			return nil
		}
		w.serial++
		w.machines[task.Node] = &simMachine{serial: w.serial, hardware: node(layout, task.Node).HardwareType, services: map[string]*simService{}}
	case loom.ActionDelete:
		if !half || r.IntN(2) == 0 {
			delete(w.machines, task.Node)
		}
	case loom.ActionReboot:
		if m == nil {
			return fmt.Errorf("there is no machine to reboot")
		}
		for _, s := range m.services {
			s.running = s.running && half && r.IntN(2) == 0
		}
	case loom.ActionConfirm, loom.ActionBootstrap:
		if m == nil || task.Action == loom.ActionBootstrap && !m.confirmed {
			return fmt.Errorf("there is no machine to prepare")
		}
		m.confirmed = m.confirmed || !half
		m.prepared = m.prepared || task.Action == loom.ActionBootstrap && !half
	}
	return nil
}

// differs says where the world is not as a state wants it, "" for nowhere.
// Definitions are all that may have been put on machines.
func (w *world) differs(want State, definitions ...map[string]loom.Service) string {
	for id := range w.machines {
		if node(want, id) == nil {
			return fmt.Sprintf("node %s has a machine", id)
		}
	}
	for _, n := range want.Nodes {
		m := w.machines[n.ID]
		switch {
		case m == nil || !m.prepared:
			return fmt.Sprintf("node %s has no machine", n.ID)
		case m.hardware != n.HardwareType:
			return fmt.Sprintf("node %s is %s", n.ID, m.hardware)
		}
		for _, name := range slices.Sorted(maps.Keys(m.services)) {
			s := m.services[name]
			could := func(action loom.TaskAction) bool {
				return !slices.ContainsFunc(definitions, func(all map[string]loom.Service) bool {
					d, there := all[name]
					return there && !d.Defines(action)
				})
			}
			if !slices.Contains(n.Services, name) && (s.installed && could(loom.ActionRemove) || s.running && could(loom.ActionStop)) {
				return fmt.Sprintf("node %s has %s: %+v", n.ID, name, *s)
			}
		}
		for _, name := range n.Services {
			d, s := want.Services[name], m.services[name]
			if s == nil {
				s = &simService{}
			}
			if d.Defines(loom.ActionInstall) && (!s.installed || s.dirty || s.version != d.Version) || s.running != d.Defines(loom.ActionStart) || s.running && s.drained ||
				d.Defines(loom.ActionConfigure) && (s.configured != d.Version || s.knows != w.view(want, d)) {
				return fmt.Sprintf("%s on node %s is %+v, and is to know %q", name, n.ID, *s, w.view(want, d))
			}
		}
	}
	return ""
}

// execution runs a plan in some legal order.
type execution struct {
	plan        loom.Plan
	begun, done []bool
}

// execute runs a plan up to a number of tasks that complete, all if there are not as
// many, and then lets some of those that could begin fail half-way.
func (w *world) execute(plan loom.Plan, layout State, old map[string]loom.Service, tasks int, r *rand.Rand) (*execution, error) {
	n := len(plan.Tasks)
	e := &execution{plan: plan, begun: make([]bool, n+1), done: make([]bool, n+1)}
	open, after := make([]int, n+1), make([][]int, n+1)
	for _, edge := range taskEdges(plan) {
		open[edge[1]]++
		after[edge[0]] = append(after[edge[0]], edge[1])
	}
	var ready []int
	for v := 1; v <= n; v++ {
		if open[v] == 0 {
			ready = append(ready, v)
		}
	}
	run := func(v int, half bool) error {
		task := plan.Tasks[v-1]
		d := layout.Services[task.Service]
		if task.Old {
			d = old[task.Service]
		}
		e.begun[v], e.done[v] = true, !half
		if task.Service != "" && !d.Defines(task.Action) {
			return fmt.Errorf("task %d: %s does not define %s", v, task.Service, task.Action)
		}
		if err := w.run(task, layout, d, half, r); err != nil {
			return fmt.Errorf("task %d, %s %s on node %s: %w", v, task.Action, task.Service, task.Node, err)
		}
		return nil
	}
	for ; tasks > 0 && len(ready) > 0; tasks-- {
		i := r.IntN(len(ready))
		v := ready[i]
		ready = slices.Delete(ready, i, i+1)
		if err := run(v, false); err != nil {
			return nil, err
		}
		for _, next := range after[v] {
			if open[next]--; open[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	busy := map[loom.NodeID]bool{}
	for _, v := range ready {
		if id := plan.Tasks[v-1].Node; !busy[id] && r.IntN(2) == 0 {
			busy[id] = true
			if err := run(v, true); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

func (e *execution) Begun(number int) bool { return e.begun[number] }
func (e *execution) Done(number int) bool  { return e.done[number] }

// has is what may have a machine: those that have one, and now and then one more.
func (w *world) has(r *rand.Rand) func(loom.NodeID) bool {
	more := r.Uint64()
	return func(id loom.NodeID) bool {
		return w.machines[id] != nil || more>>(len(id)+int(id[len(id)-1]))&1 == 1
	}
}

// unsure says that the tasks alone tell of machines.
func (w *world) unsure(t *testing.T, r *rand.Rand) func(loom.NodeID) bool {
	t.Helper()
	if r.IntN(3) == 0 {
		return nil
	}
	return w.has(r)
}
