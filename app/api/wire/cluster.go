package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
)

// ClusterSummary is a row of the list of clusters.
type ClusterSummary struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	Description string             `json:"description"`
	Owner       loom.UserID        `json:"ownerId"`
	Created     int64              `json:"createTime" description:"Milliseconds since 1970."`
	Expires     int64              `json:"expireTime" description:"0: never."`
	Nodes       int                `json:"numNodes"`
	Status      loom.ClusterStatus `json:"status"`
	Provider    loom.Base          `json:"provider"`
	Template    loom.Base          `json:"clusterTemplate"`
	Services    []string           `json:"services"`
	Progress    Progress           `json:"progress"`
	Health      *Health            `json:"health,omitempty"`
}

// NewClusterSummary gives the wire form of a row.
func NewClusterSummary(s loom.ClusterSummary) ClusterSummary {
	return ClusterSummary{
		ID: s.ID.String(), Name: s.Name, Description: s.Description, Owner: s.Owner.User, Created: Millis(s.Created), Expires: Millis(s.Expires),
		Nodes: s.Nodes, Status: s.Status, Provider: s.Provider, Template: s.Template, Services: list(s.Services), Progress: NewProgress(s.Progress), Health: newHealth(s.Health),
	}
}

// Cluster is a cluster with everything about it. Template and
// provider are its own copies, config is unexpanded.
type Cluster struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	Description string             `json:"description"`
	Account     loom.Account       `json:"account"`
	Created     int64              `json:"createTime" description:"Milliseconds since 1970."`
	Expires     int64              `json:"expireTime" description:"0: never."`
	Provider    loom.Provider      `json:"provider"`
	Template    Template           `json:"clusterTemplate"`
	Nodes       []Node             `json:"nodes"`
	Services    []string           `json:"services"`
	LatestJob   string             `json:"latestJobId,omitempty"`
	Status      loom.ClusterStatus `json:"status"`
	Config      map[string]any     `json:"config"`
	Links       []loom.Link        `json:"links"`
	Progress    Progress           `json:"progress"`
	Message     string             `json:"message,omitempty"`
	Labels      map[string]string  `json:"labels"`
	Revision    int                `json:"revision"`
	Protected   bool               `json:"protected"`
	Latest      *Operation         `json:"latestOperation,omitempty"`
	Health      *Health            `json:"health,omitempty"`
	Repair      *loom.RepairPolicy `json:"repair,omitempty" description:"What Loom may repair by itself where that differs from the template."`
	Skipped     []SkippedTask      `json:"skipped,omitempty" description:"Skipped tasks that no later operation ran, the first 100."`
	Rollout     *ClusterRollout    `json:"rollout,omitempty" description:"The rollout that will change the cluster or changes it; administrators make them."`
	Leftovers   []Leftover         `json:"leftovers,omitempty" description:"Leftover machines that Loom keeps trying to delete; for administrators."`
}

// ClusterRollout is a rollout, as a cluster names the one that it is in.
type ClusterRollout struct {
	Number int                       `json:"number"`
	Wave   int                       `json:"wave" description:"That of the cluster."`
	Status loom.RolloutClusterStatus `json:"status" enum:"waiting,running"`
}

// SkippedTask is a task that somebody left out and that no later operation ran.
type SkippedTask struct {
	Task    string          `json:"taskId"`
	Node    loom.NodeID     `json:"nodeId"`
	Service string          `json:"service"`
	Action  loom.TaskAction `json:"action"`
	Skipped
}

// Leftover is a machine that the delete of the cluster left behind; administrators
// see them. MachineID is empty where it never became known.
type Leftover struct {
	Node      loom.NodeID `json:"nodeId"`
	Hostname  string      `json:"hostname"`
	Provider  string      `json:"provider"`
	MachineID string      `json:"machineId" description:"What the provider calls it; empty where that never became known."`
	LastError string      `json:"lastError"`
	Tries     int         `json:"tries"`
	First     int64       `json:"firstSeen" description:"Milliseconds since 1970."`
	Last      int64       `json:"lastTry" description:"Milliseconds since 1970."`
}

// NewCluster gives the wire form of a cluster.
func NewCluster(v clusters.ClusterView) Cluster {
	c := Cluster{
		ID: v.ID.String(), Name: v.Name, Description: v.Description, Account: v.Owner, Created: Millis(v.Created), Expires: Millis(v.Expires),
		Provider: v.Provider, Template: NewTemplate(v.Template), Nodes: []Node{}, Services: ServiceNames(v.Cluster), Status: v.Status,
		Config: object(v.Config), Links: list(v.Links), Labels: object(v.Labels), Revision: v.Revision, Protected: v.Protected,
		Progress: NewProgress(loom.Progress{}), Health: newHealth(v.Health),
	}
	if v.Repair != (loom.RepairPolicy{}) {
		c.Repair = &v.Repair
	}
	if r := v.Rollout; r.Number > 0 {
		c.Rollout = &ClusterRollout{r.Number, r.Wave, r.Status}
	}
	if v.Latest != nil {
		op := NewOperation(*v.Latest)
		c.LatestJob, c.Progress, c.Message, c.Latest = op.ID, op.Progress, jobMessage(*v.Latest), &op
	}
	for _, t := range v.Skipped {
		c.Skipped = append(c.Skipped, SkippedTask{
			Task: t.Ref.String(), Node: t.Node, Service: t.Service, Action: t.Action, Skipped: Skipped{By: t.SkippedBy, Reason: t.SkipReason},
		})
	}
	for _, l := range v.Leftovers {
		c.Leftovers = append(c.Leftovers, Leftover{Node: l.Node, Hostname: l.Hostname, Provider: l.Provider, MachineID: l.Machine,
			LastError: l.Error, Tries: l.Tries, First: Millis(l.First), Last: Millis(l.Last)})
	}
	for _, n := range v.Nodes {
		c.Nodes = append(c.Nodes, NewNode(n, v.Cluster.Services, v.NodeLinks[n.ID]))
	}
	return c
}

// jobMessage is the message of an operation as the predecessor's clients know it: they
// compare that of an abort. Who aborted, the operation itself says.
func jobMessage(op loom.Operation) string {
	if op.Aborted {
		return "Aborted by user."
	}
	return op.Message
}

// ServiceNames lists the services of a cluster, sorted.
func ServiceNames(c loom.Cluster) []string {
	return list(slices.Sorted(maps.Keys(c.Services)))
}

// ClusterStatus is the short answer about a cluster. All keys
// are lower case.
type ClusterStatus struct {
	ID           string             `json:"clusterid"`
	Total        int                `json:"stepstotal"`
	Completed    int                `json:"stepscompleted"`
	Status       loom.ClusterStatus `json:"status"`
	ActionStatus string             `json:"actionstatus"`
	Action       loom.ClusterAction `json:"action"`
	Health       *Health            `json:"health,omitempty"`
}

// NewClusterStatus gives the short answer; latest is the newest operation.
func NewClusterStatus(c clusters.ClusterView, latest loom.Operation) ClusterStatus {
	p := NewProgress(latest.Progress())
	return ClusterStatus{
		ID: c.ID.String(), Total: p.Total, Completed: p.Completed, Status: c.Status, ActionStatus: p.ActionStatus, Action: p.Action, Health: newHealth(c.Health),
	}
}

// NewStatusOf gives the short answer about a row of the list of clusters.
func NewStatusOf(c loom.ClusterSummary) ClusterStatus {
	p := NewProgress(c.Progress)
	return ClusterStatus{
		ID: c.ID.String(), Total: p.Total, Completed: p.Completed, Status: c.Status, ActionStatus: p.ActionStatus, Action: p.Action, Health: newHealth(c.Health),
	}
}

// Node is a machine of a cluster.
type Node struct {
	ID            loom.NodeID                  `json:"id"`
	Cluster       string                       `json:"clusterId"`
	Services      []loom.Service               `json:"services"`
	Properties    loom.NodeProperties          `json:"properties"`
	Actions       []NodeAction                 `json:"actions"`
	Results       map[string]any               `json:"provisionerResults"`
	Links         []loom.Link                  `json:"links"`
	State         loom.NodeState               `json:"state"`
	ServiceStates map[string]loom.ServiceState `json:"serviceStates"`
	Incarnation   int                          `json:"incarnation"`
	// Leaving nodes are on their way out of the cluster, or gone.
	Leaving bool `json:"leaving,omitempty" description:"On its way out of the cluster, or gone; left out while it stays."`
}

// NodesWeight gives how much the services of nodes take as JSON, which is most of what can
// be large: each node of a cluster says them again.
func NodesWeight(nodes []Node) (int64, error) {
	type service struct{ cluster, name string }
	sizes := map[service]int64{}
	var weight int64
	for _, n := range nodes {
		for _, s := range n.Services {
			of := service{n.Cluster, s.Name}
			if _, ok := sizes[of]; !ok {
				text, err := json.Marshal(s)
				if err != nil {
					return 0, err
				}
				sizes[of] = int64(len(text))
			}
			weight += sizes[of]
		}
	}
	return weight, nil
}

// NodeAction is an entry of a node's history. Action is in upper case, times are
// 0 while unknown.
type NodeAction struct {
	Task      string `json:"taskId"`
	Service   string `json:"service"`
	Action    string `json:"action" description:"In upper case."`
	Submitted int64  `json:"submitTime"`
	Changed   int64  `json:"statusTime"`
	Status    string `json:"status" enum:"in_progress,complete,failed"`
	Stdout    string `json:"stdout,omitempty"`
	Stderr    string `json:"stderr,omitempty"`
}

// NewNode gives the wire form; services are the cluster's copies.
func NewNode(n loom.Node, services map[string]loom.Service, links []loom.Link) Node {
	w := Node{
		ID: n.ID, Cluster: n.Cluster.String(), Services: []loom.Service{}, Properties: n.Properties(), Actions: []NodeAction{},
		Results: object(n.Results), Links: list(links), State: n.State, ServiceStates: object(n.ServiceStates), Incarnation: n.Incarnation,
		Leaving: n.Leaving,
	}
	w.Properties.Services, w.Properties.Automators = list(n.Services), list(n.Automators)
	if w.Properties.SSHUser == "" {
		w.Properties.SSHUser = loom.DefaultSSHUser
	}
	for _, name := range n.Services {
		if s, ok := services[name]; ok {
			w.Services = append(w.Services, s)
		}
	}
	for _, a := range n.Actions {
		entry := NodeAction{
			Task: a.Task.String(), Service: a.Service, Action: strings.ToUpper(string(a.Action)),
			Submitted: Millis(a.Started), Changed: Millis(a.Ended), Status: a.Status,
		}
		if a.Status == "failed" {
			entry.Stdout, entry.Stderr = cut(a.Stdout), cut(a.Stderr)
		}
		w.Actions = append(w.Actions, entry)
	}
	return w
}

// maxOutput is how much of an output a node's history shows, in characters.
const maxOutput = 2048

func cut(text string) string {
	runes := []rune(text)
	if len(runes) <= maxOutput {
		return text
	}
	return "[snipped]" + string(runes[len(runes)-maxOutput:])
}

// Actions says of each verb why it cannot begin now; null where it can.
func Actions(allowed map[loom.ChangeKind]string) map[loom.ChangeKind]*string {
	out := map[loom.ChangeKind]*string{}
	for verb, why := range allowed {
		if out[verb] = nil; why != "" {
			out[verb] = &why
		}
	}
	return out
}

// Revealed is a machine's own sign-in.
type Revealed struct {
	User       string `json:"user"`
	Password   string `json:"password,omitempty"`
	PrivateKey string `json:"privateKey,omitempty"`
}

// ConfigRevision says who gave a cluster a config.
type ConfigRevision struct {
	Revision  int         `json:"revision"`
	Author    loom.UserID `json:"author"`
	Operation string      `json:"operationId"`
	Time      int64       `json:"time" description:"Milliseconds since 1970."`
}

// NewConfigRevision gives the wire form of a revision of a cluster's config.
func NewConfigRevision(id loom.ClusterID, c loom.ConfigRevision) ConfigRevision {
	return ConfigRevision{c.Revision, c.Author, loom.OperationRef{Cluster: id, Number: c.Operation}.String(), Millis(c.Time)}
}
