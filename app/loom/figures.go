package loom

import "time"

// Figures are what an installation looks like from its database at one moment,
// for metrics. A part that could not be read is nil.
type Figures struct {
	// Queues are the tenants for whose tasks no worker was free yet, the longest
	// queue first.
	Queues []QueueLength
	// Clusters counts those that are not terminated, by status; LeasesEnding those
	// whose lease ends within a day.
	Clusters     map[ClusterStatus]int
	LeasesEnding *int
	// Processes are the live processes by kind.
	Processes []ProcessFigure
	Workers   *WorkerFigure
	Database  *DatabaseFigure
	Hooks     *HookFigure
	Health    *HealthFigure
	Rollouts  *RolloutFigure
}

// RolloutFigure counts the rollouts that run or stopped, and the clusters that wait or run in
// them.
type RolloutFigure struct {
	Rollouts map[RolloutStatus]int
	Clusters map[RolloutClusterStatus]int
}

// HealthFigure counts nodes with a machine and live clusters by health, and incidents that
// last by kind.
type HealthFigure struct {
	Nodes, Clusters map[HealthStatus]int
	Incidents       map[IncidentKind]int
}

// HookFigure counts the hooks of all tenants that are called, and the deliveries that are to
// be tried, or tried again.
type HookFigure struct {
	Enabled, Waiting int
}

// QueueLength is how much of a tenant waits for a worker, and for how long the
// oldest of it.
type QueueLength struct {
	// Tenant is the tenant's name.
	Tenant string
	Waits  int
	Oldest time.Duration
}

// ProcessFigure sums up the processes of a kind.
type ProcessFigure struct {
	Kind  string
	Count int
	// LeaseAge is how long ago the one that is longest without renewed its lease.
	LeaseAge time.Duration
	// Started is when the oldest began.
	Started time.Time
}

// WorkerFigure sums up workers over all provisioners and tenants.
type WorkerFigure struct {
	// Capacity of the live provisioners that take work, Wanted by tenants, Assigned
	// to them, Busy with a task.
	Capacity, Wanted, Assigned, Busy int
}

// DatabaseFigure is about the connections to Loom's database.
type DatabaseFigure struct {
	Connections int
	// OldestTransaction is how long the oldest open transaction has been open.
	OldestTransaction time.Duration
}
