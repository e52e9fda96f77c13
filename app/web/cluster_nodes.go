package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// nodesFlat is up to how many nodes the tab opens with one table of all.
	nodesFlat = 4
	// nodesShown is how many rows a table of nodes has.
	nodesShown = 100
)

// nodeStates are the states of nodes in the order of their life.
var nodeStates = []loom.NodeState{loom.NodePlanned, loom.NodeCreating, loom.NodeReady, loom.NodeFailed, loom.NodeDeleting, loom.NodeDeleted}

// nodesQuery is what the filters of the tab of nodes say: view "sets" or "flat", set
// the services of one set joined with ",".
type nodesQuery struct {
	view, q, service, state, set string
	address                      addressChoice
	page                         int
}

func readNodesQuery(q url.Values, nodes int) nodesQuery {
	n := nodesQuery{q.Get("view"), searchOf(q), q.Get("service"), q.Get("state"), q.Get("set"), readAddressChoice(q), 1}
	if n.view != "flat" && n.view != "sets" {
		if n.view = "sets"; nodes <= nodesFlat {
			n.view = "flat"
		}
	}
	if page, err := strconv.Atoi(q.Get("page")); err == nil {
		n.page = min(max(page, 1), nodes/nodesShown+1)
	}
	return n
}

func (n nodesQuery) url(base string) string {
	page := ""
	if n.page > 1 {
		page = strconv.Itoa(n.page)
	}
	return route.Query(base, "view", n.view, "q", n.q, "service", n.service, "state", n.state, "set", n.set, addressParam, string(n.address), "page", page)
}

func (n nodesQuery) filtered() bool { return n.q+n.service+n.state+n.set != "" }

// noServices names the set of nodes without services in a query.
const noServices = "none"

func setOf(n loom.Node) string {
	if len(n.Services) == 0 {
		return noServices
	}
	return strings.Join(slices.Sorted(slices.Values(n.Services)), ",")
}

// matches reports whether a node passes the filters; words are looked for in its name,
// addresses and types.
func (n nodesQuery) matches(node loom.Node) bool {
	if n.service != "" && !slices.Contains(node.Services, n.service) || n.state != "" && string(node.State) != n.state || n.set != "" && setOf(node) != n.set {
		return false
	}
	text := strings.ToLower(strings.Join(append(addresses(node), node.Hostname, string(node.ID), node.HardwareType, node.ImageType, strconv.Itoa(node.Number)), " "))
	for _, word := range strings.Fields(strings.ToLower(n.q)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (s *Server) clusterNodes(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	m, err := s.nodesPart(r.Context(), actor, v, readNodesQuery(r.URL.Query(), len(v.Nodes)))
	if err != nil {
		return err
	}
	return s.render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Nodes"), clusterview.NodesPage(s.clusterHead(actor, v, "nodes"), m))
}

// nodesPart is the machines: in sets that have the same services, or all in one table.
func (s *Server) nodesPart(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, q nodesQuery) (clusterview.NodesModel, error) {
	base := route.ClusterNodes(v.ID)
	m := clusterview.NodesModel{
		ID: v.ID, None: len(v.Nodes) == 0, Action: base, Clear: nodesQuery{view: q.view, address: q.address}.url(base), Filtered: q.filtered(), Q: q.q, View: q.view,
		Live: q.url(clusterview.PartURL(v.ID, clusterview.PartNodes)), Address: string(q.address), Copies: copyLinks(v.ID, q.address),
	}
	m.Addresses = addressChoices(v.Nodes, q.address, func(c addressChoice) string {
		to := q
		to.address = c
		return to.url(base)
	})
	c, err := s.connections(ctx, actor, v, q.address)
	if err != nil {
		return m, err
	}
	for _, view := range []struct{ word, label string }{{"sets", "By services"}, {"flat", "All in one table"}} {
		to := q
		to.view, to.page, to.set = view.word, 1, ""
		m.Views.Options = append(m.Views.Options, ui.Tab{Label: view.label, Href: to.url(base), Current: view.word == q.view})
	}
	m.Views.Label = "View"
	m.Services, m.States = nodeFilters(v, q)
	var shown []loom.Node
	for _, n := range v.Nodes {
		if q.matches(n) {
			shown = append(shown, n)
		}
	}
	m.Matched = len(shown)
	row := func(n loom.Node) clusterview.NodeRow { return s.nodeRow(v, n, &c) }
	if q.view == "flat" {
		from := min((q.page-1)*nodesShown, len(shown))
		to := min(from+nodesShown, len(shown))
		for _, n := range shown[from:to] {
			m.Rows = append(m.Rows, row(n))
		}
		if len(shown) > nodesShown {
			m.Pages = ui.PaginationModel{Label: "Pages of nodes", Text: fmt.Sprintf("%d–%d of %d nodes", from+1, to, len(shown))}
			prev, next := q, q
			if prev.page--; prev.page > 0 {
				m.Pages.Prev = prev.url(base)
			}
			if next.page++; to < len(shown) {
				m.Pages.Next = next.url(base)
			}
		}
		return m, nil
	}
	m.Sets = nodeSets(shown, q, base, row)
	settleSets(v, shown, m.Sets)
	return m, nil
}

// nodeSets gathers nodes with the same services, the largest set first; of a large one
// the first nodes stand for it.
func nodeSets(nodes []loom.Node, q nodesQuery, base string, row func(n loom.Node) clusterview.NodeRow) []clusterview.NodeSet {
	const first = 25
	sets := map[string]int{}
	var out []clusterview.NodeSet
	states := map[string]map[loom.NodeState]int{}
	for _, n := range nodes {
		key := setOf(n)
		at, ok := sets[key]
		if !ok {
			at = len(out)
			sets[key] = at
			flat := q
			flat.view, flat.set, flat.page = "flat", key, 1
			out = append(out, clusterview.NodeSet{Key: key, Services: slices.Sorted(slices.Values(n.Services)), All: flat.url(base)})
			states[key] = map[loom.NodeState]int{}
		}
		out[at].Count++
		states[key][n.State]++
		if len(out[at].Rows) < first {
			out[at].Rows = append(out[at].Rows, row(n))
		}
	}
	for i := range out {
		set := &out[i]
		set.Title = ui.Count(set.Count, "node", "nodes") + " with " + ui.Count(len(set.Services), "service", "services")
		if set.Count > 1 && len(set.Services) > 0 {
			set.Title += " each"
		}
		for _, state := range nodeStates {
			if k := states[set.Key][state]; k > 0 {
				set.States = append(set.States, ui.NodeState(state).With(strconv.Itoa(k)))
			}
		}
		set.Open = len(out) <= 6 && set.Count <= first
	}
	slices.SortStableFunc(out, func(a, b clusterview.NodeSet) int { return b.Count - a.Count })
	return out
}

// setsPart sums the nodes up by what is on them.
func (s *Server) setsPart(v lifecycle.ClusterView) clusterview.SetsModel {
	none := func(loom.Node) clusterview.NodeRow { return clusterview.NodeRow{} }
	m := clusterview.SetsModel{ID: v.ID, Sets: nodeSets(placedNodes(v), nodesQuery{}, route.ClusterNodes(v.ID), none)}
	settleSets(v, placedNodes(v), m.Sets)
	return m
}

// settleSets says of sets of nodes on how many services are still to come.
func settleSets(v lifecycle.ClusterView, nodes []loom.Node, sets []clusterview.NodeSet) {
	settling := map[string]int{}
	for _, n := range nodes {
		if toCome(v, &n) > 0 {
			settling[setOf(n)]++
		}
	}
	for i := range sets {
		sets[i].States = settlingFirst(sets[i].States, settling[sets[i].Key])
	}
}

// toCome counts the services of a ready node that an operation has yet to bring.
func toCome(v lifecycle.ClusterView, n *loom.Node) int {
	if n.State != loom.NodeReady || v.Latest == nil || v.Latest.Status.Final() {
		return 0
	}
	count := 0
	for _, name := range n.Services {
		if settles(v, n, name) {
			count++
		}
	}
	return count
}

// nodeState is that of a node, with how far its services are while some are to come: a
// machine is ready before what runs on it.
func nodeState(v lifecycle.ClusterView, n *loom.Node) ui.State {
	state := ui.NodeState(n.State)
	if k := toCome(v, n); k > 0 {
		state.Icon, state.Tone = "ring", ui.ToneRun
		state = state.With(fmt.Sprintf("· %d of %s", len(n.Services)-k, ui.Count(len(n.Services), "service", "services")))
	}
	return state
}

// settles reports whether a service is still to come to a machine that is ready.
func settles(v lifecycle.ClusterView, n *loom.Node, service string) bool {
	switch n.ServiceStates[service] {
	case loom.ServiceStarted, loom.ServiceStopped, loom.ServiceFailed:
		return false
	}
	return !v.Runs(n, service)
}

// settlingFirst takes so many nodes, on which services are still to come, out of those
// that are ready.
func settlingFirst(states []ui.State, settling int) []ui.State {
	if settling == 0 {
		return states
	}
	out := []ui.State{{Word: "Setting up", Icon: "ring", Tone: ui.ToneRun, Detail: strconv.Itoa(settling)}}
	for _, state := range states {
		if state.Word == ui.NodeState(loom.NodeReady).Word {
			ready, _ := strconv.Atoi(state.Detail)
			if ready <= settling {
				continue
			}
			state.Detail = strconv.Itoa(ready - settling)
		}
		out = append(out, state)
	}
	return out
}

func (s *Server) nodeRow(v lifecycle.ClusterView, n loom.Node, c *connections) clusterview.NodeRow {
	menu := append([]ui.MenuItem{{Label: "Log", Icon: "list", Href: route.NodeLog(v.ID, n.ID)}}, nodeActions(v, n)...)
	command, why := c.command(&n)
	return clusterview.NodeRow{
		ID: string(n.ID), Hostname: n.Hostname, Href: route.Query(route.Node(v.ID, n.ID), addressParam, string(c.choice)), State: nodeState(v, &n), Addresses: addresses(n),
		Hardware: n.HardwareType, Image: n.ImageType, Services: servicesOn(n), Command: command, WhyNot: why,
		Leaving: n.Leaving && n.State != loom.NodeDeleted, Menu: menu,
	}
}

// nodeFilters offers what occurs among the nodes.
func nodeFilters(v lifecycle.ClusterView, q nodesQuery) (services, states []ui.Option) {
	services, states = []ui.Option{{Label: "All services"}}, []ui.Option{{Label: "All states"}}
	there := map[string]bool{}
	for _, n := range v.Nodes {
		there["state "+string(n.State)] = true
		for _, name := range n.Services {
			there[name] = true
		}
	}
	var names []string
	for name := range there {
		if !strings.HasPrefix(name, "state ") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		services = append(services, ui.Option{Value: name, Label: name, Selected: name == q.service})
	}
	for _, state := range nodeStates {
		if there["state "+string(state)] {
			states = append(states, ui.Option{Value: string(state), Label: ui.NodeState(state).Word, Selected: string(state) == q.state})
		}
	}
	return services, states
}
