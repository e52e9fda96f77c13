package loom

import "time"

// HookID identifies a hook for ever.
type HookID int64

// DeliveryID identifies one notice to one hook.
type DeliveryID int64

// HookEvent is what a hook is told of.
type HookEvent string

// The events. An operation has HookStart before its first task, then HookSuccess or
// HookFailure when it has ended. A cluster has HookHealth when its health is another one.
const (
	HookStart   HookEvent = "start"
	HookSuccess HookEvent = "success"
	HookFailure HookEvent = "failure"
	HookHealth  HookEvent = "health"
)

// HookEvents lists every event.
var HookEvents = []HookEvent{HookStart, HookSuccess, HookFailure, HookHealth}

// OperationEvents are those of operations; a hook that names no event hears of these.
var OperationEvents = HookEvents[:3:3]

// What an operation does when a blocking hook gives no answer in time.
const (
	OnTimeoutGo     = "go"
	OnTimeoutRefuse = "refuse"
)

// HookActions lists the cluster actions that a hook can be limited to. The first
// is the predecessor's, which no operation has.
var HookActions = append([]ClusterAction{"solve_layout"}, ClusterActions...)

// Hook is an HTTP notice about operations of its tenant, or of all tenants when
// it is global.
type Hook struct {
	ID     HookID
	Tenant TenantID
	Name   string
	URL    string
	Events []HookEvent
	// Actions and Templates limit the operations; empty means all.
	Actions   []ClusterAction
	Templates []string
	// Blocking hooks are asked before an operation starts; OnTimeout is what
	// happens when they do not answer.
	Blocking   bool
	OnTimeout  string
	Global     bool
	LegacyBody bool
	Enabled    bool
	Created    time.Time
}

// DeliveryStatus is how far a delivery is.
type DeliveryStatus string

// The statuses of deliveries.
const (
	DeliveryWaiting   DeliveryStatus = "waiting"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryRefused   DeliveryStatus = "refused"
	DeliveryFailed    DeliveryStatus = "failed"
)

// DeliveryStatuses lists every status of a delivery.
var DeliveryStatuses = []DeliveryStatus{DeliveryWaiting, DeliveryDelivered, DeliveryRefused, DeliveryFailed}

// Delivery is one notice to one hook, with what became of it.
type Delivery struct {
	ID   DeliveryID
	Hook HookID
	// Event happened at Time; Created is later where it was sent again by hand.
	Event   HookEvent
	Time    time.Time
	Created time.Time
	// Operation has the number 0 where the event is about a cluster alone.
	Operation OperationRef
	Status    DeliveryStatus
	// Tries counts what was sent; Code, Took and Error are of the last one, Code 0
	// when there was no answer.
	Tries int
	Code  int
	Took  time.Duration
	Error string
	// Next is the time of the next try, the zero time when there is none.
	Next time.Time
}

// Notice holds the facts of an event at its moment; bodies are made from it. Its
// stored form is its JSON, so its fields keep their names.
type Notice struct {
	TenantName string
	Cluster    ClusterSummary
	Operation  Operation
	// Health is set in place of the operation for HookHealth.
	Health *HealthNotice `json:",omitempty"`
	// Legacy is set for hooks that want the predecessor's body.
	Legacy *LegacyNotice `json:",omitempty"`
}

// HealthNotice is how the health of a cluster changed, with the incidents that last there, at
// most MaxNoticeIncidents.
type HealthNotice struct {
	From, To  HealthStatus
	Incidents []Incident
}

// MaxNoticeIncidents is how many incidents a notice about health names.
const MaxNoticeIncidents = 100

// LegacyNotice is what only the predecessor's body has. The cluster's services
// have names only; secrets are masked.
type LegacyNotice struct {
	Cluster Cluster
	Nodes   []Node
	// Omitted counts the nodes that were left out because there are too many.
	Omitted int
}

// DeliveryOutcome is what came of a try of a delivery.
type DeliveryOutcome struct {
	// Status is DeliveryWaiting when it is to be tried again, after After.
	Status DeliveryStatus
	After  time.Duration
	// Sent says that something was tried; a delivery that became pointless ends
	// without.
	Sent  bool
	Code  int
	Took  time.Duration
	Error string
	// Refusal says, in a sentence, why an operation that waits for this delivery
	// must not start; "" when it may.
	Refusal string
}
