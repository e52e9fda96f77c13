package loom

import "time"

// Activity is something that happened and that may concern people: an operation
// asked for or ended, a lease moved, credentials looked at, the catalog changed.
type Activity struct {
	// Key is unique and names the entry in lists.
	Key        string
	Time       time.Time
	Tenant     TenantID
	TenantName string
	Actor      UserID
	Via        string
	// Verb, Kind, Object and Result are words of the audit; an operation that ended
	// has the verb "finish".
	Verb, Kind, Object, Result string
	// Cluster is 0 for what is about none; ClusterName is its present name.
	Cluster     ClusterID
	ClusterName string
	// Operation is that which was asked for or ended, zero for none.
	Operation OperationRef
	Action    ClusterAction
	// Status and Message are those of an operation that ended.
	Status  OperationStatus
	Message string
	// FailedTasks on FailedNodes are those of an operation that failed.
	FailedTasks, FailedNodes int
	// LeaseBefore and LeaseAfter are milliseconds since 1970 in decimal, "0" for no
	// end; both are "" where the change was not about a cluster as such.
	LeaseBefore, LeaseAfter string
}

// LeaseMoved reports whether the end of a lease changed.
func (a Activity) LeaseMoved() bool { return a.LeaseAfter != "" && a.LeaseAfter != a.LeaseBefore }
