package execution

import (
	"context"
	"errors"
	"slices"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// Looks makes what it takes to look at nodes. Those that are gone are left out.
func (o *Operations) Looks(ctx context.Context, nodes []loom.HealthNode) ([]loom.HealthLook, error) {
	facts, err := store.SpecFactsOfNodesAllTenants(ctx, o.db, o.prepared, nodes)
	if err != nil {
		return nil, err
	}
	looks := make([]loom.HealthLook, 0, len(nodes))
	for _, n := range nodes {
		f := facts[n.Node]
		if f == nil {
			continue
		}
		look, err := o.look(ctx, n, f)
		if err != nil {
			return nil, err
		}
		looks = append(looks, look)
	}
	return looks, nil
}

// JournalTarget makes what it takes to follow the journal of a service on a node. NotFound
// for one that is gone.
func (o *Operations) JournalTarget(ctx context.Context, j loom.Journal, n loom.HealthNode) (*loom.JournalTarget, error) {
	facts, err := store.SpecFactsOfNodesAllTenants(ctx, o.db, o.prepared, []loom.HealthNode{n})
	if err != nil {
		return nil, err
	}
	f := facts[n.Node]
	if f == nil {
		return nil, loom.NewError(loom.NotFound, "The node is gone.")
	}
	checks, err := o.lookFacts(ctx, n, f)
	if err != nil {
		return nil, err
	}
	t := &loom.JournalTarget{Journal: j, Start: checks.Services[j.Service].Provisioner.Actions[loom.ActionStart]}
	if logs := checks.Services[j.Service].Logs; logs != nil {
		t.Logs = *logs
	}
	if t.Spec, t.Trouble, err = o.lookSpec(ctx, f); err != nil || t.Trouble != "" {
		return t, err
	}
	nodes, err := o.nodes(ctx, f)
	if err != nil {
		return nil, err
	}
	// The log of a service has secrets as its tasks got them.
	expanded, problems := nodes.facts.Expand(t.Spec.Config, n.Node)
	if errs, _ := macro.Split(problems); len(errs) == 0 {
		t.Spec.Config = expanded
		hidden, _ := loom.SecretKeysOf(checks.Services).HiddenTexts(expanded)
		t.Spec.Sensitive = append(t.Spec.Sensitive, hidden...)
	}
	return t, nil
}

// lookFacts makes the facts of a task that signs in and no more, as tasks of the latest
// operation see the cluster, and reads the services of the cluster.
func (o *Operations) lookFacts(ctx context.Context, n loom.HealthNode, f *SpecFacts) (store.ClusterChecks, error) {
	f.Ref.Operation.Number, f.Action, f.Undo = n.Operation, loom.ActionKeys, false
	return o.checks(ctx, f)
}

// checks reads the services of a cluster and how they are checked, as an operation left them.
func (o *Operations) checks(ctx context.Context, f *SpecFacts) (store.ClusterChecks, error) {
	return o.checksCache.Get(ctx, f.Ref.Operation, time.Now, func(ctx context.Context) (store.ClusterChecks, error) {
		return store.ChecksOfCluster(ctx, o.db, f.Tenant, f.Ref.Operation.Cluster)
	})
}

// lookSpec builds the spec from such facts, or says why there is none.
func (o *Operations) lookSpec(ctx context.Context, f *SpecFacts) (*loom.TaskSpec, string, error) {
	spec, err := o.Build(ctx, f)
	var refused *SpecError
	if errors.As(err, &refused) {
		return nil, refused.Result.Message, nil
	}
	if err != nil {
		return nil, "", err
	}
	spec.Deadline = time.Time{}
	return spec, "", nil
}

func (o *Operations) look(ctx context.Context, n loom.HealthNode, f *SpecFacts) (loom.HealthLook, error) {
	look := loom.HealthLook{HealthNode: n}
	checks, err := o.lookFacts(ctx, n, f)
	if err != nil {
		return look, err
	}
	if i := checks.Rule.Interval; i != nil {
		if look.Off = *i == 0; look.Off {
			return look, nil
		}
		look.Least = time.Duration(*i) * time.Second
	}
	if look.Spec, look.Trouble, err = o.lookSpec(ctx, f); err != nil || look.Trouble != "" {
		return look, err
	}
	all, err := o.nodes(ctx, f)
	if err != nil {
		return look, err
	}
	for _, name := range slices.Sorted(slices.Values(f.Node.Services)) {
		service, known := checks.Services[name]
		if !known {
			continue
		}
		s := loom.ServiceLook{Name: name, Action: service.Provisioner.Actions[loom.ActionStart]}
		if !service.Defines(loom.ActionStart) {
			s.Action = service.Provisioner.Actions[loom.ActionInstall]
		}
		check, container := service.CheckOf()
		switch {
		case !service.Serves(n.ServiceStates[name]):
			s.Status = loom.HealthOff
		case check == nil && !container:
			s.Status = loom.HealthUnchecked
		case check != nil:
			s.Check = *check
			if check.HTTP != nil {
				request := *check.HTTP
				request.URL = all.facts.ExpandLink(request.URL, n.Node)
				s.Check.HTTP = &request
			}
		}
		if s.Status != loom.HealthOff {
			s.Files = service.Files
		}
		s.Container, s.Check = container, s.Check.WithDefaults()
		look.Services = append(look.Services, s)
	}
	return look, nil
}
