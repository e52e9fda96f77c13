package wire

import (
	"time"

	"loom/app/fleet"
	"loom/app/lenient"
	"loom/app/loom"
)

// Health is what checks last saw of a cluster.
type Health struct {
	Status    loom.HealthStatus `json:"status" enum:"healthy,degraded,failing,unknown,off"`
	Since     int64             `json:"since" description:"Milliseconds since 1970."`
	CheckedAt int64             `json:"checkedAt" description:"Of the node that was checked longest ago, in milliseconds since 1970; 0: one never was."`
}

// newHealth returns nil for a cluster whose health is not known.
func newHealth(h loom.ClusterHealth) *Health {
	if h.Status == "" {
		return nil
	}
	return &Health{h.Status, Millis(h.Since), Millis(h.CheckedAt)}
}

// ClusterHealth is what checks last saw of a cluster and its nodes.
type ClusterHealth struct {
	Health
	Nodes       []NodeHealth      `json:"nodes"`
	Maintenance []Maintenance     `json:"maintenance" description:"Maintenance under way."`
	Repair      loom.RepairPolicy `json:"repair" description:"What Loom may repair by itself, as the cluster or its template says."`
}

// Maintenance is work that somebody announced.
type Maintenance struct {
	Node   loom.NodeID `json:"nodeId,omitempty" description:"Without it, all nodes of the cluster."`
	Until  int64       `json:"until" description:"Milliseconds since 1970."`
	Reason string      `json:"reason"`
	By     loom.UserID `json:"by"`
}

// NodeHealth is what checks last saw of a node.
type NodeHealth struct {
	Node      loom.NodeID              `json:"nodeId"`
	Status    loom.HealthStatus        `json:"status" enum:"healthy,failing,unreachable,stopped,gone,changing,unknown,off"`
	Since     int64                    `json:"since" description:"Milliseconds since 1970."`
	SeenAt    int64                    `json:"seenAt" description:"When the machine last answered, or did not; 0: never yet."`
	CheckedAt int64                    `json:"checkedAt" description:"When it was last checked; 0: never yet."`
	Interval  int                      `json:"interval" description:"Seconds between two checks."`
	Message   string                   `json:"message,omitempty"`
	Machine   loom.MachineState        `json:"machine,omitempty" enum:"running,stopped,other,missing" description:"What its provider last said of the machine."`
	MachineAt int64                    `json:"machineAt,omitempty" description:"When it said so, in milliseconds since 1970."`
	CPU       *int                     `json:"cpu" description:"Share in use in percent; null: not known."`
	Memory    *int                     `json:"memory" description:"Share in use in percent; null: not known."`
	Disk      *int                     `json:"disk" description:"Share of / in use in percent; null: not known."`
	Services  map[string]ServiceHealth `json:"services"`
	Drift     []Drift                  `json:"drift" description:"What is not as Loom left it."`
}

// Drift is something on a node that is not as Loom left it.
type Drift struct {
	Kind    loom.DriftKind `json:"kind" enum:"file,size,image,addresses,reboot"`
	Service string         `json:"service,omitempty" description:"Whose file it is."`
	File    string         `json:"file,omitempty"`
	Since   int64          `json:"since" description:"When it was first seen, in milliseconds since 1970."`
	Was     string         `json:"was,omitempty" description:"The file's SHA-256 after the service was last configured, missing for no file; or what the provider said first."`
	Now     string         `json:"now,omitempty" description:"The file's SHA-256 now, missing for no file; or what the provider says now."`
}

// ServiceHealth is what checks last saw of a service on a node.
type ServiceHealth struct {
	Status    loom.HealthStatus `json:"status" enum:"passing,failing,unknown,unchecked,off"`
	Since     int64             `json:"since" description:"Milliseconds since 1970."`
	CheckedAt int64             `json:"checkedAt" description:"0: never yet."`
	Message   string            `json:"message,omitempty"`
}

// NewClusterHealth returns the wire form of what is known of a cluster.
func NewClusterHealth(h loom.ClusterHealth) ClusterHealth {
	out := ClusterHealth{Health: Health{loom.HealthUnknown, 0, 0}, Nodes: make([]NodeHealth, len(h.Nodes))}
	if own := newHealth(h); own != nil {
		out.Health = *own
	}
	for i, n := range h.Nodes {
		node := NodeHealth{Node: n.Node, Status: n.Status, Since: Millis(n.Since), SeenAt: Millis(n.SeenAt), CheckedAt: Millis(n.CheckedAt),
			Interval: int(n.Interval.Seconds()), Message: n.Message, Machine: n.Listed.State, MachineAt: Millis(n.Listed.At), CPU: share(n.CPU), Memory: share(n.Memory), Disk: share(n.Disk), Services: map[string]ServiceHealth{}}
		for name, s := range n.Services {
			node.Services[name] = ServiceHealth{s.Status, Millis(s.Since), Millis(s.CheckedAt), s.Message}
		}
		node.Drift = make([]Drift, len(n.Drift))
		for j, d := range n.Drift {
			node.Drift[j] = Drift{d.Kind, d.Service, d.File, Millis(d.Since), d.Was, d.Now}
		}
		out.Nodes[i] = node
	}
	out.Repair = h.Repair
	out.Maintenance = make([]Maintenance, len(h.Maintenance))
	for i, m := range h.Maintenance {
		out.Maintenance[i] = Maintenance{m.Node, Millis(m.Until), m.Reason, m.By}
	}
	return out
}

// share returns nil for a share that is not known.
func share(percent int) *int {
	if percent < 0 {
		return nil
	}
	return &percent
}

// NodeLoad is what a machine had in use over the last day: a value for each step, the oldest first. The lists are
// empty where nothing was recorded.
type NodeLoad struct {
	Start  int64  `json:"start" description:"When the first step began, in milliseconds since 1970; 0: nothing was recorded."`
	Step   int64  `json:"step" description:"Milliseconds."`
	CPU    []*int `json:"cpu" description:"Means in percent; null: not known."`
	Memory []*int `json:"memory" description:"Means in percent; null: not known."`
	Disk   []*int `json:"disk" description:"Means of / in percent; null: not known."`
}

// NewNodeLoad returns the wire form of a machine's load.
func NewNodeLoad(l loom.NodeLoad) NodeLoad {
	shares := func(percent []int) []*int {
		out := make([]*int, len(percent))
		for i, p := range percent {
			out[i] = share(p)
		}
		return out
	}
	return NodeLoad{Start: Millis(l.Start), Step: loom.LoadStep.Milliseconds(), CPU: shares(l.CPU), Memory: shares(l.Memory), Disk: shares(l.Disk)}
}

// Check asks for checks.
type Check struct {
	Nodes []loom.NodeID `json:"nodes,omitempty" description:"Ids; all nodes of the cluster without them."`
}

// Checking says how many nodes will be checked.
type Checking struct {
	Nodes int `json:"nodes"`
}

// Incident is something that went wrong on a node.
type Incident struct {
	ID          int64             `json:"id"`
	Cluster     string            `json:"clusterId"`
	ClusterName string            `json:"clusterName"`
	Node        loom.NodeID       `json:"nodeId"`
	Hostname    string            `json:"hostname"`
	Kind        loom.IncidentKind `json:"kind" enum:"service,disk,signin,unreachable,stopped,gone,drift"`
	Service     string            `json:"service,omitempty"`
	Since       int64             `json:"since" description:"Milliseconds since 1970."`
	EndedAt     int64             `json:"endedAt,omitempty" description:"Milliseconds since 1970; missing while it lasts."`
	Message     string            `json:"message,omitempty"`

	Decision  loom.RepairDecision `json:"decision,omitempty" enum:"asked,held,begun,accepted,declined" description:"Loom asks whether to repair it, holds a repair that it would begin, or began one; somebody accepted or declined. Missing: Loom repairs nothing here."`
	Reason    string              `json:"reason,omitempty" description:"Why a repair is held."`
	DecidedBy loom.UserID         `json:"decidedBy,omitempty"`
	DecidedAt int64               `json:"decidedAt,omitempty" description:"Milliseconds since 1970."`
	Operation string              `json:"operationId,omitempty" description:"The repair."`
}

// NewIncident returns the wire form of an incident.
func NewIncident(i loom.Incident) Incident {
	out := Incident{ID: i.ID, Cluster: i.Cluster.String(), ClusterName: i.ClusterName, Node: i.Node, Hostname: i.Hostname, Kind: i.Kind,
		Service: i.Service, Since: Millis(i.Since), EndedAt: Millis(i.Ended), Message: i.Message,
		Decision: i.Decision, Reason: i.Reason, DecidedBy: i.DecidedBy, DecidedAt: Millis(i.DecidedAt)}
	if i.Operation > 0 {
		out.Operation = loom.OperationRef{Cluster: i.Cluster, Number: i.Operation}.String()
	}
	return out
}

// MaintenanceBegin announces maintenance.
type MaintenanceBegin struct {
	Until  int64         `json:"until" description:"Milliseconds since 1970, at most 30 days from now."`
	Reason string        `json:"reason" description:"For others who see it; at most 400 characters."`
	Nodes  []loom.NodeID `json:"nodes,omitempty" description:"Ids; all nodes of the cluster without them."`
}

// MaintenanceEnd ends maintenance.
type MaintenanceEnd struct {
	Nodes []loom.NodeID `json:"nodes,omitempty" description:"Ids; without them all that was announced for the cluster and its nodes."`
}

// ReadNodes reads which nodes a request is about, none for all of them. Invalid.
func ReadNodes(body []byte) ([]loom.NodeID, error) {
	if Empty(body) {
		return nil, nil
	}
	o, err := lenient.Read(body)
	if err != nil {
		return nil, err
	}
	nodes := nodeIDs(o, "nodes")
	return nodes, o.Err()
}

// ReadMaintenance reads what is announced. Invalid.
func ReadMaintenance(body []byte) (fleet.MaintenanceInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return fleet.MaintenanceInput{}, err
	}
	in := fleet.MaintenanceInput{Reason: o.Text("reason"), Nodes: nodeIDs(o, "nodes")}
	if until := o.Int64("until"); until != 0 {
		in.Until = time.UnixMilli(until)
	}
	return in, o.Err()
}
