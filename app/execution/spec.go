package execution

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// SpecError says that an attempt cannot run because of what the cluster holds:
// the result it ends with. Trying again would not help.
type SpecError struct{ Result loom.TaskResult }

// Error returns the message of the result.
func (u *SpecError) Error() string { return u.Result.Message }

func specError(format string, args ...any) error {
	no := false
	return &SpecError{loom.TaskResult{Status: -1, Message: fmt.Sprintf(format, args...), Retryable: &no}}
}

// SpecFacts are what the spec of a task is built from, secrets still sealed.
type SpecFacts = store.SpecFacts

// SpecFacts reads what the specs of started attempts are built from, for many at
// once. Those that do not hold their task any longer are left out.
func (o *Operations) SpecFacts(ctx context.Context, keys []AttemptKey) (map[AttemptKey]*SpecFacts, error) {
	tasks := make([]loom.TaskID, len(keys))
	attempt := make(map[loom.TaskID]int, len(keys))
	for i, key := range keys {
		tasks[i] = key.Task
		attempt[key.Task] = key.Attempt
	}
	all, err := store.SpecFactsAllTenants(ctx, o.prepared, tasks...)
	if err != nil {
		return nil, err
	}
	facts := make(map[AttemptKey]*SpecFacts, len(all))
	for i := range all {
		f := &all[i]
		if f.Status == loom.TaskRunning && f.Attempt == attempt[f.Row] {
			facts[AttemptKey{Task: f.Row, Attempt: f.Attempt}] = f
		}
	}
	return facts, nil
}

// Spec builds everything a started attempt needs; see Build for its errors.
func (o *Operations) Spec(ctx context.Context, key AttemptKey) (*loom.TaskSpec, error) {
	facts, err := o.SpecFacts(ctx, []AttemptKey{key})
	if err != nil {
		return nil, err
	}
	f := facts[key]
	if f == nil {
		return nil, loom.NewError(loom.Conflict, "Attempt %d no longer holds its task.", key.Attempt)
	}
	return o.Build(ctx, f)
}

// Build makes the spec of a started attempt. It holds revealed secrets and lives
// in memory only. A *SpecError is the outcome of the attempt, any other
// one is a failure of Loom and may pass.
func (o *Operations) Build(ctx context.Context, f *SpecFacts) (*loom.TaskSpec, error) {
	nodes, err := o.nodes(ctx, f)
	if err != nil {
		return nil, err
	}
	own, there := nodes.all[f.Node.ID]
	if !there {
		return nil, fmt.Errorf("node %s of task %s is not one of its cluster", f.Node.ID, f.Ref)
	}
	f.Describe(own)
	limit, err := o.limit(ctx, f)
	if err != nil {
		return nil, err
	}
	s := &loom.TaskSpec{
		Ref: f.Ref, Row: f.Row, Tenant: f.Tenant, Action: f.Action, Attempt: f.Attempt,
		LastTry: f.Attempt >= o.opts.MaxAttempts, // or before, where attempts were interrupted
		// What is left of the limit by the database clock, counted on ours.
		Deadline:       time.Now().Add(limit - f.Now.Sub(f.Started)),
		IdempotencyKey: loom.IdempotencyKey(f.Node.ID, f.Node.Incarnation),
		Node:           f.Node.ID, NodeNumber: f.Node.Number, Hostname: f.Node.Hostname, Addresses: f.Node.Addresses,
		SSHUser: f.Node.SSHUser, HardwareType: f.Node.HardwareType, ImageType: f.Node.ImageType,
		Flavor: f.Node.Flavor, Image: f.Node.Image, HardwareSettings: f.Hardware, ImageSettings: f.Image,
		Automators: f.Node.Automators, Services: f.Node.Services,
		Provider: f.Provider, Config: f.Config, Nodes: nodes.properties, Results: f.Node.Results,
		OwnerKeys: f.OwnerKeys, ResourceSet: f.ResourceSet,
	}
	if s.Config == nil {
		s.Config = map[string]any{}
	}
	secrets, err := o.secretKeys(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := o.reveal(s, f, secrets); err != nil {
		return nil, err
	}
	may, err := o.permits(ctx, f.Tenant, f.Action)
	if err != nil {
		return nil, err
	}
	s.Reach = may.Reach()
	if refused := may.Check(s.Provider); len(refused) > 0 && f.Action == loom.ActionCreate {
		return nil, specError("%s", refused[0].Message)
	}
	if f.Action == loom.ActionBootstrap {
		services, err := o.services(ctx, f)
		if err != nil {
			return nil, err
		}
		s.BootstrapFields = bootstrapFields(f.Node.Services, services)
	}
	if f.Action.OfNode() {
		return s, nil
	}
	return s, fillService(s, f, nodes, secrets)
}

// secretKeys returns the secret keys of the config of a task's cluster.
func (o *Operations) secretKeys(ctx context.Context, f *SpecFacts) (*loom.SecretKeys, error) {
	if f.Action == loom.ActionKeys { // also of looks, which keep the services from one to the next
		checks, err := o.checks(ctx, f)
		return loom.SecretKeysOf(checks.Services), err
	}
	services, err := o.services(ctx, f)
	if f.ServiceCopy == nil {
		return loom.SecretKeysOf(services), err
	}
	return loom.SecretKeysOf(services, map[string]loom.Service{f.Service: *f.ServiceCopy}), err // undone, it is an older one
}

// reveal opens the sealed values: admin fields of the provider, over them the
// fields given for the cluster, the cluster's own key pair, and what earlier tasks
// of the node learned in secret.
func (o *Operations) reveal(s *loom.TaskSpec, f *store.SpecFacts, secrets *loom.SecretKeys) error {
	fields := make(map[string]any, len(f.Provider.Fields)+len(f.Sealed))
	maps.Copy(fields, f.Provider.Fields)
	cluster, node := store.ClusterSecrets(f.Ref.Operation.Cluster), store.NodeSecrets(f.Node.ID)
	sensitive := map[string]bool{}
	for _, ofCluster := range []bool{false, true} {
		for _, v := range f.Sealed {
			if (v.Entity == cluster) != ofCluster {
				continue
			}
			plain, err := o.ring.Open(f.Tenant, v.Entity, v.Field, v.Sealed)
			if err != nil {
				return specError("The sealed field %s of %s cannot be opened; was the key of this installation changed?", v.Field, v.Entity)
			}
			if v.Entity == node {
				fact, err := loom.RevealFact(v.Field, plain)
				if err != nil {
					return fmt.Errorf("reveal what node %s reported: %w", s.Node, err)
				}
				s.Results = loom.JoinFacts(s.Results, fact)
				continue
			}
			switch {
			case ofCluster && v.Field == loom.FieldPrivateKey:
				s.PrivateKey = plain
			case ofCluster && v.Field == loom.FieldPublicKey:
				s.PublicKey = plain.Reveal()
				continue
			default:
				fields[v.Field] = plain.Reveal()
			}
			collect(sensitive, plain.Reveal())
		}
	}
	s.Provider.Fields = fields
	if s.Action != loom.ActionCreate {
		s.Provider = s.Provider.AtPlace(loom.Placed(s.Results))
	}
	_, hidden := loom.SplitFacts(s.Results) // also what was not sealed when it was stored
	reported := map[string]any{}
	for name, value := range hidden {
		if loom.ReportedByAutomator(name) {
			reported[name] = value
		} else {
			for _, text := range loom.TextsIn(value) {
				collect(sensitive, text)
			}
		}
	}
	ofServices, _ := loom.HiddenTexts(reported, true)
	ofConfig, _ := secrets.HiddenTexts(s.Config)
	for _, text := range append(ofServices, ofConfig...) {
		collect(sensitive, text)
	}
	s.Sensitive = slices.Sorted(maps.Keys(sensitive))
	return nil
}

// collect notes a text that must not appear anywhere, and each telling line of
// one that has several, as keys have.
func collect(sensitive map[string]bool, text string) {
	if len(text) < minSensitive {
		return
	}
	sensitive[text] = true
	if !strings.Contains(text, "\n") {
		return
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			sensitive[line] = true
		}
	}
}

// minSensitive is the shortest text that redaction looks for, minLine the shortest line of
// one that has several.
const (
	minSensitive = 4
	minLine      = 8
)

// fillService adds what only service actions have: the action itself and the
// config with its macros expanded, which must satisfy the parameters of the service.
func fillService(s *loom.TaskSpec, f *store.SpecFacts, nodes *clusterNodes, secrets *loom.SecretKeys) error {
	if f.ServiceCopy == nil {
		return specError("The cluster no longer has the service “%s”.", f.Service)
	}
	action, ok := f.ServiceCopy.Provisioner.Actions[f.Action]
	if !ok {
		return specError("The service “%s” has no action “%s”.", f.Service, f.Action)
	}
	s.Service = &loom.TaskService{Name: f.Service, Action: action}
	expanded, problems := nodes.facts.Expand(s.Config, f.Node.ID)
	if errs, _ := macro.Split(problems); len(errs) > 0 {
		texts := make([]string, 0, macro.MaxProblems)
		for _, p := range errs[:min(len(errs), macro.MaxProblems)] {
			texts = append(texts, p.String())
		}
		return specError("Exception while expanding macros: %s", strings.Join(texts, "; "))
	}
	s.Config = expanded
	hidden, _ := secrets.HiddenTexts(expanded)
	s.Sensitive = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Sensitive, hidden))))
	return checkExpanded(s, f)
}

// checkExpanded refuses values of parameters that their macros made wrong. All others were
// checked before the operation began.
func checkExpanded(s *loom.TaskSpec, f *store.SpecFacts) error {
	for i := range f.ServiceCopy.Parameters {
		p := &f.ServiceCopy.Parameters[i]
		written, _ := loom.ConfigValue(f.Config, p.Key)
		value, _ := loom.ConfigValue(s.Config, p.Key)
		if text, isText := value.(string); isText && text != written && !p.Accepts(text) {
			return specError("%s: %s must be %s; its macros give something else.", f.Service, p.Key, p.Wants())
		}
	}
	return nil
}

// services returns the services of a task's cluster, as the operation leaves them.
func (o *Operations) services(ctx context.Context, f *store.SpecFacts) (map[string]loom.Service, error) {
	ref := f.Ref.Operation
	return o.servicesCache.Get(ctx, ref, time.Now, func(ctx context.Context) (map[string]loom.Service, error) {
		all, err := store.ServicesOfClusters(ctx, o.db, f.Tenant, []loom.ClusterID{ref.Cluster})
		return all[ref.Cluster], err
	})
}

// bootstrapFields returns the fields that the actions of a node's services set, by
// automator type: a BOOTSTRAP belongs to no service, but how its tool gets onto the
// machine is said there.
func bootstrapFields(names []string, services map[string]loom.Service) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		for _, action := range loom.TaskActions {
			a, defined := services[name].Provisioner.Actions[action]
			if !defined {
				continue
			}
			if all[a.Type] == nil {
				all[a.Type] = map[string]string{}
			}
			for field, value := range a.Fields {
				if _, set := all[a.Type][field]; !set && strings.TrimSpace(value) != "" {
					all[a.Type][field] = value
				}
			}
		}
	}
	return all
}

// maxClusters is how many clusters' nodes are remembered.
const maxClusters = 64

// clusterNodes are the nodes of a cluster as tasks see them, shared by all tasks
// that run on the same facts. They never change.
type clusterNodes struct {
	operation, version int64
	properties         map[loom.NodeID]loom.NodeProperties
	// all are also those that others are not told of.
	all   map[loom.NodeID]loom.NodeProperties
	facts *macro.Facts
}

// nodeView names the nodes that a task is told of: a node on its way out still knows
// the others that leave, the rest know those of the layout. What is taken back may
// stop at any point: its tasks know the nodes only that got an address.
type nodeView struct {
	cluster       loom.ClusterID
	leaving, undo bool
}

func nodeViewOf(f *store.SpecFacts) nodeView {
	return nodeView{f.Ref.Operation.Cluster, f.Node.Leaving, f.Undo}
}

// nodeCache remembers nodes by view: for ten thousand tasks of ten thousand nodes
// they are read a few times.
type nodeCache struct {
	mu       sync.Mutex
	clusters map[nodeView]*clusterNodes
	// loading lets one task read while the others wait for it.
	loading map[nodeView]*sync.Mutex
}

func (c *nodeCache) lookup(f *store.SpecFacts) (*clusterNodes, *sync.Mutex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := nodeViewOf(f)
	if n := c.clusters[id]; n != nil && n.operation == int64(f.Ref.Operation.Number) && n.version >= f.NodesVersion {
		return n, nil
	}
	if c.loading[id] == nil {
		c.loading[id] = &sync.Mutex{}
	}
	return nil, c.loading[id]
}

func (c *nodeCache) put(id nodeView, n *clusterNodes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.clusters) >= maxClusters {
		for other := range c.clusters {
			delete(c.clusters, other)
			delete(c.loading, other)
			break
		}
	}
	c.clusters[id] = n
}

// nodes returns the nodes of a task's cluster, at least as new as its facts.
func (o *Operations) nodes(ctx context.Context, f *store.SpecFacts) (*clusterNodes, error) {
	n, loading := o.nodesCache.lookup(f)
	if n != nil {
		return n, nil
	}
	loading.Lock()
	defer loading.Unlock()
	if n, _ := o.nodesCache.lookup(f); n != nil {
		return n, nil
	}
	id := nodeViewOf(f)
	properties, all, err := store.NodeProperties(ctx, o.db, f.Tenant, id.cluster, id.leaving, id.undo)
	if err != nil {
		return nil, err
	}
	// The version was read before the nodes: they may be newer than it says, never
	// older.
	n = &clusterNodes{int64(f.Ref.Operation.Number), f.NodesVersion, properties, all, macro.NewFacts(string(f.Owner), properties)}
	o.nodesCache.put(id, n)
	return n, nil
}

// timeoutsFor is how long the time limits of plugin types are taken for what they
// were: they change rarely, and every attempt asks.
const timeoutsFor = 10 * time.Second

// LongestLimit is the longest limit set here or by default; plugin types may set
// longer ones, up to loom.MaxTaskLimit.
func (o *Operations) LongestLimit() time.Duration { return o.opts.Limits.Longest() }

// pluginTimeouts returns the time limits that plugin types set, by plugin.
func (o *Operations) pluginTimeouts(ctx context.Context) (map[string]loom.PluginTimeouts, error) {
	return o.timeoutsCache.Get(ctx, struct{}{}, time.Now, func(ctx context.Context) (map[string]loom.PluginTimeouts, error) {
		return store.PluginTimeouts(ctx, o.db)
	})
}

// limit is how long an attempt may take, by what carries it out.
func (o *Operations) limit(ctx context.Context, f *SpecFacts) (time.Duration, error) {
	timeouts, err := o.pluginTimeouts(ctx)
	return o.opts.Limits.Of(f.Action, timeouts, pluginsOf(f)...), err
}

// pluginsOf names the plugins that carry out an action.
func pluginsOf(f *SpecFacts) []string {
	switch {
	case f.Action == loom.ActionBootstrap:
		return f.Node.Automators
	case f.Action.OfNode():
		return []string{f.Provider.Type}
	case f.ServiceCopy != nil:
		return []string{f.ServiceCopy.Provisioner.Actions[f.Action].Type}
	}
	return nil
}

// permitsAge is how old the permits may be with which a machine that exists is worked
// on: reading them for every task would cost more than all else that a spec reads.
const permitsAge = time.Second

// maxPermits is of how many tenants they are kept.
const maxPermits = 1000

// permits returns what a tenant may: as it is now for a CREATE, else as it was a moment ago.
func (o *Operations) permits(ctx context.Context, tenant loom.TenantID, action loom.TaskAction) (loom.Permits, error) {
	read := func(ctx context.Context) (loom.Permits, error) { return store.Permits(ctx, o.db, tenant) }
	if action == loom.ActionCreate {
		return o.permitsCache.Renew(ctx, tenant, time.Now, read)
	}
	return o.permitsCache.Get(ctx, tenant, time.Now, read)
}
