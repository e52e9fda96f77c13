package loom

import "time"

// PreviewKind is the word of a request for a preview (rest-api.md 6.4).
type PreviewKind string

// The preview kinds of this version.
const (
	PreviewCreate PreviewKind = "create"
	PreviewDelete PreviewKind = "delete"
)

// Preview is a stored plan that was not applied yet. Applying it executes
// exactly what Hash covers, or nothing.
type Preview struct {
	ID      PreviewID
	Kind    PreviewKind
	Owner   Account
	Cluster ClusterID
	// Revision of the cluster it was computed from; 0 for create.
	Revision int
	Hash     string
	Created  time.Time
	Expires  time.Time
	// Applied is the operation that came of it, zero until then.
	Applied OperationRef
}
