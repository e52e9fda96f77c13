package clusters

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// connectShown is how many machines the overview of a cluster names; the tab of nodes
// has all.
const connectShown = 20

// connectPart is the links of a cluster and how to sign in to its machines.
func (s *Server) connectPart(ctx context.Context, actor loom.Actor, v clusters.ClusterView, choice addressChoice) (clusterview.ConnectModel, error) {
	at := func(base string) string { return route.Query(base, addressParam, string(choice)) }
	m := clusterview.ConnectModel{ID: v.ID, Live: at(clusterview.PartURL(v.ID, clusterview.PartConnect)), Copies: copyLinks(v.ID, choice), Gone: v.Status == loom.ClusterTerminated}
	if m.Gone {
		return m, nil
	}
	c, err := s.connections(ctx, actor, v, choice)
	if err != nil {
		return m, err
	}
	m.Key = keyModel(v, actor, &c)
	m.AllNodes = route.Query(route.ClusterNodes(v.ID), "view", "flat", addressParam, string(choice))
	m.Addresses = addressChoices(v.Nodes, choice, func(c addressChoice) string {
		return route.Query(route.Cluster(v.ID), addressParam, string(c)) + "#" + clusterview.PartConnect.ID()
	})
	m.Links = linkModels(v.OpenLinks)
	for _, n := range v.Nodes {
		if n.State == loom.NodeDeleted {
			continue
		}
		if m.Count++; m.Count > connectShown {
			continue
		}
		command, why := c.command(&n)
		shown := clusterview.NodeRow{Node: n, Href: at(route.Node(v.ID, n.ID)), Command: command, WhyNot: why, Links: nodeLinks(v, n)}
		shown.Links = shown.Links[:min(len(shown.Links), serviceLinksShown)]
		if c.signIns.HasPassword(n.ID) && actor.May(loom.Operate, v.Object()) == nil {
			shown.Reveal = at(route.NodeReveal(v.ID, n.ID))
		}
		m.Nodes = append(m.Nodes, shown)
	}
	return m, nil
}

// clusterOpen leads to what the services of a cluster serve, or to the cluster where nothing
// does now.
func (s *Server) clusterOpen(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	if len(v.OpenLinks) == 0 {
		return s.Say(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "warn", Text: v.Name + " serves nothing to open now."})
	}
	http.Redirect(w, r, linkModels(v.OpenLinks)[0].URL, http.StatusFound)
	return nil
}

// connections say how a viewer gets into the machines of a cluster, with one kind of
// address.
type connections struct {
	cluster  loom.ClusterID
	provider string
	signIns  clusters.SSHAccess
	choice   addressChoice
}

func (s *Server) connections(ctx context.Context, actor loom.Actor, v clusters.ClusterView, choice addressChoice) (connections, error) {
	signIns, err := s.Clusters.SSHAccess(ctx, actor, v.Cluster)
	return connections{v.ID, v.Provider.Name, signIns, choice}, err
}

// reachable reports whether a node has a machine with an address.
func (c *connections) reachable(n *loom.Node) bool {
	return c.choice.of(*n) != "" && n.State != loom.NodeDeleted && n.State != loom.NodePlanned
}

// command is the line with which the viewer signs in to a node; without one it says why
// there is none.
func (c *connections) command(n *loom.Node) (line, whyNot string) {
	if n.State == loom.NodeDeleted {
		return "", ""
	}
	if !c.reachable(n) {
		return "", "no address yet"
	}
	words := []string{"ssh"}
	switch c.signIns.Best(n) {
	case clusters.AccessClusterKey:
		words = append(words, "-i", clusters.KeyFile(c.cluster))
	case clusters.AccessNone:
		return "", "none of your keys is on it"
	case clusters.AccessOwnKey, clusters.AccessPassword:
	}
	if c.signIns.Jump != "" {
		words = append(words, "-J", c.signIns.Jump)
	}
	user, port := n.SignIn()
	if port != 22 {
		words = append(words, "-p", strconv.Itoa(port))
	}
	// What a plugin reported must not become another word of the command.
	return strings.Join(append(words, plainLine(user)+"@"+plainLine(c.choice.of(*n))), " "), ""
}

// keyModel is what there is to do about keys, and why somebody cannot sign in.
func keyModel(v clusters.ClusterView, actor loom.Actor, c *connections) clusterview.KeyModel {
	m := clusterview.KeyModel{File: clusters.KeyFile(v.ID), Provider: c.provider, HasKeys: len(c.signIns.Keys) > 0, Jump: c.signIns.Jump}
	operates := actor.May(loom.Operate, v.Object()) == nil
	if operates && c.signIns.Downloads(v.Nodes) {
		m.Download = route.ClusterVerb(v.ID, "key")
	}
	if operates && c.signIns.MayAdd(v.Nodes) {
		m.Add, m.AddWhyNot = route.ClusterVerb(v.ID, "authorize"), v.Allowed[loom.ChangeAuthorize]
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; c.reachable(n) {
			switch c.signIns.Best(n) {
			case clusters.AccessOwnKey:
				m.Own++
			case clusters.AccessClusterKey:
				m.ByFile++
			case clusters.AccessPassword:
				m.ByPassword++
			case clusters.AccessNone:
				m.Closed++
			}
		}
	}
	return m
}

// clusterAuthorize puts the viewer's keys on the machines of a cluster, at once.
func (s *Server) clusterAuthorize(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	ref, err := s.Clusters.Begin(r.Context(), actor, clusters.PreviewInput{Kind: loom.ChangeAuthorize, Cluster: id})
	if err != nil {
		return err
	}
	return s.Return(w, r, route.Cluster(id), httpx.Flash{Tone: "ok", Text: "Adding your SSH keys to the machines.", URL: route.Operation(ref), Link: "View operation " + strconv.Itoa(ref.Number)})
}

// clusterKey gives the key of a cluster as a file.
func (s *Server) clusterKey(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	key, err := s.Clusters.Key(r.Context(), actor, id)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/x-pem-file")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", clusters.KeyFile(id)))
	_, err = w.Write([]byte(key.Reveal()))
	return err
}
