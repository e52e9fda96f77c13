package loom

import (
	"encoding/json"
	"maps"
	"time"
)

// TaskSpec is everything needed to execute one attempt of a task. It is built
// when the attempt starts, lives in memory only and holds secrets.
type TaskSpec struct {
	Ref     TaskRef
	Row     TaskID
	Tenant  TenantID
	Action  TaskAction
	Attempt int
	// LastTry says that the task is given up when this attempt fails.
	LastTry bool
	// Deadline ends the attempt.
	Deadline time.Time
	// IdempotencyKey is the same for all attempts to make one machine; every
	// machine carries it.
	IdempotencyKey string
	// Alone, of a DELETE, says that the machine of the provider id goes and nothing else
	// that carries the key: the machine of a living node carries it too.
	Alone bool

	Node         NodeID
	NodeNumber   int
	Hostname     string
	Addresses    map[string]string
	SSHUser      string
	HardwareType string
	ImageType    string
	Flavor       string
	Image        string
	// HardwareSettings and ImageSettings are all entries of the types' provider
	// maps for this provider, flavor and image included.
	HardwareSettings map[string]string
	ImageSettings    map[string]string
	Automators       []string
	Services         []string

	// Provider is the cluster's copy; Provider.Fields holds admin fields overlaid
	// by user fields overlaid by revealed sensitive fields.
	Provider Provider
	// Config is the cluster config, macros expanded for service actions.
	Config map[string]any
	// Nodes are all nodes of the cluster.
	Nodes map[NodeID]NodeProperties
	// Service is nil for node actions.
	Service *TaskService
	// BootstrapFields, of a BOOTSTRAP, are the fields that actions of the node's
	// services set, by automator type: how its tool gets onto the machine. Where
	// services differ the first in the order of names counts.
	BootstrapFields map[string]map[string]string
	// Results are the merged facts of earlier tasks on the node.
	Results map[string]any

	// OwnerKeys are public keys, in authorized_keys form, that CONFIRM puts on
	// the machine for its user.
	OwnerKeys []string
	// PrivateKey is the cluster's own key in PEM, if it has one; PublicKey the
	// matching authorized_keys line, which CREATE puts on the machine.
	PrivateKey Secret
	PublicKey  string
	// ResourceSet is the number of the tenant's synced set of plugin resources.
	ResourceSet int
	// Place is what CREATE keeps as PlaceFact before it asks for a machine; Provider says
	// the same. The runner sets it.
	Place map[string]any
	// Sensitive are texts that must not appear in logs or messages.
	Sensitive []string
	// Reach says what may be connected to for this task. Who builds the spec sets what
	// the tenant may, the runner adds what the installation says.
	Reach Reach
}

// TaskService is the service action to run.
type TaskService struct {
	Name   string        `json:"name"`
	Action ServiceAction `json:"action"`
}

// NodeProperties are the facts of a node that plugins and macros see.
type NodeProperties struct {
	Hostname     string            `json:"hostname"`
	Addresses    map[string]string `json:"ipaddresses"`
	Number       int               `json:"nodenum"`
	HardwareType string            `json:"hardwaretype"`
	ImageType    string            `json:"imagetype"`
	Flavor       string            `json:"flavor"`
	Image        string            `json:"image"`
	SSHUser      string            `json:"sshuser"`
	Services     []string          `json:"services"`
	Automators   []string          `json:"automators"`
}

// Properties gives the facts of a node that plugins and macros see.
func (n *Node) Properties() NodeProperties {
	p := NodeProperties{
		Hostname: n.Hostname, Addresses: n.Addresses, Number: n.Number,
		HardwareType: n.HardwareType, ImageType: n.ImageType, Flavor: n.Flavor, Image: n.Image,
		SSHUser: n.SSHUser, Services: n.Services, Automators: n.Automators,
	}
	if p.Addresses == nil {
		p.Addresses = map[string]string{}
	}
	return p
}

// fixedConfigKeys are the keys of a payload's config that results may not replace.
var fixedConfigKeys = map[string]bool{
	"hostname": true, "ipaddresses": true, "nodenum": true, "sshuser": true, "hardwaretype": true,
	"imagetype": true, "flavor": true, "image": true, "automators": true, "services": true,
	"provider": true, "cluster": true, "nodes": true, "service": true,
}

// FixedConfigKey reports whether a result key of that name is refused.
func FixedConfigKey(key string) bool { return fixedConfigKeys[key] }

// Payload is the task as plugins see it, a contract. With
// credentials false it leaves out provider fields and ssh-auth.
func (s *TaskSpec) Payload(credentials bool) map[string]any {
	config := map[string]any{}
	maps.Copy(config, s.Results)
	if !credentials {
		delete(config, "ssh-auth")
	}
	addresses := s.Addresses
	if addresses == nil {
		addresses = map[string]string{}
	}
	provider := map[string]any{
		"name": s.Provider.Name, "description": s.Provider.Description,
		"version": s.Provider.Version, "providertype": s.Provider.Type,
	}
	if credentials {
		provider["provisioner"] = s.Provider.Fields
	}
	for key, value := range map[string]any{
		"hostname": s.Hostname, "ipaddresses": addresses, "nodenum": s.NodeNumber, "sshuser": s.SSHUser,
		"hardwaretype": s.HardwareType, "imagetype": s.ImageType, "flavor": s.Flavor, "image": s.Image,
		"automators": s.Automators, "services": s.Services, "provider": provider,
		"cluster": s.Config, "nodes": s.Nodes, "service": s.Service,
	} {
		config[key] = value
	}
	return map[string]any{
		"taskId": s.Ref.String(), "jobId": s.Ref.Operation.String(), "clusterId": s.Ref.Operation.Cluster.String(),
		"taskName": upper(string(s.Action)), "nodeId": s.Node, "config": config,
		"tenantId": s.Tenant, "attempt": s.Attempt, "deadline": s.Deadline.UTC().Format(time.RFC3339),
		"idempotencyKey": s.IdempotencyKey,
	}
}

// StatusWaits is the status of an interrupted attempt that found away what it needs of the
// installation: it is no failure, and no interruption that counts (EX_TEMPFAIL).
const StatusWaits = 75

// TaskResult is what an attempt came to.
type TaskResult struct {
	// Status is 0 for success. 200 to 299 from CREATE: failed before anything was
	// created. -1: time limit, abort, macro error. StatusWaits with Interrupted: it waits.
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"`
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	// Hostname and Addresses replace the node's, on success only.
	Hostname  string            `json:"hostname,omitempty"`
	Addresses map[string]string `json:"ipaddresses,omitempty"`
	// Result is merged into the node, also on failure. A null value removes the key.
	Result map[string]any `json:"result,omitempty"`
	// Retryable false says that trying again is useless; nil counts as true.
	Retryable *bool `json:"retryable,omitempty"`
	// RetryAfter asks for a longer delay, in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// KeepMachine says of a failed CONFIRM that nothing speaks against the machine: the
	// same is tried again, with the machine that is there.
	KeepMachine bool `json:"keep_machine,omitempty"`
	// Interrupted says the attempt ended through no fault of the task.
	Interrupted bool `json:"-"`
	// Aborted says the attempt was told to stop by an abort.
	Aborted bool `json:"-"`
	// Files are the versions of the plugin resources that an action which sets a service up
	// has run, by ResourceRef.FileKey; nil where nothing is known.
	Files map[string]int `json:"-"`
}

// UnmarshalJSON accepts a status given as decimal text, as old plugins sent it.
func (r *TaskResult) UnmarshalJSON(data []byte) error {
	type plain TaskResult
	aux := struct {
		*plain
		Status *json.Number `json:"status"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &aux); err != nil {
		return err
	}
	if aux.Status == nil {
		return NewError(Invalid, "The plugin's result has no status.")
	}
	n, err := aux.Status.Int64()
	if err != nil {
		return err
	}
	r.Status = int(n)
	return nil
}

// Sink takes what a running attempt has to say before it ends.
type Sink interface {
	// Log adds a line to the task log. Stream is "stdout", "stderr" or "loom".
	// It does not block on the database.
	Log(stream, text string)
	// Fact stores results on the node at once, so that a machine's id survives
	// whatever happens next. It returns only when they are durable.
	Fact(results map[string]any) error
}
