package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"loom/app/lenient"
	"loom/app/loom"
	"loom/planner"
)

// planQuestion is what loom plan has read: an action on a cluster, or a change
// from before to after.
type planQuestion struct {
	action   loom.ClusterAction
	nodes    []loom.Node
	services map[string]loom.Service
	scope    planner.Scope
	change   *planner.Change
	// past are usual durations by service and action, "" for any service.
	past    map[taskKind]time.Duration
	workers int
}

type taskKind struct {
	service string
	action  loom.TaskAction
}

func (q *planQuestion) plan() (loom.Plan, error) {
	if q.change != nil {
		return planner.MakeChange(*q.change)
	}
	return planner.Make(q.action, q.nodes, q.services, q.scope)
}

// readPlan reads a question. Without "addresses" services do not wait for the
// CONFIRM of other nodes: the order is that of the rules alone.
func readPlan(r *questionReader) *planQuestion {
	q := &planQuestion{services: r.services(r.o, "services"), past: map[taskKind]time.Duration{}}
	if r.o.Has("action") {
		q.action = r.action("action")
	}
	if r.o.Has("config") {
		for _, e := range (loom.SettingsCheck{Services: q.services}).Check(r.o.FreeObject("config")) {
			r.fail(e.Field, "%s", e.Message)
		}
	}
	early := !r.o.Bool("addresses")
	q.readPast(r)
	if r.o.Has("before") || r.o.Has("after") {
		q.readChange(r, early)
		return q
	}
	if q.action == "" && len(r.errs) == 0 {
		r.fail("action", "Name the action, such as cluster_create, or give before and after.")
	} else if q.action != "" && q.action.Steps() == nil {
		r.fail("action", "“%s” is planned from a difference; give before and after.", q.action)
	}
	if !r.o.Has("nodes") && len(r.errs) == 0 {
		r.fail("nodes", "Set the nodes of the cluster, [] for none.")
	}
	q.nodes = readNodes(r.o, nil)
	q.scope.Early = early
	if r.o.Has("planned_services") {
		q.scope.Services = append([]string{}, r.o.Texts("planned_services")...)
	}
	if r.o.Has("planned_nodes") {
		q.scope.Nodes = []loom.NodeID{}
		for _, id := range r.o.Texts("planned_nodes") {
			q.scope.Nodes = append(q.scope.Nodes, loom.NodeID(id))
		}
	}
	for i, n := range q.nodes {
		r.defined(n, q.services, fmt.Sprintf("nodes[%d]", i))
	}
	return q
}

func (q *planQuestion) readChange(r *questionReader, early bool) {
	for _, side := range []string{"before", "after"} {
		if !r.o.Has(side) && len(r.errs) == 0 {
			r.fail(side, "Set before and after; a cluster without nodes is {\"nodes\": []}.")
		}
	}
	q.change = &planner.Change{Action: q.action, Early: early, Batch: r.o.Int("batch"), MinHealthy: r.o.IntPtr("minHealthy")}
	known := map[string]int{}
	for _, side := range []struct {
		name  string
		state *planner.State
	}{{"before", &q.change.Before}, {"after", &q.change.After}} {
		o := r.o.Object(side.name)
		side.state.Nodes = readNodes(o, known)
		side.state.Services = q.services
		if o.Has("services") {
			side.state.Services = r.services(o, side.name+".services")
			for name, s := range q.services {
				if _, own := side.state.Services[name]; !own {
					side.state.Services[name] = s
				}
			}
		}
		for _, n := range side.state.Nodes {
			r.defined(n, side.state.Services, side.name+".nodes")
		}
	}
}

// defined fails for services of a node that have no body.
func (r *questionReader) defined(n loom.Node, services map[string]loom.Service, at string) {
	for _, name := range n.Services {
		if _, there := services[name]; !there {
			r.fail(strings.SplitN(at, "[", 2)[0], "Node %s has the service “%s”, which “services” lacks. Add its body there.", n.ID, name)
		}
	}
}

// services reads catalog bodies by name; their versions count where they are given.
func (r *questionReader) services(o *lenient.Object, at string) map[string]loom.Service {
	all := map[string]loom.Service{}
	for i, body := range o.Array("services") {
		s, ok := r.listed(loom.KindService, at, i, body).(*loom.Service)
		if !ok {
			continue
		}
		if object, is := body.(map[string]any); is {
			s.Version = lenient.FromMap("", object).Int("version")
		}
		if _, twice := all[s.Name]; twice {
			r.fail(fmt.Sprintf("%s[%d].name", at, i), "The service “%s” is given twice.", s.Name)
		}
		all[s.Name] = *s
	}
	return all
}

// action reads a cluster action in either case.
func (r *questionReader) action(name string) loom.ClusterAction {
	action := loom.ClusterAction(strings.ToLower(r.o.Text(name)))
	if slices.Contains(loom.ClusterActions, action) {
		return action
	}
	words := make([]string, len(loom.ClusterActions))
	for i, a := range loom.ClusterActions {
		words[i] = string(a)
	}
	r.fail(name, "There is no action “%.60s”; there are %s.", r.o.Text(name), strings.Join(words, ", "))
	return ""
}

// readPast reads how long tasks took: durations of {service, action, seconds}.
func (q *planQuestion) readPast(r *questionReader) {
	q.workers = r.o.Int("workers")
	r.o.EachOf("durations", func(_ int, d *lenient.Object) {
		action := loom.TaskAction(strings.ToLower(d.Text("action")))
		seconds := d.FloatPtr("seconds")
		switch {
		case !action.Valid():
			d.Fail("action", "There is no task action “%.60s”.", action)
		case seconds == nil || *seconds < 0 || *seconds > 1e7:
			d.Fail("seconds", "Set the usual duration in seconds, 0 to 10000000.")
		default:
			q.past[taskKind{d.Text("service"), action}] = time.Duration(*seconds * float64(time.Second))
		}
	})
}

// expected estimates the duration of a plan; nil where nothing is known.
func (q *planQuestion) expected(plan loom.Plan) *float64 {
	total, known := planner.EstimateDuration(plan, max(q.workers, 0), func(service string, action loom.TaskAction, _ loom.NodeID) (time.Duration, bool) {
		if d, ok := q.past[taskKind{service, action}]; ok {
			return d, true
		}
		d, ok := q.past[taskKind{"", action}]
		return d, ok
	})
	if !known {
		return nil
	}
	seconds := total.Seconds()
	return &seconds
}
