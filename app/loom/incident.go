package loom

import (
	"slices"
	"time"
)

// IncidentKind is what went wrong.
type IncidentKind string

// The kinds of incidents. IncidentSignIn is a machine that answers and refuses Loom,
// IncidentDrift one that is not as Loom left it, or whose files are not.
const (
	IncidentService     IncidentKind = "service"
	IncidentDisk        IncidentKind = "disk"
	IncidentSignIn      IncidentKind = "signin"
	IncidentUnreachable IncidentKind = "unreachable"
	IncidentStopped     IncidentKind = "stopped"
	IncidentGone        IncidentKind = "gone"
	IncidentDrift       IncidentKind = "drift"
)

// IncidentKinds are all of them.
var IncidentKinds = []IncidentKind{IncidentService, IncidentDisk, IncidentSignIn, IncidentUnreachable, IncidentStopped, IncidentGone, IncidentDrift}

// OfMachine reports whether the machine itself is not there to be asked. An incident of this
// family changes its kind as more becomes known.
func (k IncidentKind) OfMachine() bool {
	return k == IncidentUnreachable || k == IncidentStopped || k == IncidentGone
}

// Trouble is something that is wrong on a node now.
type Trouble struct {
	Kind    IncidentKind
	Service string
	Message string
}

// Incident is a trouble from turning bad until well again.
type Incident struct {
	ID      int64
	Cluster ClusterID
	// ClusterName is empty while it was not read.
	ClusterName string
	Node        NodeID
	Hostname    string
	Trouble
	Since time.Time
	// Ended is zero while it lasts.
	Ended time.Time
	// Decision is what becomes of it, Reason why a repair is held, DecidedBy who accepted or
	// declined.
	Decision  RepairDecision
	Reason    string
	DecidedBy UserID
	DecidedAt time.Time
	// Operation is the number of the repair, 0 for none.
	Operation int
}

// Asks reports whether somebody should say if Loom repairs it.
func (i *Incident) Asks() bool {
	return i.Ended.IsZero() && (i.Decision == RepairAsked || i.Decision == RepairHeld)
}

// MaxMaintenance is the longest time for which maintenance may be announced.
const MaxMaintenance = 30 * 24 * time.Hour

// Maintenance is work that somebody announced on a cluster or on one of its nodes: checks go
// on, and nothing that goes wrong there is an incident until it is over.
type Maintenance struct {
	// Node is empty for all nodes of the cluster.
	Node   NodeID
	Until  time.Time
	Reason string
	By     UserID
}

// Troubles returns what is wrong on a node. known is false where nothing can be said now: of
// a node that is changing, or that nobody looked at for too long.
func (h *NodeHealth) Troubles() (troubles []Trouble, known bool) {
	switch h.Status {
	case HealthUnknown, HealthChanging:
		return nil, false
	case HealthOff:
		return nil, true
	case HealthUnreachable:
		troubles = []Trouble{{Kind: IncidentUnreachable, Message: h.Message}}
	case HealthStopped:
		troubles = []Trouble{{Kind: IncidentStopped, Message: h.Message}}
	case HealthGone:
		troubles = []Trouble{{Kind: IncidentGone, Message: h.Message}}
	case HealthFailing:
		troubles = h.failures()
	}
	return append(troubles, driftTroubles(h.Drift)...), true
}

// failures are what is wrong on a node that is failing.
func (h *NodeHealth) failures() (troubles []Trouble) {
	if h.Refused != "" { // what its services do is not known
		return []Trouble{{Kind: IncidentSignIn, Message: h.Refused}}
	}
	for _, name := range sortedServices(h.Services) {
		if s := h.Services[name]; s.Status == HealthFailing {
			troubles = append(troubles, Trouble{Kind: IncidentService, Service: name, Message: s.Message})
		}
	}
	if h.Disk >= DiskFull {
		troubles = append(troubles, Trouble{Kind: IncidentDisk, Message: diskFull(h.Disk)})
	}
	return troubles
}

// Same reports whether an incident is about a trouble.
func (i *Incident) Same(t Trouble) bool {
	return i.Service == t.Service && (i.Kind == t.Kind || i.Kind.OfMachine() && t.Kind.OfMachine())
}

// SettleIncidents says what becomes of the open incidents of a node by what is wrong there now: which
// are still going on, with the kind and message of now, which end, and which begin.
func SettleIncidents(open []Incident, troubles []Trouble) (goingOn, ended []Incident, begun []Trouble) {
	for _, i := range open {
		at := slices.IndexFunc(troubles, i.Same)
		if at < 0 {
			ended = append(ended, i)
			continue
		}
		i.Trouble = troubles[at]
		goingOn = append(goingOn, i)
	}
	for _, t := range troubles {
		if !slices.ContainsFunc(goingOn, func(i Incident) bool { return i.Same(t) }) {
			begun = append(begun, t)
		}
	}
	return goingOn, ended, begun
}
