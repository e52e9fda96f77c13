package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/fleet"
	"loom/app/loom"
)

var incidentFilters = []param{
	{"kind", "string", "Kinds, separated by commas: service, disk, signin, unreachable, stopped, gone or drift."},
	{"decision", "string", "Decisions, separated by commas: asked, held, begun, accepted or declined."},
	{"open", "boolean", "Those that last, or with false those that are over."},
	{"since", "integer", "Milliseconds since 1970; incidents that began from then on."},
}

// incidentRoutes are about what went wrong, and about maintenance.
func (a *api) incidentRoutes() []route {
	const one = "/v2/clusters/{id}"
	return []route{
		{method: get, path: "/v2/incidents", verb: loom.See, summary: "List what went wrong on nodes, the newest first", fresh: true, paged: true, answer: "[]Incident", handle: a.listIncidents,
			query: append([]param{{"cluster", "string", "The id of a cluster."}}, incidentFilters...)},
		{method: get, path: one + "/incidents", verb: loom.See, summary: "List what went wrong on a cluster's nodes, the newest first", fresh: true, paged: true, answer: "[]Incident", handle: a.listClusterIncidents, query: incidentFilters},
		{method: post, path: "/v2/incidents/{id}/accept", verb: loom.Operate, summary: "Repair what an incident calls for", fresh: true, answer: "Started", handle: a.acceptIncident},
		{method: post, path: "/v2/incidents/{id}/decline", verb: loom.Operate, summary: "Decline the repair of an incident; Loom does not ask again", fresh: true, handle: a.declineIncident},
		{method: put, path: one + "/maintenance", verb: loom.Operate, summary: "Announce maintenance of a cluster or of nodes of it", fresh: true, body: "MaintenanceBegin", handle: a.beginMaintenance},
		{method: del, path: one + "/maintenance", verb: loom.Operate, summary: "End maintenance", fresh: true, body: "MaintenanceEnd?", handle: a.endMaintenance},
	}
}

func (a *api) listIncidents(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	var cluster loom.ClusterID
	if text := r.URL.Query().Get("cluster"); text != "" {
		id, ok := loom.ParseClusterID(text)
		if !ok {
			return loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", text)
		}
		cluster = id
	}
	return a.incidents(w, r, actor, cluster)
}

func (a *api) listClusterIncidents(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	return a.incidents(w, r, actor, id)
}

func (a *api) incidents(w http.ResponseWriter, r *http.Request, actor loom.Actor, cluster loom.ClusterID) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	in := fleet.IncidentsInput{Page: page, Cluster: cluster}
	if in.Kinds, err = oneOf(r, "kind", loom.IncidentKinds); err != nil {
		return err
	}
	if in.Decisions, err = oneOf(r, "decision", loom.RepairDecisions); err != nil {
		return err
	}
	if in.Open, err = queryBool(r, "open"); err != nil {
		return err
	}
	if in.Since, err = queryTime(r, "since"); err != nil {
		return err
	}
	list, err := a.Fleet.Incidents(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewIncident, list.Next, list.Prev)
}

func incidentID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, loom.NewError(loom.NotFound, "There is no incident “%.20s”.", r.PathValue("id"))
	}
	return id, nil
}

func (a *api) acceptIncident(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := incidentID(r)
	if err != nil {
		return err
	}
	ref, err := a.Fleet.Accept(r.Context(), actor, id, a.Clusters.BeginRepair)
	if err != nil {
		return err
	}
	return answer(w, r, map[string]string{"operationId": ref.String()})
}

func (a *api) declineIncident(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := incidentID(r)
	if err != nil {
		return err
	}
	if err := a.Fleet.Decline(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

func (a *api) beginMaintenance(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadMaintenance(body)
	if err != nil {
		return err
	}
	if err := a.Fleet.Maintain(r.Context(), actor, id, in); err != nil {
		return err
	}
	return done(w)
}

func (a *api) endMaintenance(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, body, err := clusterBody(w, r)
	if err != nil {
		return err
	}
	nodes, err := wire.ReadNodes(body)
	if err != nil {
		return err
	}
	if err := a.Fleet.EndMaintenance(r.Context(), actor, id, nodes); err != nil {
		return err
	}
	return done(w)
}
