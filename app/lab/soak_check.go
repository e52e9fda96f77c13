package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/provisioner/simcloud"
)

// check waits until nothing of an operation that is over is left to do and says what
// is wrong then; step is what it was to do.
func (l *soakLane) check(ctx context.Context, op loom.Operation, step soakStep) ([]string, error) {
	deadline := time.Now().Add(soakPatience)
	for {
		wrong, err := store.WrongAtRestAllTenants(ctx, l.System.DB, op.Row)
		if err != nil {
			return nil, err
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			return l.look(ctx, l.System.DB, op, step)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// look says what is wrong.
func (l *soakLane) look(ctx context.Context, q sqlx.ExtContext, op loom.Operation, step soakStep) ([]string, error) {
	wrong, err := store.WrongAtRestAllTenants(ctx, q, op.Row)
	if err != nil {
		return nil, err
	}
	tries, err := store.TaskTriesAllTenants(ctx, q, op.Row)
	if err != nil {
		return nil, err
	}
	wrong = append(wrong, l.checkTasks(op, tries)...)
	cluster, err := store.ClusterByID(ctx, q, op.Tenant, op.Ref.Cluster)
	if err != nil {
		return nil, err
	}
	if want := statusAfter(op); cluster.Status != want {
		wrong = append(wrong, fmt.Sprintf("the cluster is %s, not %s", cluster.Status, want))
	}
	all, err := store.NodesByCluster(ctx, q, op.Tenant, op.Ref.Cluster)
	if err != nil {
		return nil, err
	}
	wrong = append(wrong, l.checkMachines(cluster, all, op.Status == loom.OperationFailed)...)
	if op.Status == loom.OperationRolledBack {
		step.nodes, step.shape = len(step.before.hardware), step.before
	}
	if op.Status != loom.OperationFailed {
		wrong = append(wrong, step.differs(shapeOf(cluster, all))...)
	}
	if op.Status == loom.OperationComplete && step.change.Batch > 0 {
		down, err := store.MostDownAllTenants(ctx, q, op.Row)
		if err != nil {
			return nil, err
		}
		if down > step.change.Batch {
			wrong = append(wrong, fmt.Sprintf("%d nodes were down at once in a roll with batches of %d", down, step.change.Batch))
		}
	}
	orphans, err := store.OrphansAllTenants(ctx, q)
	for _, o := range orphans {
		wrong = append(wrong, fmt.Sprintf("machine %s of node %s counts as orphaned", o.Machine, o.Node))
	}
	return wrong, err
}

// statusAfter is what a cluster must be after an operation that ended in one of the
// ways that its step allows.
func statusAfter(op loom.Operation) loom.ClusterStatus {
	switch {
	case op.Status == loom.OperationFailed:
		return loom.ClusterInconsistent
	case op.Action == loom.ClusterDelete:
		return loom.ClusterTerminated
	}
	return loom.ClusterActive
}

// checkTasks compares what was accepted with what the simulated cloud saw: each task is
// recorded complete once, with an attempt that really did all it had to, once.
func (l *soakLane) checkTasks(op loom.Operation, tries []store.TaskTries) []string {
	var wrong []string
	done, begun := 0, 0
	for _, t := range tries {
		begun += t.Begun
		ref := loom.TaskRef{Operation: op.Ref, Number: t.Number}
		did, seen := l.books.Done(ref.String())
		if t.Status != string(loom.TaskComplete) {
			if op.Status == loom.OperationComplete || t.Status == string(loom.TaskFailed) && t.Failed == 0 {
				wrong = append(wrong, fmt.Sprintf("task %d (%s) is %s in an operation that is %s, after %d attempts that failed", t.Number, t.Action, t.Status, op.Status, t.Failed))
			}
			if seen > t.Begun {
				wrong = append(wrong, fmt.Sprintf("task %d (%s %s): the machine saw %d attempts, Loom knows of %d", t.Number, t.Action, t.Service, seen, t.Begun))
			}
			continue
		}
		done++
		if did[t.Accepted] != 1 {
			wrong = append(wrong, fmt.Sprintf("task %d (%s %s): attempt %d counts, and the machine saw it done %d times (attempts done: %v)",
				t.Number, t.Action, t.Service, t.Accepted, did[t.Accepted], did))
		}
		if seen > t.Begun {
			wrong = append(wrong, fmt.Sprintf("task %d (%s %s): the machine saw %d attempts, Loom knows of %d", t.Number, t.Action, t.Service, seen, t.Begun))
		}
	}
	l.soak.mu.Lock()
	defer l.soak.mu.Unlock()
	l.soak.tasks += done
	l.soak.attempts += begun
	return wrong
}

// checkMachines compares the nodes of a cluster with those of the simulated cloud;
// halfway says that their services may be in any state.
func (l *soakLane) checkMachines(cluster loom.Cluster, all []loom.Node, halfway bool) []string {
	report := l.books.Report()
	var wrong []string
	for _, key := range report.Doubled {
		wrong = append(wrong, "more than one machine was made for the key "+key)
	}
	for _, id := range report.Unknown {
		wrong = append(wrong, fmt.Sprintf("a machine %q was to be deleted that never was", id))
	}
	wrong = append(wrong, report.Overlaps...)
	machines := map[loom.NodeID]simcloud.Machine{}
	for _, m := range report.Live {
		if l.soak.rollouts && m.Cluster != cluster.ID.String() {
			continue // of another cluster of the fleet
		}
		if _, twice := machines[m.Node]; twice {
			wrong = append(wrong, fmt.Sprintf("node %s has two machines", m.Node))
		}
		machines[m.Node] = m
	}
	for _, n := range all {
		m, lives := machines[n.ID]
		delete(machines, n.ID)
		switch {
		case n.State != loom.NodeDeleted:
			wrong = append(wrong, compareNode(n, m, lives, halfway)...)
			if !halfway {
				wrong = append(wrong, compareServices(cluster, n, l.books.On(m.Key))...)
			}
		case lives:
			wrong = append(wrong, fmt.Sprintf("node %d is deleted and its machine %s lives", n.Number, m.ID))
		}
	}
	for _, m := range machines {
		wrong = append(wrong, fmt.Sprintf("machine %s belongs to no node of the cluster", m.ID))
	}
	return wrong
}

// compareNode compares a node that is there with its machine.
func compareNode(n loom.Node, m simcloud.Machine, lives, halfway bool) []string {
	if !lives {
		return []string{fmt.Sprintf("node %d is %s and has no machine", n.Number, n.State)}
	}
	var wrong []string
	differs := func(what, node, machine string) {
		if node != machine {
			wrong = append(wrong, fmt.Sprintf("node %d has the %s %q, its machine %q", n.Number, what, node, machine))
		}
	}
	id, _ := n.Results["providerid"].(string)
	differs("provider id", id, m.ID)
	differs("address", n.Addresses[loom.AccessV4], m.Address)
	differs("key", loom.IdempotencyKey(n.ID, n.Incarnation), m.Key)
	if halfway {
		return wrong
	}
	differs("state", string(n.State), string(loom.NodeReady))
	for _, service := range n.Services {
		differs("state of "+service, string(n.ServiceStates[service]), string(loom.ServiceStarted))
	}
	return wrong
}

// compareServices compares what was done to the machine of a node, in the order in which
// it saw it, with the services that the node must have.
func compareServices(cluster loom.Cluster, n loom.Node, there map[string]simcloud.Software) []string {
	var wrong []string
	for _, service := range n.Services {
		want := simcloud.Software{Running: true, Release: cluster.Services[service].Provisioner.Actions[loom.ActionInstall].Fields["release"]}
		if is := there[service]; is != want {
			wrong = append(wrong, fmt.Sprintf("%s on the machine of node %d is %+v, and must be %+v", service, n.Number, is, want))
		}
	}
	return wrong
}

// checkNotices waits until every notice was delivered and looks whether each
// operation told of its begin and its end.
func (l *soakLane) checkNotices(ctx context.Context) error {
	operations, err := l.operationCount(ctx)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(soakPatience)
	for {
		started, ended := l.told()
		if started == operations && ended == operations {
			return nil
		}
		if time.Now().After(deadline) {
			l.soak.fail(l, fmt.Sprintf("of %d operations, %d announced their start and %d their end", operations, started, ended))
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// told counts the notices of begins and of ends that arrived, each once however
// often it did.
func (l *soakLane) told() (started, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for notice := range l.notices {
		if strings.HasPrefix(notice, string(loom.HookStart)) {
			started++
		} else {
			ended++
		}
	}
	return started, ended
}

// operationCount counts the operations of all clusters of the lane.
func (l *soakLane) operationCount(ctx context.Context) (int, error) {
	ids := slices.Clone(l.made)
	n := 0
	for _, id := range ids {
		view, err := l.Clusters.Cluster(ctx, l.actor, id)
		if err != nil {
			return 0, err
		}
		if view.Latest != nil {
			n += view.Latest.Ref.Number
		}
	}
	return n, nil
}
