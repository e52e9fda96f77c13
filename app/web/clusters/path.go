package clusters

import (
	"net/http"

	"loom/app/loom"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// pathCluster reads the cluster of a path. What is no id is no cluster.
func pathCluster(r *http.Request) (loom.ClusterID, error) {
	id, ok := loom.ParseClusterID(r.PathValue("cluster"))
	if !ok {
		return 0, loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", r.PathValue("cluster"))
	}
	return id, nil
}

func pathOperation(r *http.Request) (loom.OperationRef, error) {
	id, err := pathCluster(r)
	if err != nil {
		return loom.OperationRef{}, err
	}
	n, err := loom.ParseNumber(r.PathValue("n"))
	if err != nil || n <= 0 {
		return loom.OperationRef{}, loom.NewError(loom.NotFound, "Cluster %s has no operation “%.20s”.", id, r.PathValue("n"))
	}
	return loom.OperationRef{Cluster: id, Number: n}, nil
}

// pathOperation reads the operation that the address names.
func (s *Server) pathOperation(r *http.Request, actor loom.Actor) (loom.Operation, error) {
	ref, err := pathOperation(r)
	if err != nil {
		return loom.Operation{}, err
	}
	return s.Clusters.Operation(r.Context(), actor, ref)
}

func pathTask(r *http.Request) (loom.TaskRef, error) {
	ref, err := pathOperation(r)
	if err != nil {
		return loom.TaskRef{}, err
	}
	n, err := loom.ParseNumber(r.PathValue("task"))
	if err != nil || n <= 0 {
		return loom.TaskRef{}, loom.NewError(loom.NotFound, "Operation %s has no task “%.20s”.", ref, r.PathValue("task"))
	}
	return loom.TaskRef{Operation: ref, Number: n}, nil
}

// clusterPage begins the frame of a page in the area of clusters; crumbs follow
// the list of clusters, the last has no link.
func clusterPage(title, section string, crumbs ...ui.Crumb) layout.Model {
	return layout.Model{
		Title: title, Section: section, Area: layout.AreaClusters, Here: route.Clusters(),
		Crumbs: append([]ui.Crumb{{Label: "Clusters", Href: route.Clusters()}}, crumbs...),
	}
}
