package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"loom/app/hook"
	"loom/app/lenient"
	"loom/app/loom"
)

// Hook is an HTTP notice about operations. Secret is set only
// in the answer that made one up.
type Hook struct {
	ID         string               `json:"id"`
	Name       string               `json:"name"`
	URL        string               `json:"url" description:"http or https; private networks only where the installation allows them."`
	Events     []loom.HookEvent     `json:"events" description:"Left out: all."`
	Actions    []loom.ClusterAction `json:"actions" description:"Cluster actions; empty: all."`
	Templates  []string             `json:"templates" description:"Names of cluster templates; empty: all."`
	Blocking   bool                 `json:"blocking" description:"An operation starts only when the hook agrees: 2xx go, 409 refuses."`
	OnTimeout  string               `json:"onTimeout" enum:"go,refuse"`
	Global     bool                 `json:"global" description:"All tenants; for superadmins."`
	LegacyBody bool                 `json:"legacyBody" description:"The predecessor's body."`
	Enabled    bool                 `json:"enabled"`
	Created    int64                `json:"createTime" description:"Milliseconds since 1970."`
	Secret     string               `json:"secret,omitempty" description:"Only in the answer that made it up."`
}

// NewHook gives the wire form, without the secret.
func NewHook(h loom.Hook) Hook {
	return Hook{
		ID: strconv.FormatInt(int64(h.ID), 10), Name: h.Name, URL: h.URL, Events: list(h.Events), Actions: list(h.Actions), Templates: list(h.Templates),
		Blocking: h.Blocking, OnTimeout: h.OnTimeout, Global: h.Global, LegacyBody: h.LegacyBody, Enabled: h.Enabled, Created: Millis(h.Created),
	}
}

// ReadHook reads a hook; what is left out takes its default. Members that there
// are not are refused: a slip in “blocking” would make a hook that is never asked.
// Invalid.
func ReadHook(body []byte) (hook.Input, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return hook.Input{}, err
	}
	o.Ignore("id", "createTime") // what a GET gave can be put back
	o.Only(lenient.Names[HookWrite]()...)
	in := hook.Input{
		Name: o.Text("name"), URL: o.Text("url"), Templates: o.Texts("templates"), Secret: o.TextPtr("secret"), Blocking: o.Bool("blocking"),
		OnTimeout: o.Text("onTimeout"), Global: o.Bool("global"), LegacyBody: o.Bool("legacyBody"), Enabled: true,
	}
	if on := o.BoolPtr("enabled"); on != nil {
		in.Enabled = *on
	}
	for _, e := range o.Texts("events") {
		in.Events = append(in.Events, loom.HookEvent(strings.ToLower(e)))
	}
	for _, a := range o.Texts("actions") {
		in.Actions = append(in.Actions, loom.ClusterAction(strings.ToLower(a)))
	}
	return in, o.Err()
}

// Delivery is one notice to one hook. Code is absent when there
// was no answer, Next when it is not tried again.
type Delivery struct {
	ID        string              `json:"id"`
	Hook      string              `json:"hook"`
	Event     loom.HookEvent      `json:"event"`
	Operation string              `json:"operationId,omitempty" description:"Missing where the event is health."`
	Cluster   string              `json:"clusterId"`
	Time      int64               `json:"time" description:"Milliseconds since 1970."`
	Tries     int                 `json:"tries"`
	Status    loom.DeliveryStatus `json:"status"`
	Code      int                 `json:"code,omitempty" description:"HTTP status of the last try."`
	Duration  *int64              `json:"durationMs,omitempty"`
	Error     string              `json:"error,omitempty"`
	Next      *int64              `json:"nextTime,omitempty" description:"Milliseconds since 1970."`
}

// NewDelivery gives the wire form.
func NewDelivery(d loom.Delivery) Delivery {
	w := Delivery{
		ID: strconv.FormatInt(int64(d.ID), 10), Hook: strconv.FormatInt(int64(d.Hook), 10), Event: d.Event, Cluster: d.Operation.Cluster.String(),
		Time: Millis(d.Time), Tries: d.Tries, Status: d.Status, Code: d.Code, Error: d.Error, Next: MillisOrNil(d.Next),
	}
	if d.Operation.Number > 0 {
		w.Operation = d.Operation.String()
	}
	if d.Tries > 0 {
		ms := d.Took.Milliseconds()
		w.Duration = &ms
	}
	return w
}

// Notice is the body of a delivery. Schema goes up when a member changes its
// meaning or goes away.
type Notice struct {
	ID        string            `json:"id"`
	Schema    int               `json:"schema"`
	Event     loom.HookEvent    `json:"event"`
	Time      int64             `json:"time"`
	Tenant    string            `json:"tenant"`
	Cluster   ClusterSummary    `json:"cluster"`
	Operation *Operation        `json:"operation,omitempty" description:"Missing where the event is health."`
	Health    *HealthChange     `json:"health,omitempty" description:"Where the event is health."`
	Links     map[string]string `json:"links"`
}

// HealthChange is how the health of a cluster changed.
type HealthChange struct {
	From      loom.HealthStatus `json:"from"`
	To        loom.HealthStatus `json:"to"`
	Incidents []Incident        `json:"incidents" description:"Those that last, the newest first, at most 100."`
}

// HookBody makes the body of a delivery: Loom's own, or for facts
// taken for it the predecessor's.
func HookBody(n loom.Notice, d loom.Delivery, publicURL string) ([]byte, error) {
	if n.Legacy != nil {
		return legacyBody(n)
	}
	body := Notice{
		ID: strconv.FormatInt(int64(d.ID), 10), Schema: 1, Event: d.Event, Time: Millis(d.Time), Tenant: n.TenantName,
		Cluster: NewClusterSummary(n.Cluster), Links: map[string]string{"cluster": publicURL + "/v2/clusters/" + n.Cluster.ID.String()},
	}
	if h := n.Health; h != nil {
		body.Health = &HealthChange{From: h.From, To: h.To, Incidents: []Incident{}}
		for _, i := range h.Incidents {
			body.Health.Incidents = append(body.Health.Incidents, NewIncident(i))
		}
	} else {
		op := NewOperation(n.Operation)
		body.Operation = &op
	}
	return marshal(body)
}

// legacyCluster is a cluster as the predecessor's callbacks had it: with the ids
// of its nodes, and enumerations in upper case.
type legacyCluster struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Account     loom.Account   `json:"account"`
	Created     int64          `json:"createTime"`
	Expires     int64          `json:"expireTime"`
	Provider    loom.Provider  `json:"provider"`
	Template    Template       `json:"clusterTemplate"`
	Nodes       []loom.NodeID  `json:"nodes"`
	Services    []string       `json:"services"`
	LatestJob   string         `json:"latestJobId"`
	Status      string         `json:"status"`
	Config      map[string]any `json:"config"`
}

type legacyJob struct {
	ID      string `json:"jobId"`
	Cluster string `json:"clusterId"`
	Action  string `json:"clusterAction"`
	Status  string `json:"jobStatus"`
	Message string `json:"statusMessage,omitempty"`
}

// maxLegacyBody is where no more nodes are put into a body, in bytes.
const maxLegacyBody = 4 << 20

// legacyBody leaves out nodes beyond what anyone can take in one request, and
// then says how many in "nodesOmitted".
func legacyBody(n loom.Notice) ([]byte, error) {
	c, op := n.Legacy.Cluster, n.Operation
	services := make(map[string]loom.Service, len(c.Services))
	for name, s := range c.Services {
		services[name] = withLists(s)
	}
	cluster := legacyCluster{
		ID: c.ID.String(), Name: c.Name, Description: c.Description, Account: c.Owner, Created: Millis(c.Created), Expires: Millis(c.Expires),
		Provider: c.Provider, Template: NewTemplate(c.Template), Nodes: []loom.NodeID{}, Services: ServiceNames(c), LatestJob: op.Ref.String(),
		Status: strings.ToUpper(string(c.Status)), Config: object(c.Config),
	}
	nodes, omitted, size := []json.RawMessage{}, n.Legacy.Omitted, 0
	for i, node := range n.Legacy.Nodes {
		body, err := marshal(NewNode(node, services, nil))
		if err != nil {
			return nil, err
		}
		if size += len(body); size > maxLegacyBody {
			omitted += len(n.Legacy.Nodes) - i
			break
		}
		nodes, cluster.Nodes = append(nodes, body), append(cluster.Nodes, node.ID)
	}
	return marshal(struct {
		Cluster legacyCluster     `json:"cluster"`
		Job     legacyJob         `json:"job"`
		Nodes   []json.RawMessage `json:"nodes"`
		Omitted int               `json:"nodesOmitted,omitempty"`
	}{cluster, legacyJob{
		ID: op.Ref.String(), Cluster: c.ID.String(), Action: strings.ToUpper(string(op.Action)), Status: strings.ToUpper(op.Status.Wire()), Message: jobMessage(op),
	}, nodes, omitted})
}

// withLists gives a service whose lists are [] where there is nothing in them, as
// the API has them: a notice keeps no more of a service than its name.
func withLists(s loom.Service) loom.Service {
	d := &s.Dependencies
	d.Provides, d.Conflicts, s.Links = list(d.Provides), list(d.Conflicts), list(s.Links)
	for _, phase := range []*loom.PhaseDependency{&d.Install, &d.Runtime} {
		phase.Requires, phase.Uses = list(phase.Requires), list(phase.Uses)
	}
	s.Provisioner.Actions = maps.Clone(s.Provisioner.Actions)
	if s.Provisioner.Actions == nil {
		s.Provisioner.Actions = map[loom.TaskAction]loom.ServiceAction{}
	}
	return s
}

func marshal(v any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}
