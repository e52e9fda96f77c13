package loom

import (
	"slices"
	"time"
)

// HealthStatus is what somebody saw of a service, a node or a cluster. It stands beside the
// states that tasks set, never in their place.
type HealthStatus string

// Of a service: passing, failing, unknown, off (it need not run) and unchecked (nothing says
// how). Of a node: healthy, failing, unreachable, stopped, gone, unknown, and changing while
// an operation works on it. Of a cluster: healthy, degraded, failing, unknown, stopped (none of
// its services is to run), unchecked (nothing checks those that run) and off.
const (
	HealthPassing     HealthStatus = "passing"
	HealthHealthy     HealthStatus = "healthy"
	HealthDegraded    HealthStatus = "degraded"
	HealthFailing     HealthStatus = "failing"
	HealthUnreachable HealthStatus = "unreachable"
	HealthStopped     HealthStatus = "stopped"
	HealthGone        HealthStatus = "gone"
	HealthChanging    HealthStatus = "changing"
	HealthUnknown     HealthStatus = "unknown"
	HealthPartly      HealthStatus = "partly_stopped"
	HealthUnchecked   HealthStatus = "unchecked"
	HealthOff         HealthStatus = "off"
)

// ClusterHealthStatuses are those of clusters, the best first.
var ClusterHealthStatuses = []HealthStatus{HealthHealthy, HealthDegraded, HealthFailing, HealthUnknown, HealthPartly, HealthStopped, HealthUnchecked, HealthOff}

// Bad reports whether the status says that something does not work.
func (s HealthStatus) Bad() bool {
	return s == HealthFailing || s.Silent()
}

// Silent reports whether the status is that of a node whose machine does not answer.
func (s HealthStatus) Silent() bool {
	return s == HealthUnreachable || s == HealthStopped || s == HealthGone
}

// StaleAfter is how many intervals a result counts; later nothing is known.
const StaleAfter = 3

// CheckResult is what one check of a service saw.
type CheckResult struct {
	// At is when it was seen, by the clock of the database.
	At      time.Time `json:"at"`
	Passed  bool      `json:"passed"`
	Message string    `json:"message,omitempty"`
}

// ServiceHealth is what is known of a service on a node.
type ServiceHealth struct {
	Status HealthStatus `json:"status"`
	// Since is when the status became what it is, CheckedAt when somebody looked last.
	Since     time.Time `json:"since,omitzero"`
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// PassedAt is when a check last passed.
	PassedAt time.Time `json:"passedAt,omitzero"`
	// Against counts the latest results in a row that contradict the status.
	Against int `json:"against,omitempty"`
	// Message is that of the last failure while it is failing, or may soon be.
	Message string `json:"message,omitempty"`
}

// After returns what is known after a result. started is when the service last started on the
// node: until the grace has passed since, a failure does not count, and the first result since
// is about another run of it, so that one pass is enough.
//
// A service that is unknown becomes passing with its first passed check, and failing after as
// many failures in a row as one that was passing.
func (h ServiceHealth) After(c ServiceCheck, r CheckResult, started time.Time) ServiceHealth {
	c = c.WithDefaults()
	if !r.At.After(h.CheckedAt) {
		return h // an older result came late
	}
	inRow := !h.CheckedAt.IsZero() && r.At.Sub(h.CheckedAt) <= StaleAfter*time.Duration(c.Interval)*time.Second
	next := ServiceHealth{Status: h.Status, Since: h.Since, CheckedAt: r.At, PassedAt: h.PassedAt, Message: h.Message}
	if r.Passed {
		next.PassedAt = r.At
	}
	if next.Status != HealthPassing && next.Status != HealthFailing {
		next.Status, next.Since = HealthUnknown, cmpTime(h.Since, r.At)
	}
	if !inRow {
		h.Against = 0
	}
	become := func(s HealthStatus) {
		next.Status, next.Since, next.Against = s, r.At, 0
	}
	switch {
	case r.Passed && next.Status == HealthUnknown:
		become(HealthPassing)
		next.Message = ""
	case r.Passed && next.Status == HealthFailing:
		if next.Against = h.Against + 1; next.Against >= c.Passes || h.CheckedAt.Before(started) {
			become(HealthPassing)
			next.Message = ""
		}
	case r.Passed:
		next.Message = ""
	case !started.IsZero() && r.At.Before(started.Add(time.Duration(c.Grace)*time.Second)):
		next.Against, next.Message = 0, r.Message
	case next.Status == HealthFailing:
		next.Message = r.Message
	default:
		next.Message = r.Message
		if next.Against = h.Against + 1; next.Against >= c.Failures {
			become(HealthFailing)
		}
	}
	return next
}

func cmpTime(t, otherwise time.Time) time.Time {
	if t.IsZero() {
		return otherwise
	}
	return t
}

// DiskFull is the share of / in percent from which a node counts as failing.
const DiskFull = 90

// NodeSeen is what a node's status follows from.
type NodeSeen struct {
	// Changing says that an unfinished task of a running operation is about the node.
	Changing bool
	// Off says that nothing is checked there: checks are off, or the node is not ready.
	Off bool
	// SeenAt is when the node was reached or found unreachable, Interval the time between
	// two looks that really holds.
	SeenAt   time.Time
	Interval time.Duration
	// Unreachable says that three connections in a row failed, since DownSince; Listed is
	// what the provider says of the machine.
	Unreachable bool
	DownSince   time.Time
	Listed      Listed
	// Refused is the sentence of a changed host key or a refused sign-in, "" if none.
	Refused string
	// Doubted says that the process that looked suspects too many nodes to be believed.
	Doubted bool
	// Disk is the share of / in use, in percent; negative: unknown.
	Disk     int
	Services map[string]ServiceHealth
}

// JudgeNode returns the status of a node at a time, and the sentence that explains a bad one.
func JudgeNode(n NodeSeen, now time.Time) (status HealthStatus, message string) {
	switch {
	case n.Off:
		return HealthOff, ""
	case n.Changing:
		return HealthChanging, ""
	case n.SeenAt.IsZero() || now.Sub(n.SeenAt) > StaleAfter*n.Interval:
		return HealthUnknown, ""
	case n.Unreachable && n.Doubted:
		return HealthUnknown, ""
	case n.Unreachable:
		return n.Listed.judge(n.DownSince)
	case n.Refused != "":
		return HealthFailing, n.Refused
	}
	for _, name := range sortedServices(n.Services) {
		if s := n.Services[name]; s.Status == HealthFailing {
			return HealthFailing, name + " failing: " + s.Message
		}
	}
	if n.Disk >= DiskFull {
		return HealthFailing, diskFull(n.Disk)
	}
	return HealthHealthy, ""
}

func diskFull(percent int) string { return "The disk is " + itoa(percent) + " % full." }

// MissingFor is how far two lists that lack a machine are apart before it is gone.
const MissingFor = time.Minute

// Listed is what the provider of a node says of its machine.
type Listed struct {
	// State is empty where it was not listed yet; StateMissing where a complete list lacks it.
	State MachineState
	// At is when that list began, MissingSince when the first one in a row did that lacks it.
	At, MissingSince time.Time
}

// judge returns the status of a machine that has not answered since a time, and why. Only a
// list from after that time counts.
func (l Listed) judge(down time.Time) (HealthStatus, string) {
	switch {
	case l.State == "" || !l.At.After(down):
		return HealthUnreachable, "The machine does not answer."
	case l.State == StateRunning:
		return HealthUnreachable, "The machine does not answer, and its provider says that it runs."
	case l.State == StateStopped:
		return HealthStopped, "Its provider says that the machine is stopped."
	case l.State == StateMissing && l.At.Sub(l.MissingSince) >= MissingFor:
		return HealthGone, "Its provider no longer has the machine."
	case l.State == StateMissing:
		return HealthUnreachable, "The machine does not answer, and its provider does not list it; Loom asks once more."
	}
	return HealthUnreachable, "The machine does not answer."
}

// MachineExpected is a node whose machine a provider should list.
type MachineExpected struct {
	Node    NodeID
	Machine string
	Key     string
}

// JudgeList finds the machines that a complete list of a provider should hold, by node, with
// StateMissing for one that it lacks, and reports whether that is to be believed: a list that
// calls more than a fifth of them stopped or leaves them out, and more than one, is more
// likely wrong.
func JudgeList(expected []MachineExpected, listed []TaggedMachine) (found map[NodeID]TaggedMachine, believed bool) {
	byID, byKey := map[string]TaggedMachine{}, map[string]TaggedMachine{}
	for _, m := range listed {
		if m.State == "" {
			m.State = StateOther
		}
		byID[m.ID] = m
		if m.Key != "" {
			byKey[m.Key] = m
		}
	}
	found = make(map[NodeID]TaggedMachine, len(expected))
	down := 0
	for _, e := range expected {
		m, there := byID[e.Machine]
		if !there {
			m, there = byKey[e.Key]
		}
		if !there {
			m.State = StateMissing
		}
		if m.State == StateMissing || m.State == StateStopped {
			down++
		}
		found[e.Node] = m
	}
	return found, down <= max(1, len(expected)/5)
}

func sortedServices(services map[string]ServiceHealth) []string {
	names := make([]string, 0, len(services))
	for name := range services {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// NodeHealth is what is known of a node.
type NodeHealth struct {
	Node    NodeID
	Cluster ClusterID
	Status  HealthStatus
	Since   time.Time
	// SeenAt is when the node was reached or found unreachable, CheckedAt when its services
	// were checked, ChangedAt when an operation last ended its work on it.
	SeenAt, CheckedAt, ChangedAt time.Time
	// Interval is the time between two checks that really holds.
	Interval time.Duration
	Message  string
	// Refused is the sentence of a changed host key or a refused sign-in, "" if none. It is
	// not stored.
	Refused string
	// DownSince is when the machine stopped answering, zero while it answers; Listed is what
	// its provider says of it.
	DownSince time.Time
	Listed    Listed
	Load
	Services map[string]ServiceHealth
	// BootID is that of the machine when it was last looked at, "" if that was before an
	// operation; Machine is what its provider listed.
	BootID  string
	Machine ListedMachine
	// Drift is what is not as Loom left it.
	Drift []Drift
}

// AsOf returns when somebody last saw what the status says, the zero time if nobody did: a
// healthy node is as old as the pass of a service that is longest ago.
func (n *NodeHealth) AsOf() time.Time {
	at := n.CheckedAt
	if n.Status != HealthHealthy {
		return at
	}
	for _, s := range n.Services {
		if s.Status == HealthPassing && s.PassedAt.Before(at) {
			at = s.PassedAt
		}
	}
	return at
}

// ClusterHealth is what is known of a cluster and its nodes. CheckedAt is when somebody last
// saw what the status says. The zero status: nothing is known yet.
type ClusterHealth struct {
	Status    HealthStatus
	Since     time.Time
	CheckedAt time.Time
	Nodes     []NodeHealth
	// Maintenance is under way.
	Maintenance []Maintenance
	// Repair is the policy in force, with each choice made.
	Repair RepairPolicy
}

// Has reports whether anything is known of a node.
func (h *ClusterHealth) Has(node NodeID) bool {
	return slices.ContainsFunc(h.Nodes, func(n NodeHealth) bool { return n.Node == node })
}

// Maintained returns the maintenance that was announced for a node, nil for none.
func (h *ClusterHealth) Maintained(node NodeID) *Maintenance {
	for i, m := range h.Maintenance {
		if m.Node == "" || m.Node == node {
			return &h.Maintenance[i]
		}
	}
	return nil
}

// HealthAsOf returns when somebody last saw what the status of a cluster says, the zero time if
// nobody did: a bad one is as old as the latest look at a node that is bad, any other as the
// oldest of all.
func HealthAsOf(status HealthStatus, nodes []NodeHealth) time.Time {
	var latest, oldest time.Time
	for i := range nodes {
		at := nodes[i].AsOf()
		if i == 0 || at.Before(oldest) {
			oldest = at
		}
		if (nodes[i].Status.Bad() || len(nodes[i].Drift) > 0) && at.After(latest) {
			latest = at
		}
	}
	if (status == HealthFailing || status == HealthDegraded) && !latest.IsZero() {
		return latest
	}
	return oldest
}

// JudgeCluster returns the status of a cluster: failing when a checked service passes nowhere
// or no node is reached, else degraded when a node is bad or drifted, else unknown when one
// is, else stopped when no service is to run, partly stopped when one is nowhere to run,
// unchecked when nothing checks those that run, and else healthy. Nodes that are off count for nothing; of those that are changing only the
// services that pass.
func JudgeCluster(nodes []NodeHealth) HealthStatus {
	seen, reached, off, bad, unknown := 0, 0, 0, false, false
	passing, stopped, unchecked := false, false, false
	passes, fails, runs, stops := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		switch n.Status {
		case HealthOff:
			off++
			continue
		case HealthChanging:
			for name, s := range n.Services { // a service that passes there passes somewhere
				passes[name] = passes[name] || s.Status == HealthPassing || s.Status == HealthUnknown
			}
			continue
		case HealthUnknown:
			unknown = true
		}
		seen++
		down := n.Status.Silent()
		if !down {
			reached++
		}
		bad = bad || n.Status.Bad() || len(n.Drift) > 0
		for name, s := range n.Services {
			switch {
			case down || s.Status == HealthFailing:
				fails[name] = true
			case s.Status == HealthPassing || s.Status == HealthUnknown:
				passes[name], passing = true, passing || s.Status == HealthPassing
			case s.Status == HealthUnchecked:
				unchecked = true
			default:
				stopped, stops[name] = true, true
				continue
			}
			runs[name] = true
		}
	}
	switch {
	case off == len(nodes):
		return HealthOff
	case seen == 0:
		return HealthUnknown
	case reached == 0:
		return HealthFailing
	}
	for name := range fails {
		if !passes[name] {
			return HealthFailing
		}
	}
	switch {
	case bad:
		return HealthDegraded
	case passing && !unknown:
		for name := range stops {
			if !runs[name] {
				return HealthPartly
			}
		}
		return HealthHealthy
	case unknown || len(passes) > 0:
		return HealthUnknown
	case unchecked:
		return HealthUnchecked
	case stopped:
		return HealthStopped
	}
	return HealthHealthy
}

// HealthNode is a node that somebody watches. A result about it counts only while its
// incarnation and the latest operation of its cluster are these.
type HealthNode struct {
	Node        NodeID
	Tenant      TenantID
	Cluster     ClusterID
	Incarnation int
	Operation   int
	// LocalHost is where a local machine is; "" for all others.
	LocalHost string
	// Changing says that an unfinished task of a running operation is about the node.
	Changing bool
	// WantedAt is when somebody asked for a check, the zero time if nobody did since the last one.
	WantedAt time.Time
	// ServiceStates are what tasks left of its services.
	ServiceStates map[string]ServiceState
}

// HealthLook is what it takes to look at a node: a spec without a task. It holds revealed
// secrets and lives in memory only.
type HealthLook struct {
	HealthNode
	Spec *TaskSpec
	// Off says that the cluster's template wants no checks; Trouble is why there is no Spec.
	Off     bool
	Trouble string
	// Least is the shortest time between two looks that the template wants.
	Least    time.Duration
	Services []ServiceLook
	// Sum says that the files of its services are summed.
	Sum bool
}

// ServiceLook is a service on a node that is looked at, and how.
type ServiceLook struct {
	Name string
	// Status is HealthOff or HealthUnchecked for a service that is not checked, else "".
	Status HealthStatus
	// Check has its defaults and no macros. Container says that the check is that its
	// container runs.
	Check     ServiceCheck
	Container bool
	// Action is the one by which the service was started.
	Action ServiceAction
	// Files are those that are watched, none of a service that need not run.
	Files []string
}

// HealthSeen is what came of looking at a node.
type HealthSeen struct {
	HealthNode
	// At is when it was seen, by the clock of who looked.
	At time.Time
	// Interval is the time between two looks that really holds.
	Interval time.Duration
	// Off, Unreachable, Refused and Doubted are those of NodeSeen.
	Off, Unreachable, Doubted bool
	Refused                   string
	Load
	BootID string
	// SummedAt is when the files of its services began to be summed, zero if they were not.
	SummedAt time.Time
	// Services has an entry for each service of the node.
	Services map[string]ServiceSeen
}

// ServiceSeen is what came of looking at a service: its Status where it is not checked, and
// with Checked a result. Neither: its check was not due, and what was known stands.
type ServiceSeen struct {
	Status  HealthStatus
	Check   ServiceCheck
	Checked bool
	Passed  bool
	Message string
	// Files are the sums of its watched files, SumUnknown for one that could not be read; nil
	// where there are none, or they were not summed.
	Files FileSums
}

// LookInterval is the time between two looks at a node if nothing checks its services, and
// PingInterval that between two signs of life where there are few nodes.
const (
	LookInterval = time.Minute
	PingInterval = 20 * time.Second
)

// Serves reports whether a service in a state is one that should run: it was started, or
// installed where there is nothing to start.
func (s *Service) Serves(state ServiceState) bool {
	switch state {
	case ServiceStarted:
		return true
	case ServiceInstalled:
		return !s.Defines(ActionStart)
	case "":
		return len(s.Provisioner.Actions) == 0
	}
	return false
}
