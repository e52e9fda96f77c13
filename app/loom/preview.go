package loom

import "time"

// Preview is a stored plan that was not applied yet. Applying it executes
// exactly what Hash covers, or nothing.
type Preview struct {
	ID      PreviewID
	Kind    ChangeKind
	Owner   Account
	Cluster ClusterID
	// Revision of the cluster it was computed from; 0 for create.
	Revision int
	Hash     string
	Created  time.Time
	Expires  time.Time
	// Applied is the operation that came of it, zero until then and for a sync,
	// which has none.
	Applied OperationRef
	// AppliedAt is the zero time until it is applied.
	AppliedAt time.Time
}
