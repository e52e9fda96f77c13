package clusters

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// nodesFiltered is from how many nodes on the tab offers filters.
	nodesFiltered = 10
	// nodesShown is how many rows a table of nodes of all sets has.
	nodesShown = 100
)

// nodesQuery is what the filters of the tab of nodes say: view is "flat" for one table, else
// nodes are in sets; set is the services of one set joined with ",".
type nodesQuery struct {
	view, q, service, state, set string
	address                      addressChoice
	page                         int
}

func readNodesQuery(q url.Values, nodes int) nodesQuery {
	n := nodesQuery{q.Get("view"), page.SearchOf(q), q.Get("service"), q.Get("state"), q.Get("set"), readAddressChoice(q), 1}
	if n.view != viewFlat {
		n.view = ""
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

const viewFlat = "flat"

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
func (n nodesQuery) matches(v clusters.ClusterView, node loom.Node) bool {
	if n.service != "" && !slices.Contains(node.Services, n.service) || n.state != "" && string(standingOf(v, &node)) != n.state || n.set != "" && setOf(node) != n.set {
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
	return s.Render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Nodes"), clusterview.NodesPage(s.clusterHead(actor, v, "nodes"), m))
}

// nodesPart is the machines: in sets that have the same services, or all in one table.
func (s *Server) nodesPart(ctx context.Context, actor loom.Actor, v clusters.ClusterView, q nodesQuery) (clusterview.NodesModel, error) {
	base := route.ClusterNodes(v.ID)
	m := clusterview.NodesModel{
		ID: v.ID, Empty: emptyNodes(v), Action: base, Clear: nodesQuery{view: q.view, address: q.address}.url(base), Filtered: q.filtered(), Filters: q.filtered() || q.view == viewFlat || len(v.Nodes) >= nodesFiltered, Q: q.q, View: q.view,
		Live: q.url(clusterview.PartURL(v.ID, clusterview.PartNodes)), Address: string(q.address), Copies: copyLinks(v.ID, q.address),
	}
	if m.Empty != nil {
		return m, nil
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
	m.Key = keyModel(v, actor, &c)
	m.Services, m.States = nodeFilters(v, q)
	var shown []loom.Node
	for _, n := range v.Nodes {
		if q.matches(v, n) {
			shown = append(shown, n)
		}
	}
	m.Matched = len(shown)
	row := func(n loom.Node) clusterview.NodeRow { return s.nodeRow(v, n, &c) }
	if q.view == viewFlat {
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
		return m, s.fillLoads(ctx, actor, v.ID, m.Rows)
	}
	m.Sets = nodeSets(v, shown, q, base, setRows, row)
	for _, set := range m.Sets {
		if err := s.fillLoads(ctx, actor, v.ID, set.Rows); err != nil {
			return m, err
		}
	}
	return m, nil
}

// emptyNodes says why a cluster has no nodes, and what leads on; nil where it has some. Those that
// were only planned count while they may still be created.
func emptyNodes(v clusters.ClusterView) *ui.EmptyModel {
	op := v.Latest
	over := op != nil && op.Status.Final()
	switch {
	case slices.ContainsFunc(v.Nodes, func(n loom.Node) bool { return !over || n.State != loom.NodePlanned }):
		return nil
	case !over || op.Status != loom.OperationFailed && !op.NeverBegan():
		return &ui.EmptyModel{Icon: "server", Text: "This cluster has no nodes."}
	}
	m := &ui.EmptyModel{Icon: "server", Text: "No nodes were created. " + op.Message}
	if why, offered := v.Allowed[loom.ChangeRetry]; !op.NeverBegan() && offered && why == "" {
		m.Action = ui.ButtonModel{Label: "Change and retry", Icon: "rotate", Href: route.OperationRetry(op.Ref, nil, nil, true)}
	} else {
		m.Action = ui.ButtonModel{Label: "Request again", Icon: "rotate", Href: route.Operation(op.Ref)} // where a button does it
	}
	return m
}

// setRows is how many nodes of a set are listed with it.
const setRows = 25

// nodeSets gathers nodes with the same services, in the order of their first nodes; of a large
// set the first nodes stand for it.
func nodeSets(v clusters.ClusterView, nodes []loom.Node, q nodesQuery, base string, first int, row func(n loom.Node) clusterview.NodeRow) []clusterview.NodeSet {
	sets := map[string]int{}
	var out []clusterview.NodeSet
	standings := map[string]map[nodeStanding]int{}
	for _, n := range nodes {
		key := setOf(n)
		at, ok := sets[key]
		if !ok {
			at = len(out)
			sets[key] = at
			flat := q
			flat.view, flat.set, flat.page = viewFlat, key, 1
			out = append(out, clusterview.NodeSet{Key: key, Services: slices.Sorted(slices.Values(n.Services)), All: flat.url(base)})
			standings[key] = map[nodeStanding]int{}
		}
		out[at].Count++
		standings[key][standingOf(v, &n)]++
		if len(out[at].Rows) < first {
			out[at].Rows = append(out[at].Rows, row(n))
		}
	}
	for i := range out {
		set := &out[i]
		for _, standing := range nodeStandings {
			if k := standings[set.Key][standing]; k > 0 {
				set.States = append(set.States, standing.state().With(strconv.Itoa(k)))
			}
		}
		set.Open = len(out) <= 6 && set.Count <= first
	}
	return out
}

// setsPart shows the nodes by what is on them.
func (s *Server) setsPart(v clusters.ClusterView) clusterview.SetsModel {
	placed := placedNodes(v)
	if v.Status == loom.ClusterTerminated { // refused, so that they were planned only
		placed = nil
	}
	box := func(n loom.Node) clusterview.NodeRow {
		return clusterview.NodeRow{Node: n, Href: route.Node(v.ID, n.ID), Badge: nodeState(v, &n, s.Now()).Of("node", string(n.ID))}
	}
	return clusterview.SetsModel{ID: v.ID, Sets: nodeSets(v, placed, nodesQuery{}, route.ClusterNodes(v.ID), boxesShown, box), Boxes: len(placed) <= boxesShown}
}

func (s *Server) nodeRow(v clusters.ClusterView, n loom.Node, c *connections) clusterview.NodeRow {
	menu := append([]ui.MenuItem{{Label: "Log", Icon: "list", Href: route.NodeLog(v.ID, n.ID)}}, nodeActions(v, n)...)
	command, why := c.command(&n)
	return clusterview.NodeRow{
		Node: n, Href: route.Query(route.Node(v.ID, n.ID), addressParam, string(c.choice)), Badge: nodeState(v, &n, s.Now()).Of("node", string(n.ID)),
		At: addresses(n), Command: command, WhyNot: why, Menu: menu,
	}
}

// nodeFilters offers what occurs among the nodes.
func nodeFilters(v clusters.ClusterView, q nodesQuery) (services, states []ui.Option) {
	services, states = []ui.Option{{Label: "All services"}}, []ui.Option{{Label: "All states"}}
	there := map[string]bool{}
	for _, n := range v.Nodes {
		there["state "+string(standingOf(v, &n))] = true
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
	for _, standing := range nodeStandings {
		if there["state "+string(standing)] {
			states = append(states, ui.Option{Value: string(standing), Label: standing.state().Word, Selected: string(standing) == q.state})
		}
	}
	return services, states
}
