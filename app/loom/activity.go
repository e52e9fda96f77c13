package loom

import "time"

// Activity is something that happened and that may concern people: an operation, a lease
// that changed, a key that was downloaded, a change of the catalog.
type Activity struct {
	// ID is unique.
	ID         int64
	Time       time.Time
	Tenant     TenantID
	TenantName string
	Actor      UserID
	// Verb, Kind, Object and Result are words of the audit log.
	Verb, Kind, Object, Result string
	// Cluster is 0 where it is about none; ClusterName is its present name.
	Cluster     ClusterID
	ClusterName string
	// Action is the requested action of an operation, "" for any other request.
	Action ClusterAction
	// Operation is the one that it is about, the zero value for none.
	Operation OperationRef
	// Began is the operation that began, as it is now; nil where none did. Tasks are counted
	// unless it is complete.
	Began *Operation
	// NodesBefore and NodesAfter count the nodes of the cluster around an operation that
	// changes them; both are 0 for others.
	NodesBefore, NodesAfter int
	// LeaseBefore and LeaseAfter are milliseconds since 1970 in decimal, "0" for no expiry;
	// both are "" where the change was not about the cluster itself.
	LeaseBefore, LeaseAfter string
	// OwnerBefore and OwnerAfter are those of the cluster, "" as LeaseBefore and LeaseAfter.
	OwnerBefore, OwnerAfter UserID
}

// HandedOver reports whether the cluster got another owner.
func (a Activity) HandedOver() bool { return a.OwnerBefore != "" && a.OwnerAfter != a.OwnerBefore }

// LeaseMoved reports whether the end of a lease changed.
func (a Activity) LeaseMoved() bool { return a.LeaseAfter != "" && a.LeaseAfter != a.LeaseBefore }

// The results that lists of activity can be limited to.
const (
	ActivityRunning = "running" // operations that have not ended
	ActivityDone    = "ok"
	ActivityRefused = "refused"
	ActivityFailed  = "failed"
)
