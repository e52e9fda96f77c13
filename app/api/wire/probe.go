package wire

import (
	"strconv"

	"loom/app/loom"
	"loom/app/processes"
)

// Probe is what asking a provider gave.
// ID follows it, as long as there is no newer one. State is "waiting", "testing", "passed" or
// "failed"; before the last two Checks are the steps so far, and Time is 0.
type Probe struct {
	ID       string                        `json:"id" description:"Follows the probe at /v2/probes/{id}."`
	Provider string                        `json:"provider,omitempty" description:"Absent for a draft without a name."`
	State    string                        `json:"state" enum:"waiting,testing,passed,failed"`
	Time     int64                         `json:"time" description:"When it ended, 0 before."`
	OK       bool                          `json:"ok" description:"Every check passed."`
	Checks   []loom.ProbeCheck             `json:"checks"`
	Flavors  []loom.ProbeFlavor            `json:"flavors"`
	Images   []loom.ProbeImage             `json:"images"`
	Choices  map[string][]loom.ProbeChoice `json:"choices" description:"What fields of the provider can be set to, by field."`
}

// NewProbe gives the wire form.
func NewProbe(r processes.ProbeRun) Probe {
	p := Probe{ID: strconv.FormatInt(r.ID, 10), Provider: r.Provider, State: "waiting", Checks: list(r.Answer.Checks), Flavors: list(r.Answer.Flavors), Images: list(r.Answer.Images), Choices: r.Answer.Choices}
	if p.Choices == nil {
		p.Choices = map[string][]loom.ProbeChoice{}
	}
	switch {
	case !r.Ended && r.Started:
		p.State = "testing"
	case r.Ended && r.Answer.OK:
		p.State = "passed"
	case r.Ended:
		p.State = "failed"
	}
	if r.Ended {
		p.Time, p.OK = Millis(r.Answer.Time), r.Answer.OK
	}
	return p
}

// Orphan is a machine that no live node claims. Tenant is the tenant's name.
type Orphan struct {
	ID        string      `json:"id"`
	Tenant    string      `json:"tenant" description:"Name of the tenant."`
	Provider  string      `json:"provider"`
	Machine   string      `json:"machineId" description:"The provider's own id of the machine."`
	Name      string      `json:"name"`
	Cluster   string      `json:"clusterId,omitempty"`
	Node      loom.NodeID `json:"nodeId,omitempty"`
	Own       string      `json:"ownMachineId,omitempty" description:"The machine that the node has; it stays when this one is removed."` // the machine that the node has
	FirstSeen int64       `json:"firstSeen"`
}

// NewOrphan gives the wire form.
func NewOrphan(o loom.Orphan) Orphan {
	w := Orphan{
		ID: strconv.FormatInt(o.ID, 10), Tenant: o.TenantName, Provider: o.Provider, Machine: o.Machine, Name: o.Name, Node: o.Node, Own: o.Own, FirstSeen: Millis(o.FirstSeen),
	}
	if o.Cluster != 0 {
		w.Cluster = o.Cluster.String()
	}
	return w
}

// Sweep is what is known of the looks for forgotten machines at a provider. Tenant is the
// tenant's name.
type Sweep struct {
	Tenant   string `json:"tenant"`
	Provider string `json:"provider"`
	// State is "idle", "waiting" for a provisioner or "running".
	State   string `json:"state" description:"Whether a search is under way, or waits for a provisioner." enum:"idle,waiting,running"`
	Asked   int64  `json:"requestTime,omitempty" description:"When the search under way was asked for, in milliseconds since 1970."`
	Last    int64  `json:"lastTime,omitempty" description:"End of the last search, in milliseconds since 1970; absent where there was none."`
	Failure string `json:"lastError,omitempty" description:"Why the last search found nothing out."`
	Found   int    `json:"orphans" description:"Known unused machines."`
}

// NewSweep gives the wire form.
func NewSweep(s loom.Sweep) Sweep {
	w := Sweep{Tenant: s.TenantName, Provider: s.Provider, State: "idle", Failure: s.Failure, Found: s.Found}
	if s.Asked != nil {
		w.State, w.Asked = "waiting", Millis(*s.Asked)
		if s.Started {
			w.State = "running"
		}
	}
	if s.Last != nil {
		w.Last = Millis(*s.Last)
	}
	return w
}

// LeftBehind is a machine that the delete of its cluster could not delete. Tenant is the
// tenant's name; Machine is absent where the provider's name for it never became known.
type LeftBehind struct {
	ID        string      `json:"id"`
	Tenant    string      `json:"tenant" description:"Name of the tenant."`
	Provider  string      `json:"provider"`
	Machine   string      `json:"machineId,omitempty" description:"The provider's own id of the machine; absent where it never became known."`
	Hostname  string      `json:"hostname"`
	Cluster   string      `json:"clusterId"`
	Node      loom.NodeID `json:"nodeId"`
	Tries     int         `json:"tries" description:"How often it was tried to delete it."`
	LastError string      `json:"lastError" description:"Why the last try failed."`
	FirstSeen int64       `json:"firstSeen" description:"Since when it is known to be left over."`
	LastTry   int64       `json:"lastTry"`
}

// NewLeftBehind gives the wire form.
func NewLeftBehind(l loom.Leftover, tenant string) LeftBehind {
	return LeftBehind{
		ID: strconv.FormatInt(l.ID, 10), Tenant: tenant, Provider: l.Provider, Machine: l.Machine, Hostname: l.Hostname, Cluster: l.Cluster.String(), Node: l.Node,
		Tries: l.Tries, LastError: l.Error, FirstSeen: Millis(l.First), LastTry: Millis(l.Last),
	}
}
