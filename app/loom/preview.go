package loom

import "time"

// PreviewKind is the word of a request for a preview (rest-api.md 6.4).
type PreviewKind string

// The preview kinds of this version.
const (
	PreviewCreate      PreviewKind = "create"
	PreviewConfigure   PreviewKind = "configure"
	PreviewAddServices PreviewKind = "add_services"
	PreviewStart       PreviewKind = "start"
	PreviewStop        PreviewKind = "stop"
	PreviewRestart     PreviewKind = "restart"
	PreviewSync        PreviewKind = "sync"
	PreviewDelete      PreviewKind = "delete"

	PreviewExpand         PreviewKind = "expand"
	PreviewShrink         PreviewKind = "shrink"
	PreviewRemoveServices PreviewKind = "remove_services"
	PreviewUpgrade        PreviewKind = "upgrade"
	PreviewResize         PreviewKind = "resize"
	PreviewRepair         PreviewKind = "repair"
	PreviewRollback       PreviewKind = "rollback"
	PreviewRetry          PreviewKind = "retry"
	PreviewAuthorize      PreviewKind = "authorize"
)

// PreviewKinds lists the preview kinds of this version.
var PreviewKinds = []PreviewKind{
	PreviewCreate, PreviewConfigure, PreviewAddServices, PreviewRemoveServices, PreviewStart, PreviewStop, PreviewRestart,
	PreviewExpand, PreviewShrink, PreviewUpgrade, PreviewResize, PreviewRepair, PreviewRollback, PreviewRetry, PreviewAuthorize, PreviewSync, PreviewDelete,
}

// Verb is what a preview of this kind does to a cluster that is there; the two
// share their words.
func (k PreviewKind) Verb() ClusterVerb { return ClusterVerb(k) }

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
	// Applied is the operation that came of it, zero until then and for a sync,
	// which has none.
	Applied OperationRef
	// AppliedAt is the zero time until it is applied.
	AppliedAt time.Time
}
