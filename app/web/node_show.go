package web

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
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
	if wants(r, clusterview.NodeID) {
		return s.fragment(w, r, http.StatusOK, clusterview.NodePart(m))
	}
	if m.Use, err = s.nodeUse(r, actor, v, n); err != nil {
		return err
	}
	short := shortHost(n.Hostname)
	page := clusterPage(short, "Nodes", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Nodes", Href: route.ClusterNodes(v.ID)}, ui.Crumb{Label: short})
	page.Topics = []string{route.TopicCluster(v.ID)}
	reloading(r, &page, v.Status == loom.ClusterPending && revealed == nil)
	return s.render(w, r, actor, http.StatusOK, page, clusterview.NodePage(m))
}

// pathNode reads the node that a path names, with its cluster.
func (s *Server) pathNode(r *http.Request, actor loom.Actor) (lifecycle.ClusterView, loom.Node, error) {
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

func (s *Server) nodeModel(v lifecycle.ClusterView, n loom.Node, actor loom.Actor, c *connections) clusterview.NodeModel {
	self := func(c addressChoice) string { return route.Query(route.Node(v.ID, n.ID), addressParam, string(c)) }
	command, why := c.command(&n)
	m := clusterview.NodeModel{
		Cluster: v.ID, Now: s.now(), Hostname: n.Hostname, State: nodeState(v, &n), Services: nodeServices(v, n),
		Command: command, WhyNot: why, Live: self(c.choice), Log: route.NodeLog(v.ID, n.ID), Addresses: addressChoices([]loom.Node{n}, c.choice, self),
		Leaving: n.Leaving && n.State != loom.NodeDeleted, Actions: buttons(nodeActions(v, n)),
	}
	m.Links = nodeLinks(v, n)
	if c.reachable(&n) {
		m.Key = keyModel(v, actor, c)
	}
	if c.signIns.HasPassword(n.ID) && actor.Has(loom.ScopeClusterWrite) {
		m.Reveal = route.Query(route.NodeReveal(v.ID, n.ID), addressParam, string(c.choice))
	}
	m.Facts = []ui.Def{
		{Term: "Addresses", Text: strings.Join(addresses(n), ", "), Mono: true},
		{Term: "Hardware", Text: n.HardwareType + " → " + n.Flavor},
		{Term: "Image", Text: n.ImageType + " → " + n.Image},
		{Term: "Provider", Text: v.Provider.Name},
		{Term: "Number", Text: strconv.Itoa(n.Number)},
		{Term: "Id", Value: ui.CopyText(string(n.ID), "node id")},
	}
	if len(addresses(n)) == 0 {
		m.Facts = m.Facts[1:]
	}
	for _, key := range slices.Sorted(maps.Keys(n.Results)) {
		m.Results = append(m.Results, ui.Def{Term: key, Text: factText(n.Results[key]), Mono: true})
	}
	for _, a := range slices.Backward(n.Actions) {
		m.History = append(m.History, clusterview.NodeEvent{
			Action: string(a.Action), Service: a.Service, Href: route.TaskAttempt(a.Task, a.Attempt), State: historyState(a),
			Attempt: strconv.Itoa(a.Attempt), Log: route.TaskAttempt(a.Task, a.Attempt) + "#log",
			Started: a.Started, Ended: a.Ended,
		})
	}
	return m
}

// nodeServices are the services of a node, each with the newest action there.
func nodeServices(v lifecycle.ClusterView, n loom.Node) []clusterview.NodeService {
	var out []clusterview.NodeService
	for _, on := range servicesOn(n) {
		row := clusterview.NodeService{ServiceOn: on, Actions: serviceActions(v, on.Name)}
		for _, a := range n.Actions {
			if a.Service == on.Name && !a.Started.Before(row.LastAt) {
				row.Last, row.LastHref, row.LastAt, row.LastState = string(a.Action), route.TaskAttempt(a.Task, a.Attempt), a.Started, historyState(a)
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

func historyState(a loom.NodeAction) ui.State {
	switch a.Status {
	case "complete":
		return ui.TaskState(loom.TaskComplete)
	case "failed":
		return ui.TaskState(loom.TaskFailed)
	}
	return ui.TaskState(loom.TaskRunning)
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
	m := clusterview.RevealModel{Hostname: shortHost(n.Hostname), User: secret.User, Password: secret.Password.Reveal(), Again: route.NodeReveal(v.ID, n.ID)}
	w.Header().Set("Cache-Control", "no-store")
	if wants(r, clusterview.RevealID) {
		return s.fragment(w, r, http.StatusOK, clusterview.Reveal(m))
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
	if wants(r, clusterview.RevealID) {
		return s.fragment(w, r, http.StatusOK, clusterview.RevealGone())
	}
	http.Redirect(w, r, route.Node(v.ID, n.ID), http.StatusSeeOther)
	return nil
}
