package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/wiring"
)

// live makes and deletes clusters until all faults were struck.
func (l *soakLane) live(ctx context.Context) error {
	for {
		if err := l.cluster(ctx); err != nil {
			return err
		}
		l.soak.mu.Lock()
		l.soak.lives++
		l.soak.mu.Unlock()
		if l.soak.enough() || l.soak.fault != "" {
			break
		}
	}
	return l.checkNotices(ctx)
}

// cluster is the life of one: made, grown, changed in other ways, shrunk, deleted;
// after each step it is looked over.
func (l *soakLane) cluster(ctx context.Context) error {
	l.life++
	l.mu.Lock()
	l.recent = nil
	l.mu.Unlock()
	l.books.Forget()
	name := fmt.Sprintf("soak-%d", l.life)
	id, err := l.create(ctx, name)
	if err != nil {
		return err
	}
	l.made = append(l.made, id)
	shape, _, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	l.latest, l.back, l.past = 1, 2, map[int]soakShape{}
	made := soakStep{kind: loom.ChangeCreate, nodes: l.soak.nodes, shape: shape}
	if err := l.settle(ctx, loom.OperationRef{Cluster: id, Number: 1}, made); err != nil {
		return err
	}
	return l.lifeOf(ctx, id)
}

// create makes a cluster, now and then through a process that is killed right
// before or after the commit; then whoever asks looks whether it is there, and
// asks again if not.
func (l *soakLane) create(ctx context.Context, name string) (loom.ClusterID, error) {
	if faults := l.draw.request("clusters.Create"); faults != "" && !l.soak.enough() {
		committed, err := l.request(ctx, faults, string(loom.ChangeCreate), name, l.lookup, strconv.Itoa(l.soak.nodes))
		if err != nil {
			return 0, err
		}
		list, err := l.Clusters.Clusters(ctx, l.actor, clusters.ListInput{Q: name})
		if err != nil {
			return 0, err
		}
		var found []loom.ClusterID
		for _, c := range list.Items {
			if c.Name == name {
				found = append(found, c.ID)
			}
		}
		switch {
		case committed && len(found) == 1:
			return found[0], nil
		case committed || len(found) > 0:
			return 0, fmt.Errorf("the request for %s was killed (%s) and left %d clusters", name, faults, len(found))
		}
	}
	ref, err := l.Clusters.Create(ctx, l.actor, soakCluster(name, l.url, l.lookup, l.soak.nodes))
	return ref.Cluster, err
}

// begin begins an operation on a cluster, now and then through a process that is
// killed.
func (l *soakLane) begin(ctx context.Context, ref loom.OperationRef, s soakStep) error {
	if faults := l.draw.request("clusters.execute"); faults != "" && !l.soak.enough() {
		change, err := json.Marshal(s.change)
		if err != nil {
			return err
		}
		committed, err := l.request(ctx, faults, string(s.kind), ref.Cluster.String(), string(change))
		if err != nil {
			return err
		}
		_, err = l.Clusters.Operation(ctx, l.actor, ref)
		switch {
		case committed && err == nil:
			return nil
		case committed:
			return fmt.Errorf("the request was killed after its commit (%s) and its operation cannot be read: %w", faults, err)
		case !errors.Is(err, loom.NotFound):
			return fmt.Errorf("the request was killed before its commit (%s) and reading operation %s says: %w", faults, ref, err)
		}
	}
	began, err := beginChange(ctx, l.Clusters, l.actor, ref.Cluster, s.kind, s.change)
	if err == nil && began != ref {
		err = fmt.Errorf("it became operation %s instead of %s", began, ref)
	}
	return err
}

// beginChange begins an operation of a kind.
func beginChange(ctx context.Context, uc *clusters.Clusters, actor loom.Actor, id loom.ClusterID, kind loom.ChangeKind, change clusters.ChangeInput) (loom.OperationRef, error) {
	if kind == loom.ChangeDelete {
		return uc.Delete(ctx, actor, id, clusters.DeleteInput{})
	}
	return uc.Begin(ctx, actor, clusters.PreviewInput{Kind: kind, Cluster: id, Change: change})
}

// request asks through a process of its own, which faults are to kill; committed
// says that it is to die after the commit.
func (l *soakLane) request(ctx context.Context, faults string, args ...string) (committed bool, err error) {
	cmd, output, err := l.command(l.dir+"/web", faults, append([]string{"soak-request", l.url}, args...)...)
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })() //nolint:errcheck // it may have ended
	slot := &soakSlot{lane: l}
	slot.read(output, func(text string) {
		if what, struck := strings.CutPrefix(text, "fault: "); struck {
			l.note(loom.ProcessWeb, what)
		}
	})
	if err := cmd.Wait(); !killed(err) {
		return false, fmt.Errorf("a request ended by itself before it was killed at %s (%v):\n%s", faults, err, slot.tail())
	}
	return strings.Contains(faults, ".after:"), nil
}

// SoakRequest is the subcommand that requests one operation of a lane: it is what
// dies when a web process does.
type SoakRequest struct {
	URL  string          `arg:""`
	Kind loom.ChangeKind `arg:""`
	// Args are name, key and nodes of a new cluster, id and change of another, or the request
	// about a rollout.
	Args []string `arg:""`
}

// Run sends the request.
func (c *SoakRequest) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	demo, err := s.Accounts.Tenant(ctx, wiring.CliActor(), "demo")
	if err != nil {
		return err
	}
	actor := loom.SystemActor(demo.ID, demo.Name)
	actor.User, actor.Role = loom.AdminUser, loom.RoleAdmin
	last := c.Args[len(c.Args)-1]
	if c.Kind == soakAskKind {
		var a soakAsk
		if err := json.Unmarshal([]byte(last), &a); err != nil {
			return err
		}
		return a.send(ctx, s.Clusters, actor)
	}
	if c.Kind == loom.ChangeCreate {
		nodes, err := strconv.Atoi(last)
		if err != nil {
			return err
		}
		_, err = s.Clusters.Create(ctx, actor, soakCluster(c.Args[0], c.URL, c.Args[1], nodes))
		return err
	}
	var change clusters.ChangeInput
	id, ok := loom.ParseClusterID(c.Args[0])
	if err := json.Unmarshal([]byte(last), &change); !ok || err != nil {
		return fmt.Errorf("cluster %q, change %q: %w", c.Args[0], last, err)
	}
	_, err = beginChange(ctx, s.Clusters, actor, id, c.Kind, change)
	return err
}

// soakCluster is the request for a cluster.
func soakCluster(name, url, lookup string, nodes int) loom.CreateInput {
	return loom.CreateInput{Name: name, Template: "soak", Machines: nodes, LeaseMillis: -1, ProviderFields: map[string]any{
		"simulator": url, "delay_ms": 5, "boot_ms": 50, "linger_ms": 20, "lookup": lookup, "lie_percent": 1, "hang_percent": 1, "hang_ms": 500,
	}}
}

// dead is the error of a process that ended by itself.
func (l *soakLane) dead() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.died
}

// settle waits for the end of an operation and looks it over.
func (l *soakLane) settle(ctx context.Context, ref loom.OperationRef, s soakStep) error {
	op, err := l.untilOver(ctx, ref)
	if err != nil {
		return err
	}
	l.ended = op.Status
	if op.Status != loom.OperationComplete && op.Status != s.fails {
		l.soak.fail(l, fmt.Sprintf("operation %s (%s) is %s: %s", ref, op.Action, op.Status, op.Message))
		return nil
	}
	l.soak.end(s.kind, op.Status)
	wrong, err := l.check(ctx, op, s)
	if len(wrong) > 0 {
		l.soak.fail(l, wrong...)
	}
	return err
}

// untilOver waits until an operation is over, and for as long as it gets on: a busy host
// takes leases away that are as short as here, and makes it slow.
func (l *soakLane) untilOver(ctx context.Context, ref loom.OperationRef) (loom.Operation, error) {
	deadline, done := time.Now().Add(soakPatience), 0
	for {
		op, err := l.Clusters.Operation(ctx, l.actor, ref)
		if err != nil {
			return op, err
		}
		if n := op.Tasks[loom.TaskComplete]; n > done {
			deadline, done = time.Now().Add(soakPatience), n
		}
		if op.Status.Final() {
			return op, nil
		}
		switch {
		case l.dead() != nil:
			return op, l.dead()
		case time.Now().After(deadline):
			l.soak.fail(l, fmt.Sprintf("operation %s (%s) is still %s and got no further for %s", ref, op.Action, op.Status, soakPatience))
			return op, fmt.Errorf("operation %s does not end", ref)
		}
		select {
		case <-ctx.Done():
			return op, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
