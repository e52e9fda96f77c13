package wire

import (
	"encoding/json"
	"strconv"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/processes"
)

// QueueState is a queue of River jobs, as superadmins see it. Counts are by state; Oldest
// is absent while nothing waits, Paused while the queue is worked.
type QueueState struct {
	Queue    string         `json:"queue"`
	Tenant   string         `json:"tenant,omitempty" description:"Name of the tenant whose tasks are on it."`
	Counts   map[string]int `json:"counts" description:"River jobs that are not done, by state."`
	Oldest   *int64         `json:"oldestTime,omitempty" description:"Since when the River job is due that waits longest."`
	Paused   *int64         `json:"pausedTime,omitempty" description:"Since when nothing new begins."`
	PausedBy loom.UserID    `json:"pausedBy,omitempty"`
}

// NewQueueState gives the wire form.
func NewQueueState(q processes.Queue) QueueState {
	w := QueueState{Queue: q.Name, Tenant: q.Tenant, Counts: object(q.Counts), PausedBy: q.Paused.By}
	if !q.Oldest.IsZero() {
		at := Millis(q.Oldest)
		w.Oldest = &at
	}
	if q.IsPaused() {
		at := Millis(q.Paused.At)
		w.Paused = &at
	}
	return w
}

// RiverJob is a row of the queue. Task is the id of the task that it delivers.
type RiverJob struct {
	ID          string          `json:"id"`
	Queue       string          `json:"queue"`
	Kind        string          `json:"kind"`
	State       string          `json:"state"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"maxAttempts"`
	Args        json.RawMessage `json:"args" description:"Ids of what it is about." schema:"{\"type\":\"object\"}"`
	Created     int64           `json:"createTime"`
	Due         int64           `json:"dueTime"`
	Attempted   *int64          `json:"attemptTime,omitempty"`
	Ended       *int64          `json:"endTime,omitempty"`
	Error       string          `json:"error,omitempty" description:"That of the newest attempt."`
}

// NewRiverJob gives the wire form, without traces.
func NewRiverJob(j processes.RiverJob) RiverJob {
	w := RiverJob{ID: strconv.FormatInt(j.ID, 10), Queue: j.Queue, Kind: j.Kind, State: j.State, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts,
		Args: json.RawMessage(j.Args), Created: Millis(j.Created), Due: Millis(j.Due), Error: j.Error}
	if !j.Attempted.IsZero() {
		at := Millis(j.Attempted)
		w.Attempted = &at
	}
	if !j.Ended.IsZero() {
		at := Millis(j.Ended)
		w.Ended = &at
	}
	return w
}

// TenantCluster is a cluster in the list of all tenants: by name and number only.
type TenantCluster struct {
	ID       string             `json:"id"`
	Name     string             `json:"name"`
	Status   loom.ClusterStatus `json:"status"`
	Tenant   string             `json:"tenant" description:"Name of the tenant."`
	Owner    loom.UserID        `json:"ownerId"`
	Template string             `json:"template"`
	Nodes    int                `json:"numNodes"`
	Created  int64              `json:"createTime"`
	Expires  int64              `json:"expireTime" description:"0: the lease has no end."`
}

// NewTenantCluster gives the wire form.
func NewTenantCluster(c clusters.ClusterOfTenant) TenantCluster {
	return TenantCluster{ID: c.ID.String(), Name: c.Name, Status: c.Status, Tenant: c.Tenant, Owner: c.Owner, Template: c.Template, Nodes: c.Nodes,
		Created: Millis(c.Created), Expires: Millis(c.Expires)}
}

// TenantNode is a node of a tenant that has a machine: what is left when the tenant goes.
type TenantNode struct {
	ID          string      `json:"id"`
	Hostname    string      `json:"hostname"`
	State       string      `json:"state"`
	Cluster     string      `json:"clusterId"`
	ClusterName string      `json:"clusterName"`
	Owner       loom.UserID `json:"ownerId"`
	Provider    string      `json:"provider"`
	Machine     string      `json:"machineId,omitempty" description:"The provider's own id of the machine."`
	Created     int64       `json:"createTime"`
}

// NewTenantNode gives the wire form.
func NewTenantNode(n processes.NodeOfTenant) TenantNode {
	return TenantNode{ID: string(n.Node), Hostname: n.Hostname, State: string(n.State), Cluster: n.Cluster.String(), ClusterName: n.ClusterName, Owner: n.Owner,
		Provider: n.Provider, Machine: n.Machine, Created: Millis(n.Created)}
}
