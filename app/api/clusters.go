package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/loom"
)

// clusterID reads the cluster of a path. What is no number names no cluster.
func clusterID(r *http.Request) (loom.ClusterID, error) {
	id, ok := loom.ParseClusterID(r.PathValue("id"))
	if !ok {
		return 0, loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", r.PathValue("id"))
	}
	return id, nil
}

// listClusters keeps the predecessor's rule for statuses: the first parameter
// counts, in any case, unknown words are ignored, and if none remains there is
// no filter.
func (a *api) listClusters(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, false)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	in := clusters.ListInput{Page: page, Template: q.Get("template"), Provider: q.Get("provider"), Owner: q.Get("owner"), Q: q.Get("q"), Uncounted: true}
	for _, word := range words(q.Get("status")) {
		if status := loom.ClusterStatus(strings.ToLower(word)); slices.Contains(loom.ClusterStatuses, status) {
			in.Statuses = append(in.Statuses, status)
		}
	}
	for _, word := range words(q.Get("health")) {
		in.Health = append(in.Health, loom.HealthStatus(strings.ToLower(word)))
	}
	if err := clusterFilters(r, &in); err != nil {
		return err
	}
	if shared, err := queryBool(r, "shared"); err != nil {
		return err
	} else if shared != nil {
		in.Shared = *shared
	}
	found, err := a.Clusters.Clusters(r.Context(), actor, in)
	if err != nil {
		return err
	}
	linkPages(w, r, found.Next, found.Prev)
	out := make([]wire.ClusterSummary, len(found.Items))
	for i, c := range found.Items {
		out[i] = wire.NewClusterSummary(c)
	}
	return answer(w, r, out)
}

// clusterBody reads the cluster of the path and the body of a request about it.
func clusterBody(w http.ResponseWriter, r *http.Request) (loom.ClusterID, []byte, error) {
	id, err := clusterID(r)
	if err != nil {
		return 0, nil, err
	}
	body, err := readBody(w, r)
	return id, body, err
}

func (a *api) createCluster(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadCreate(body)
	if err != nil {
		return err
	}
	ref, err := a.Clusters.Create(r.Context(), actor, in)
	if err != nil {
		return err
	}
	tellOperation(w, ref)
	return answer(w, r, map[string]string{"id": ref.Cluster.String()})
}

func (a *api) showCluster(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.cluster(r, actor)
	if err != nil {
		return err
	}
	shown := wire.NewCluster(v)
	if err := holdNodes(r, shown.Nodes); err != nil {
		return err
	}
	return answer(w, r, shown)
}

func (a *api) cluster(r *http.Request, actor loom.Actor) (clusters.ClusterView, error) {
	id, err := clusterID(r)
	if err != nil {
		return clusters.ClusterView{}, err
	}
	return a.Clusters.Cluster(r.Context(), actor, id)
}

func (a *api) deleteCluster(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadDelete(body)
	if err != nil {
		return err
	}
	ref, err := a.Clusters.Delete(r.Context(), actor, id, in)
	if err != nil {
		return err
	}
	tellOperation(w, ref)
	return done(w)
}

func (a *api) changeExpiry(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	expires, err := wire.ReadExpiry(body)
	if err != nil {
		return err
	}
	if _, err := a.Clusters.ChangeExpiry(r.Context(), actor, id, expires); err != nil {
		return err
	}
	return done(w)
}

func (a *api) editCluster(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadEdit(body)
	if err != nil {
		return err
	}
	if _, err := a.Clusters.Edit(r.Context(), actor, id, in); err != nil {
		return err
	}
	return a.showCluster(w, r, actor)
}

func (a *api) clusterStatus(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.cluster(r, actor)
	if err != nil {
		return err
	}
	if v.Latest == nil {
		return loom.NewError(loom.NotFound, "Cluster %s has no operation yet.", v.ID)
	}
	return answer(w, r, wire.NewClusterStatus(v, *v.Latest))
}

// clusterHealth is what checks last saw.
func (a *api) clusterHealth(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	health, err := a.Fleet.Health(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewClusterHealth(health))
}

// nodeLoad is the load of a machine over the last day.
func (a *api) nodeLoad(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	load, err := a.Fleet.Load(r.Context(), actor, id, loom.NodeID(strings.ToLower(r.PathValue("nodeId"))))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewNodeLoad(load))
}

// checkCluster asks for checks; their results come with clusterHealth.
func (a *api) checkCluster(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	nodes, err := wire.ReadNodes(body)
	if err != nil {
		return err
	}
	n, err := a.Fleet.Check(r.Context(), actor, id, nodes)
	if err != nil {
		return err
	}
	return answer(w, r, wire.Checking{Nodes: n})
}

func (a *api) clusterConfig(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.cluster(r, actor)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewCluster(v).Config)
}

func (a *api) clusterServices(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.cluster(r, actor)
	if err != nil {
		return err
	}
	return answer(w, r, wire.ServiceNames(v.Cluster))
}

func (a *api) clusterActions(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	allowed, err := a.Clusters.Actions(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.Actions(allowed))
}

// downloadKey gives the key of a cluster as a file; who asked is in the audit.
func (a *api) downloadKey(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	key, err := a.Clusters.Key(r.Context(), actor, id)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", clusters.KeyFile(id)))
	return answerBytes(w, r, []byte(key.Reveal()), mediaKey, "")
}

// reveal shows a machine's own sign-in; who asked is in the audit.
func (a *api) reveal(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	found, err := a.Clusters.Reveal(r.Context(), actor, id, loom.NodeID(r.PathValue("nodeId")))
	if err != nil {
		return err
	}
	return answer(w, r, wire.Revealed{User: found.User, Password: found.Password.Reveal(), PrivateKey: found.PrivateKey.Reveal()})
}
