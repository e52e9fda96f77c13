package clusters

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) nodeShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.showNode(w, r, actor, nil)
}

func (s *Server) showNode(w http.ResponseWriter, r *http.Request, actor loom.Actor, revealed *clusterview.RevealModel) error {
	v, n, err := s.pathNode(r, actor)
	if err != nil {
		return err
	}
	c, err := s.connections(r.Context(), actor, v, readAddressChoice(r.URL.Query()))
	if err != nil {
		return err
	}
	m := s.nodeModel(v, n, actor, &c)
	m.Revealed = revealed
	if page.Wants(r, clusterview.NodeID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.NodePart(m))
	}
	if m.Load, err = s.nodeLoad(r, actor, v, n); err != nil {
		return err
	}
	frame := clusterPage(m.Title, "Nodes", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Nodes", Href: route.ClusterNodes(v.ID)}, ui.Crumb{Label: m.Title})
	frame.Topics = []string{route.TopicCluster(v.ID)}
	page.Reloading(r, &frame, v.Status == loom.ClusterPending && revealed == nil)
	return s.Render(w, r, actor, http.StatusOK, frame, clusterview.NodePage(m))
}

// pathNode reads the node that a path names, with its cluster.
func (s *Server) pathNode(r *http.Request, actor loom.Actor) (clusters.ClusterView, loom.Node, error) {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return v, loom.Node{}, err
	}
	id := route.Segment(r.PathValue("node"))
	for _, n := range v.Nodes {
		if string(n.ID) == id {
			n, err = s.Clusters.NodeRecord(r.Context(), actor, v.ID, n.ID)
			return v, n, err
		}
	}
	return v, loom.Node{}, loom.NewError(loom.NotFound, "Cluster %s has no node “%.40s”.", v.ID, id)
}

func (s *Server) nodeModel(v clusters.ClusterView, n loom.Node, actor loom.Actor, c *connections) clusterview.NodeModel {
	self := func(c addressChoice) string { return route.Query(route.Node(v.ID, n.ID), addressParam, string(c)) }
	command, why := c.command(&n)
	m := clusterview.NodeModel{
		Node: n, Cluster: v.ID, Title: "Node " + strconv.Itoa(n.Number), Badge: nodeState(v, &n, s.Now()).Of("node", string(n.ID)), Rows: nodeServices(v, n, s.Now()),
		Command: command, WhyNot: why, Live: self(c.choice), Log: route.NodeLog(v.ID, n.ID), Addresses: addressChoices([]loom.Node{n}, c.choice, self),
		Menu: nodeActions(v, n),
	}
	m.Trouble = nodeTrouble(v, &n)
	m.Fixed = primaryFix(m.Trouble)
	m.Drift = nodeDrift(v, n.ID)
	m.Links = nodeLinks(v, n)
	if c.reachable(&n) {
		m.Key = keyModel(v, actor, c)
	}
	if c.signIns.HasPassword(n.ID) && actor.May(loom.Operate, v.Object()) == nil {
		m.Reveal = route.Query(route.NodeReveal(v.ID, n.ID), addressParam, string(c.choice))
	}
	m.Facts = []ui.Def{{Term: "Host name", Text: n.Hostname}}
	for _, address := range addresses(n) {
		m.Facts = append(m.Facts, ui.Def{Term: "Address", Text: address})
	}
	m.Technical = []ui.Def{
		{Term: "Provider", Text: v.Provider.Name},
		{Term: "Hardware", Text: n.HardwareType + " → " + n.Flavor},
		{Term: "Image", Text: n.ImageType + " → " + n.Image},
		{Term: "Id", Value: ui.CopyText(string(n.ID), "node id")},
	}
	for _, key := range slices.Sorted(maps.Keys(n.Results)) {
		m.Technical = append(m.Technical, ui.Def{Term: key, Text: factText(n.Results[key]), Mono: true})
	}
	for _, a := range slices.Backward(n.Actions) {
		if len(m.History) == historyShown {
			break
		}
		m.History = append(m.History, a)
	}
	return m
}

// historyShown is how many actions the page of a node lists; its log has all.
const historyShown = 10

// nodeServices are the services of a node, each with the newest action there.
func nodeServices(v clusters.ClusterView, n loom.Node, now time.Time) []clusterview.NodeService {
	var out []clusterview.NodeService
	for _, on := range servicesOn(v, n, now) {
		row := clusterview.NodeService{ServiceOn: on, Journal: journalLink(v, n, on.Name)}
		all := serviceActions(v, on.Name)
		if len(all) > 0 && n.State != loom.NodeDeleted {
			row.Menu = repairActions(v, n.ID, []string{on.Name}, loom.RepairByRestart, loom.RepairByConfigure)
			row.Menu[0].Label = "Restart here…"
		}
		for i, a := range all {
			a.Label += " on all nodes"
			a.Divider = i == 0
			row.Menu = append(row.Menu, a)
		}
		for _, a := range n.Actions {
			if a.Service == on.Name && !a.Started.Before(row.Last.Started) {
				row.Last = a
			}
		}
		out = append(out, row)
	}
	return out
}

// factText writes a fact of a plugin; secrets among them were masked before.
func factText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return loom.JSONText(v)
}

// nodeReveal shows a machine's own password, once.
func (s *Server) nodeReveal(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, n, err := s.pathNode(r, actor)
	if err != nil {
		return err
	}
	secret, err := s.Clusters.RevealPassword(r.Context(), actor, v.ID, n.ID)
	if err != nil {
		return err
	}
	m := clusterview.RevealModel{Hostname: ui.ShortHost(n.Hostname), Revealed: secret, Again: route.NodeReveal(v.ID, n.ID)}
	w.Header().Set("Cache-Control", "no-store")
	if page.Wants(r, clusterview.RevealID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.Reveal(m))
	}
	return s.showNode(w, r, actor, &m)
}

// nodeHide is what stands in place of a sign-in after a while. Opened by itself it
// leads to the node.
func (s *Server) nodeHide(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, n, err := s.pathNode(r, actor)
	if err != nil {
		return err
	}
	if page.Wants(r, clusterview.RevealID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.RevealGone())
	}
	http.Redirect(w, r, route.Node(v.ID, n.ID), http.StatusSeeOther)
	return nil
}

// nodeStanding is how a node stands: the state of its machine, and of a ready one
// whether its services serve. A node is ready only when they do.
type nodeStanding string

const (
	standingReady   = nodeStanding(loom.NodeReady)
	standingSettles = nodeStanding("setting-up")
	standingUnready = nodeStanding("not-ready")
)

// nodeStandings in the order of a node's life.
var nodeStandings = []nodeStanding{
	nodeStanding(loom.NodePlanned), nodeStanding(loom.NodeCreating), standingSettles, standingReady, standingUnready,
	nodeStanding(loom.NodeFailed), nodeStanding(loom.NodeDeleting), nodeStanding(loom.NodeDeleted),
}

func (s nodeStanding) state() ui.State {
	switch s {
	case standingSettles:
		return ui.State{Word: "Setting up", Icon: "ring", Tone: ui.ToneRun}
	case standingUnready:
		return ui.State{Word: "Not ready", Icon: "error", Tone: ui.ToneBad}
	}
	return ui.NodeState(loom.NodeState(s))
}

func standingOf(v clusters.ClusterView, n *loom.Node) nodeStanding {
	switch {
	case n.State != loom.NodeReady || !v.Unmet[n.ID].Wanted:
		return nodeStanding(n.State)
	case v.Latest != nil && !v.Latest.Status.Final():
		return standingSettles
	}
	return standingUnready
}

// nodeState shows how a node stands, and which of its services do not serve.
func nodeState(v clusters.ClusterView, n *loom.Node, now time.Time) ui.State {
	unmet := v.Unmet[n.ID].Services
	standing := standingOf(v, n)
	state := standing.state()
	if standing == standingReady {
		h, known := healthOf(v, n.ID)
		switch {
		case allStopped(n):
			if known && h.Status.Bad() {
				return ui.HealthState(h.Status, h.AsOf(), now)
			}
			return ui.StoppedState()
		case len(unmet) == 0 && awaitsLook(v, h.CheckedAt, now):
			return ui.CheckingState()
		case known && (len(unmet) == 0 || h.Status != loom.HealthHealthy):
			return seenState(v, &h, now)
		case len(unmet) == 0:
			state.Tone = ui.ToneIdle // nobody looks
			return state
		}
		state.Icon, state.Tone = "square", ui.ToneIdle
		return state.With("· " + unmetText(n, unmet))
	}
	switch {
	case len(unmet) == 0, n.State == loom.NodeFailed && !serviceFailed(n):
		return state // of a machine that failed itself, nothing can be expected
	case standing == standingSettles:
		return state
	case standing == standingUnready && !serviceFailed(n):
		state.Icon, state.Tone = "circle", ui.ToneIdle
	}
	return state.With("· " + unmetText(n, unmet))
}

// seenState is the state of a node at its last look.
func seenState(v clusters.ClusterView, h *loom.NodeHealth, now time.Time) ui.State {
	state := ui.HealthState(h.Status, h.AsOf(), now)
	if v.Health.Maintained(h.Node) != nil {
		state.Tone = ui.ToneIdle
		return state.With("maintenance")
	}
	if h.Status == loom.HealthHealthy && len(h.Drift) > 0 {
		state.Tone = ui.ToneWarn
		return state.With("· drifted")
	}
	return state
}

// awaitsLook reports whether the last look at a node is from before the latest
// operation, and the first look after it is still to come.
func awaitsLook(v clusters.ClusterView, seen, now time.Time) bool {
	if v.Latest == nil || v.Status != loom.ClusterActive || v.Health.Status == loom.HealthOff {
		return false
	}
	p := v.Latest.Progress()
	return p.AwaitsLook(seen, now)
}

// allStopped reports whether all services of a node were stopped, and it has some.
func allStopped(n *loom.Node) bool {
	return len(n.Services) > 0 && !slices.ContainsFunc(n.Services, func(name string) bool { return n.ServiceStates[name] != loom.ServiceStopped })
}

func serviceFailed(n *loom.Node) bool {
	return slices.ContainsFunc(n.Services, func(name string) bool { return n.ServiceStates[name] == loom.ServiceFailed })
}

// unmetText names the first service that does not serve, one that failed before others.
func unmetText(n *loom.Node, unmet []string) string {
	name := unmet[0]
	for _, s := range unmet {
		if n.ServiceStates[s] == loom.ServiceFailed {
			name = s
			break
		}
	}
	text := name + " "
	switch n.ServiceStates[name] {
	case loom.ServiceFailed:
		text += "failed"
	case loom.ServiceStopped:
		text += "stopped"
	case loom.ServiceInstalled:
		text += "not started"
	default:
		text += "not installed"
	}
	if more := len(unmet) - 1; more > 0 {
		text += fmt.Sprintf(", %d more", more)
	}
	return text
}
