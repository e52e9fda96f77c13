package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/wiring"
)

// soakShape is what the layout of a cluster comes to: the hardware type of each node
// by number, and the versions of its services.
type soakShape struct {
	hardware map[int]string
	versions map[string]int
}

// soakStep is a change of a cluster and what is to come of it.
type soakStep struct {
	kind   loom.ChangeKind
	change clusters.ChangeInput
	// nodes is how many there are afterwards, shape what the cluster is to be: nodes
	// that it does not name are new ones.
	nodes int
	shape soakShape
	// before is what it was.
	before soakShape
	// fails is how the operation may end instead of being complete: rolled_back, which
	// leads to what was before, or failed.
	fails loom.OperationStatus
}

// soakChange is what happens to a cluster between its growing and its shrinking.
type soakChange string

const (
	soakRepair   soakChange = "repair"   // the machine of a node is replaced
	soakUpgrade  soakChange = "upgrade"  // newer services, batch by batch
	soakResize   soakChange = "resize"   // machines of other hardware, batch by batch
	soakRollback soakChange = "rollback" // what happened before is taken back
	soakUndone   soakChange = "undone"   // an upgrade that fails and takes itself back
	soakFailed   soakChange = "failed"   // one that fails and is rolled back afterwards
)

var soakChanges = []soakChange{soakRepair, soakUpgrade, soakResize, soakRollback, soakUndone, soakFailed}

// soakServices are those of its clusters, soakFront that which follows another one.
var soakServices = []string{"soak-base", "soak-app", soakFront}

const soakFront = "soak-front"

// shapeOf returns the shape of a cluster with nodes, of which those that are deleted do
// not count.
func shapeOf(c loom.Cluster, all []loom.Node) soakShape {
	shape := soakShape{hardware: map[int]string{}, versions: map[string]int{}}
	for _, n := range all {
		if n.State != loom.NodeDeleted {
			shape.hardware[n.Number] = n.HardwareType
		}
	}
	for name, s := range c.Services {
		shape.versions[name] = s.Version
	}
	return shape
}

// read reads the shape of a cluster and the nodes that count.
func (l *soakLane) read(ctx context.Context, id loom.ClusterID) (soakShape, []loom.Node, error) {
	c, err := store.ClusterByID(ctx, l.System.DB, l.actor.Tenant, id)
	if err != nil {
		return soakShape{}, nil, err
	}
	all, err := store.NodesByCluster(ctx, l.System.DB, l.actor.Tenant, id)
	return shapeOf(c, all), slices.DeleteFunc(slices.Clone(all), func(n loom.Node) bool { return n.State == loom.NodeDeleted }), err
}

// differs says in what a cluster is not as the step was to make it.
func (s soakStep) differs(is soakShape) []string {
	var wrong []string
	if len(is.hardware) != s.nodes {
		wrong = append(wrong, fmt.Sprintf("the cluster has %d nodes after its %s, not %d", len(is.hardware), s.kind, s.nodes))
	}
	for number, hardware := range is.hardware {
		was, known := s.shape.hardware[number]
		switch {
		case known && hardware != was:
			wrong = append(wrong, fmt.Sprintf("node %d has the hardware %q after the %s, not %q", number, hardware, s.kind, was))
		case !known && s.nodes <= len(s.shape.hardware):
			wrong = append(wrong, fmt.Sprintf("node %d came with the %s", number, s.kind))
		}
	}
	if s.nodes > 0 && !maps.Equal(is.versions, s.shape.versions) {
		wrong = append(wrong, fmt.Sprintf("the services have the versions %v after the %s, not %v", is.versions, s.kind, s.shape.versions))
	}
	slices.Sort(wrong)
	return wrong
}

// lifeOf grows a cluster, changes it and shrinks it, and deletes it.
func (l *soakLane) lifeOf(ctx context.Context, id loom.ClusterID) error {
	few := max(1, l.soak.nodes/4)
	was, _, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	l.past = map[int]soakShape{}
	n := len(was.hardware) + 1 + l.draw.number(few)
	if err := l.step(ctx, id, soakStep{kind: loom.ChangeExpand, change: clusters.ChangeInput{Machines: n}, nodes: n, shape: was}); err != nil {
		return err
	}
	for range max(1, l.soak.changes) {
		if err := l.change(ctx, id, l.draw.change()); err != nil {
			return err
		}
	}
	if was, _, err = l.read(ctx, id); err != nil {
		return err
	}
	if n = len(was.hardware) - 1 - l.draw.number(few); n > 0 {
		if err := l.step(ctx, id, soakStep{kind: loom.ChangeShrink, change: clusters.ChangeInput{Machines: n}, nodes: n, shape: was}); err != nil {
			return err
		}
	}
	return l.step(ctx, id, soakStep{kind: loom.ChangeDelete})
}

// step carries out a change and looks it over. What a rollback may lead back to is
// remembered.
func (l *soakLane) step(ctx context.Context, id loom.ClusterID, s soakStep) error {
	was, _, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	ref := loom.OperationRef{Cluster: id, Number: l.latest + 1}
	if err := l.begin(ctx, ref, s); err != nil {
		return fmt.Errorf("%s of cluster %s: %w", s.kind, id, err)
	}
	l.latest++
	l.past[l.latest], s.before = was, was
	return l.settle(ctx, ref, s)
}

// change changes a cluster in some way.
func (l *soakLane) change(ctx context.Context, id loom.ClusterID, how soakChange) error {
	was, nodes, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	s := soakStep{nodes: len(nodes), shape: was, change: clusters.ChangeInput{Batch: 2 + l.draw.number(min(4, max(1, len(nodes)/2)))}}
	switch how {
	case soakRepair:
		s.kind, s.change = loom.ChangeRepair, clusters.ChangeInput{Nodes: []loom.NodeID{nodes[l.draw.number(len(nodes))].ID}}
		return l.step(ctx, id, s)
	case soakResize:
		s.kind, s.change.HardwareType = loom.ChangeResize, "soak-large"
		if was.hardware[nodes[0].Number] == s.change.HardwareType {
			s.change.HardwareType = "soak-small"
		}
		s.change.MinHealthy = new(int) // a batch may hold all nodes with the front
		s.shape.hardware = map[int]string{}
		for number := range was.hardware {
			s.shape.hardware[number] = s.change.HardwareType
		}
	case soakRollback:
		s = l.rollback(l.back)
	default:
		return l.upgrade(ctx, id, s, how)
	}
	l.back = l.latest + 1
	return l.step(ctx, id, s)
}

// rollback leads to before an operation.
func (l *soakLane) rollback(of int) soakStep {
	return soakStep{kind: loom.ChangeRollback, change: clusters.ChangeInput{Operation: of}, nodes: len(l.past[of].hardware), shape: l.past[of]}
}

// upgrade takes new versions of some services, good ones or such as fail here and
// there.
func (l *soakLane) upgrade(ctx context.Context, id loom.ClusterID, s soakStep, how soakChange) error {
	s.kind, s.change.Services = loom.ChangeUpgrade, l.draw.some(soakServices)
	if slices.Contains(s.change.Services, soakFront) {
		s.change.MinHealthy = new(int) // a batch may hold all nodes with it
	}
	fails := loom.TaskAction("")
	switch how {
	case soakUndone:
		s.fails, s.change.OnFailure = loom.OperationRolledBack, loom.OnFailureUndo
	case soakFailed:
		s.fails = loom.OperationFailed
	}
	if s.fails != "" {
		fails = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart}[l.draw.number(3)]
	}
	versions, err := l.release(ctx, s.change.Services, fails)
	if err != nil {
		return err
	}
	s.shape.versions = maps.Clone(s.shape.versions)
	maps.Copy(s.shape.versions, versions)
	if err := l.step(ctx, id, s); err != nil {
		return err
	}
	if s.fails == "" {
		l.back = l.latest
		return nil
	}
	// Clusters and upgrades that come later are to get one that works.
	if _, err := l.release(ctx, s.change.Services, ""); err != nil {
		return err
	}
	if l.ended == loom.OperationRolledBack {
		return nil
	}
	// Where nothing happened to fail, it would when a task ran again.
	return l.step(ctx, id, l.rollback(l.latest))
}

// release stores a new version of each of some services and gives its number; the
// action that is named fails then on some nodes, for good.
func (l *soakLane) release(ctx context.Context, services []string, fails loom.TaskAction) (map[string]int, error) {
	bundle, err := catalog.DecodeFolder(wiring.Sub(benchCatalog, soakCatalog))
	if err != nil {
		return nil, err
	}
	versions := map[string]int{}
	l.releases++
	for _, entry := range bundle.Entries[loom.KindService] {
		s, ok := entry.(*loom.Service)
		if !ok || !slices.Contains(services, s.Name) {
			continue
		}
		s.Provisioner.Actions[loom.ActionInstall].Fields["release"] = strconv.Itoa(1 + l.releases) // the folder has the first
		if fails != "" {
			maps.Copy(s.Provisioner.Actions[fails].Fields, map[string]string{"fail_percent": "30", "give_up": "true"})
		}
		saved, _, err := l.Catalog.Save(ctx, l.actor, loom.KindService, catalog.SaveInput{Entry: s})
		if err != nil {
			return nil, err
		}
		versions[s.Name] = saved.Meta().Version
	}
	return versions, nil
}

// change returns the next kind of change: each in turn, each time in another order.
func (d *soakDraw) change() soakChange {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.changes) == 0 {
		d.changes = slices.Clone(soakChanges)
		d.random.Shuffle(len(d.changes), func(i, j int) { d.changes[i], d.changes[j] = d.changes[j], d.changes[i] })
	}
	next := d.changes[0]
	d.changes = d.changes[1:]
	return next
}

// some returns at least one of a list, in its order.
func (d *soakDraw) some(of []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	which := 1 + d.random.IntN(1<<len(of)-1)
	var some []string
	for i, one := range of {
		if which>>i&1 == 1 {
			some = append(some, one)
		}
	}
	return some
}
