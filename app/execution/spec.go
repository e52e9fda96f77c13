package execution

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// Unbuildable says that an attempt cannot run because of what the cluster holds:
// the result it ends with. Trying again would not help.
type Unbuildable struct{ Result loom.TaskResult }

// Error gives the message of the result.
func (u *Unbuildable) Error() string { return u.Result.Message }

func unbuildable(format string, args ...any) error {
	no := false
	return &Unbuildable{loom.TaskResult{Status: -1, Message: fmt.Sprintf(format, args...), Retryable: &no}}
}

// SpecFacts are what the spec of a task is built from, secrets still sealed.
type SpecFacts = store.SpecFacts

// SpecFacts reads what the specs of started attempts are built from, for many at
// once. Those that do not hold their task any more are left out.
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
		return nil, loom.NewError(loom.Conflict, "Attempt %d does not hold its task any more.", key.Attempt)
	}
	return o.Build(ctx, f)
}

// Build makes the spec of a started attempt. It holds revealed secrets and lives
// in memory only. An *Unbuildable error is the outcome of the attempt, any other
// one is trouble of ours and may pass.
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
	if err := o.reveal(s, f); err != nil {
		return nil, err
	}
	may, err := o.permits(ctx, f.Tenant, f.Action)
	if err != nil {
		return nil, err
	}
	s.Reach = may.Reach()
	if refused := may.Check(s.Provider); len(refused) > 0 && f.Action == loom.ActionCreate {
		return nil, unbuildable("%s", refused[0].Message)
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
	return s, fillService(s, f, nodes)
}

// reveal opens the sealed values: admin fields of the provider, over them the
// fields given for the cluster, the cluster's own key pair, and what earlier tasks
// of the node learned in secret.
func (o *Operations) reveal(s *loom.TaskSpec, f *store.SpecFacts) error {
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
				return unbuildable("The sealed field %s of %s cannot be opened; was the key of this installation changed?", v.Field, v.Entity)
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
	ofConfig, _ := loom.HiddenTexts(s.Config, false)
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
// config with its macros expanded.
func fillService(s *loom.TaskSpec, f *store.SpecFacts, nodes *clusterNodes) error {
	if f.ServiceCopy == nil {
		return unbuildable("The cluster has no service “%s” any more.", f.Service)
	}
	action, ok := f.ServiceCopy.Provisioner.Actions[f.Action]
	if !ok {
		return unbuildable("The service “%s” has no action “%s”.", f.Service, f.Action)
	}
	s.Service = &loom.TaskService{Name: f.Service, Action: action}
	expanded, problems := nodes.facts.Expand(s.Config, f.Node.ID)
	if errs, _ := macro.Split(problems); len(errs) > 0 {
		texts := make([]string, 0, macro.MaxProblems)
		for _, p := range errs[:min(len(errs), macro.MaxProblems)] {
			texts = append(texts, p.String())
		}
		return unbuildable("Exception while expanding macros: %s", strings.Join(texts, "; "))
	}
	s.Config = expanded
	return nil
}
