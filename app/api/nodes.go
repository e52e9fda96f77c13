package api

import (
	"net/http"
	"strings"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/places"
)

func (a *api) listNodes(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, false)
	if err != nil {
		return err
	}
	found, err := a.Clusters.Nodes(r.Context(), actor, page)
	if err != nil {
		return err
	}
	linkPages(w, r, found.Next, found.Prev)
	out := make([]wire.Node, len(found.Items))
	for i, n := range found.Items {
		out[i] = wire.NewNode(n.Node, n.Catalog, nil)
	}
	if err := holdNodes(r, out); err != nil {
		return err
	}
	return answer(w, r, out)
}

// holdNodes makes room for nodes: each says all of the services that it has. Throttled.
func holdNodes(r *http.Request, nodes []wire.Node) error {
	weight, err := wire.NodesWeight(nodes)
	if err != nil {
		return err
	}
	return places.Hold(r.Context(), weight)
}

func (a *api) showNode(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := a.Clusters.NodeByID(r.Context(), actor, loom.NodeID(strings.ToLower(r.PathValue("id"))))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewNode(n.Node, n.Catalog, nil))
}

// postNode writes a node, new or not; so does putNode, which names it in the path.
func (a *api) postNode(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.writeNode(w, r, actor, "", http.StatusCreated)
}

func (a *api) putNode(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.writeNode(w, r, actor, r.PathValue("id"), http.StatusNoContent)
}

func (a *api) writeNode(w http.ResponseWriter, r *http.Request, actor loom.Actor, id string, success int) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadNode(body)
	if err != nil {
		return err
	}
	if id != "" && !strings.EqualFold(id, string(in.ID)) {
		return loom.InvalidFields([]loom.FieldError{{Field: "id", Message: "The id in the body is not that of the path."}})
	}
	if _, err := a.Clusters.WriteNode(r.Context(), actor, in); err != nil {
		return err
	}
	w.WriteHeader(success)
	return nil
}

func (a *api) deleteNode(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Clusters.RemoveNode(r.Context(), actor, loom.NodeID(strings.ToLower(r.PathValue("id")))); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// nodeProperties answers an empty object for a cluster that is not there: old
// clients rely on it.
func (a *api) nodeProperties(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	q, err := wire.ReadNodeQuery(body)
	if err != nil {
		return err
	}
	found, err := a.Clusters.NodeProperties(r.Context(), actor, q.Cluster, q.Services)
	if err != nil {
		return err
	}
	out := make(map[loom.NodeID]map[string]any, len(found))
	for id, p := range found {
		if out[id], err = wire.SelectProperties(p, q.Properties); err != nil {
			return err
		}
	}
	return answer(w, r, out)
}

func (a *api) clusterStatuses(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	found, err := a.Clusters.Clusters(r.Context(), actor, clusters.ListInput{Page: loom.Page{Limit: -1}})
	if err != nil {
		return err
	}
	out := make([]wire.ClusterStatus, len(found.Items))
	for i, c := range found.Items {
		out[i] = wire.NewStatusOf(c)
	}
	return answer(w, r, out)
}
