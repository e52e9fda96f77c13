package loom

import "time"

// Leftover is a machine that the delete of a cluster could not delete, or may not
// have. Loom tries again until it is gone or an administrator gives it up.
type Leftover struct {
	ID         int64
	Tenant     TenantID
	Cluster    ClusterID
	Node       NodeID
	NodeNumber int
	Hostname   string
	// Incarnation is that of the node when the machine was its own.
	Incarnation int
	// Provider is the name of the cluster's provider.
	Provider string
	// Machine is what the provider calls it, "" where that never became known.
	Machine string
	// Error is why the last try failed, Tries how many there were.
	Error string
	Tries int
	// First is when the machine was found to be left over, Last the last try.
	First, Last time.Time
}
