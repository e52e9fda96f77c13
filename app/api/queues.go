package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
)

// queueRoutes are what superadmins read of the queue and over all tenants.
func (a *api) queueRoutes() []route {
	const queue, job = "/v2/queues/{queue}", "/v2/riverjobs"
	return []route{
		{method: get, path: "/v2/queues", verb: loom.Install, summary: "List the queues of River jobs; for superadmins", fresh: true, paged: true, answer: "[]QueueState", handle: a.listQueues},
		{method: post, path: queue + "/pause", verb: loom.Install, summary: "Pause a queue: running work continues, nothing new starts; for superadmins", fresh: true, answer: "QueueState", handle: a.holdQueue(true)},
		{method: post, path: queue + "/resume", verb: loom.Install, summary: "Resume a paused queue; for superadmins", fresh: true, answer: "QueueState", handle: a.holdQueue(false)},
		{method: get, path: job, verb: loom.Install, summary: "List River jobs, the newest first; for superadmins", fresh: true, paged: true, answer: "[]RiverJob", handle: a.listRiverJobs, query: []param{
			{"state", "string", "available, running, retryable, scheduled, pending, discarded, cancelled or completed; all but completed ones when left out."},
			{"queue", "string", "control, hook, probe, sweep or journal."},
			{"kind", "string", "Kind of work."},
			{"tenant", "string", "Name of the tenant whose tasks are meant."},
			{"id", "integer", "Number of the River job."},
		}},
		{method: get, path: job + "/{id}", verb: loom.Install, summary: "Read a River job; for superadmins", fresh: true, answer: "RiverJob", handle: a.showRiverJob},
		{method: get, path: "/v2/system/clusters", verb: loom.Install, summary: "List the clusters of all tenants, the newest first; for superadmins", fresh: true, paged: true,
			answer: "[]TenantCluster", handle: a.listTenantClusters, query: []param{
				{"tenant", "string", "Name of a tenant."},
				{"owner", "string", "Id of the owner."},
				{"status", "string", "Status; all but terminated ones when left out."},
				{"q", "string", "Words in name, description, template or id."},
			}},
		{method: get, path: "/v2/tenants/{name}/nodes", verb: loom.Install, summary: "List the nodes of a tenant that have a machine; for superadmins", fresh: true, paged: true,
			answer: "[]TenantNode", handle: a.listTenantNodes},
	}
}

func (a *api) listQueues(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	all, err := a.Processes.ListQueues(r.Context(), actor)
	if err != nil {
		return err
	}
	name := func(q processes.Queue) string { return q.Name }
	return answerList(w, r, true, all, wire.NewQueueState, order[processes.Queue]{"queue", name}, order[processes.Queue]{"-queue", name})
}

// holdQueue pauses or resumes.
func (a *api) holdQueue(pause bool) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name, act := r.PathValue("queue"), a.Processes.ResumeQueue
		if pause {
			act = a.Processes.PauseQueue
		}
		if err := act(r.Context(), actor, name); err != nil {
			return err
		}
		q, err := a.Processes.FindQueue(r.Context(), actor, name)
		if err != nil {
			return err
		}
		return answer(w, r, wire.NewQueueState(q))
	}
}

func (a *api) listRiverJobs(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	in := processes.RiverJobInput{Page: page, State: q.Get("state"), Queue: q.Get("queue"), Kind: q.Get("kind"), Tenant: q.Get("tenant")}
	if text := q.Get("id"); text != "" {
		if in.ID, err = strconv.ParseInt(text, 10, 64); err != nil || in.ID <= 0 {
			return loom.InvalidFields([]loom.FieldError{{Field: "id", Message: "This is the number of a River job."}})
		}
	}
	found, err := a.Processes.RiverJobs(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerPage(w, r, found.Items, wire.NewRiverJob, found.Next, found.Prev)
}

func (a *api) showRiverJob(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return loom.NewError(loom.NotFound, "There is no River job “%.40s”.", r.PathValue("id"))
	}
	j, err := a.Processes.RiverJob(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewRiverJob(j))
}

func (a *api) listTenantClusters(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	in := clusters.OfTenants{Page: page, ClusterOfTenantFilter: clusters.OfTenantsFilter{
		Tenant: q.Get("tenant"), Owner: q.Get("owner"), Words: q.Get("q"), Status: loom.ClusterStatus(q.Get("status"))}}
	found, err := a.Clusters.ClustersOfTenants(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerPage(w, r, found.Items, wire.NewTenantCluster, found.Next, found.Prev)
}

func (a *api) listTenantNodes(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	tenant, err := a.Accounts.Tenant(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	found, err := a.Processes.LiveNodesOf(r.Context(), actor, tenant.ID, page)
	if err != nil {
		return err
	}
	return answerPage(w, r, found.Items, wire.NewTenantNode, found.Next, found.Prev)
}
