package lab

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"loom/app/loom"
	"loom/provisioner/simcloud"
)

// soakState is how a machine is from some time on, whatever Loom knows of it.
type soakState struct {
	since time.Time
	state loom.MachineState
	// hung says that it runs and does not answer.
	hung bool
	// failing are services that do not work there.
	failing []string
}

func (s soakState) answers() bool { return s.state == loom.StateRunning && !s.hung }

func (s soakState) well() bool { return s.answers() && len(s.failing) == 0 }

// soakMachine is a machine with how it was, the latest last.
type soakMachine struct {
	simcloud.Machine
	past []soakState
	// deleted says that it never comes back, whatever fails or is mended later.
	deleted bool
}

func (m *soakMachine) now() soakState { return m.past[len(m.past)-1] }

// change changes how the machine is from now on.
func (m *soakMachine) change(do func(s *soakState)) {
	next := m.now()
	next.since = time.Now()
	do(&next)
	if m.deleted {
		next.state = loom.StateMissing
	}
	m.past = append(m.past, next)
}

// held returns for how long something had been true of the machine at a time, 0 if it was not.
func (m *soakMachine) held(at time.Time, what func(soakState) bool) time.Duration {
	var since time.Time
	for _, s := range m.past {
		switch {
		case s.since.After(at):
		case !what(s):
			since = time.Time{}
		case since.IsZero():
			since = s.since
		}
	}
	if since.IsZero() {
		return 0
	}
	return at.Sub(since)
}

// soakCloud is the cloud of one provider: machines fail behind the back of Loom, and its lists
// are not what they must be.
type soakCloud struct {
	*simcloud.Books
	provider string
	// cut reports whether a process reaches no machine.
	cut func(process int) bool

	mu       sync.Mutex
	machines []*soakMachine // the newest last
	// list is what is wrong with lists, until a time.
	list  string
	until time.Time
}

// The faults of lists.
const (
	listEmpty = "empty"
	listHalf  = "half"
	listLate  = "late"
	listFails = "fails"
)

// listDelay is how late a list comes.
const listDelay = 20 * time.Second

// machine finds a machine, nil if there never was one.
func (c *soakCloud) machine(is func(m *soakMachine) bool) *soakMachine {
	for _, m := range slices.Backward(c.machines) {
		if is(m) {
			return m
		}
	}
	return nil
}

func withKey(key string) func(m *soakMachine) bool {
	return func(m *soakMachine) bool { return m.Key == key && key != "" }
}

// Create makes a machine that works.
func (c *soakCloud) Create(ctx context.Context, w simcloud.Want) (simcloud.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, err := c.Books.Create(ctx, w)
	if err != nil {
		return made, err
	}
	if c.machine(func(m *soakMachine) bool { return m.ID == made.ID }) == nil {
		c.machines = append(c.machines, &soakMachine{Machine: made, past: []soakState{{since: made.Made, state: loom.StateRunning}}})
	}
	return made, nil
}

// Find returns machines as they are; a list of all may be wrong.
func (c *soakCloud) Find(ctx context.Context, q simcloud.Query) ([]simcloud.Machine, error) {
	found, err := c.Books.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	fault := ""
	if q.ID == "" && q.Key == "" && time.Now().Before(c.until) {
		fault = c.list
	}
	var listed []simcloud.Machine
	for i, m := range found {
		is := c.machine(func(other *soakMachine) bool { return other.ID == m.ID }).now()
		if m.State = is.state; m.State != loom.StateMissing && fault != listEmpty && (fault != listHalf || i%2 > 0) {
			listed = append(listed, m)
		}
	}
	c.mu.Unlock()
	switch fault {
	case listFails:
		return nil, errors.New("the list fails")
	case listLate:
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(listDelay):
		}
	}
	return listed, nil
}

// Delete makes a machine cease to be.
func (c *soakCloud) Delete(ctx context.Context, id string, linger time.Duration) (bool, error) {
	there, err := c.Books.Delete(ctx, id, linger)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.machine(func(m *soakMachine) bool { return m.ID == id }); m != nil && err == nil {
		m.deleted = true
		m.change(func(*soakState) {})
	}
	return there, err
}

// Look looks at a machine.
func (c *soakCloud) Look(_ context.Context, look simcloud.Look) (simcloud.Sight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machine(func(m *soakMachine) bool { return m.ID == look.ID })
	if m == nil {
		m = c.machine(withKey(look.Key))
	}
	if m == nil || !m.now().answers() || c.cut(look.Process) {
		return simcloud.Sight{}, nil
	}
	return simcloud.Sight{Answers: true, Failing: m.now().failing}, nil
}

// Begin notes an attempt at work. One that signs in to the machine needs an answer.
func (c *soakCloud) Begin(ctx context.Context, e simcloud.Effect) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Action {
	case loom.ActionCreate, loom.ActionDelete, loom.ActionReboot:
	default:
		if m := c.machine(withKey(e.Key)); m == nil || !m.now().answers() || c.cut(e.Process) {
			return errors.New("the machine does not answer")
		}
	}
	return c.Books.Begin(ctx, e)
}

// End notes that an attempt is no longer at work. What is started or rebooted works again.
func (c *soakCloud) End(ctx context.Context, e simcloud.Effect, done bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machine(withKey(e.Key))
	switch {
	case m == nil || !done:
	case e.Action == loom.ActionStart:
		m.change(func(s *soakState) {
			s.failing = slices.DeleteFunc(slices.Clone(s.failing), func(name string) bool { return name == e.Service })
		})
	case e.Action == loom.ActionReboot && m.now().state != loom.StateMissing:
		m.change(func(s *soakState) { s.state, s.hung = loom.StateRunning, false })
	}
	return c.Books.End(ctx, e, done)
}

// of returns the machines of the nodes of a cluster, the newest of each, by node.
func (c *soakCloud) of(cluster loom.ClusterID) []*soakMachine {
	newest := map[loom.NodeID]*soakMachine{}
	var nodes []loom.NodeID
	for _, m := range c.machines {
		if m.Cluster == cluster.String() {
			if newest[m.Node] == nil {
				nodes = append(nodes, m.Node)
			}
			newest[m.Node] = m
		}
	}
	slices.Sort(nodes)
	all := make([]*soakMachine, len(nodes))
	for i, n := range nodes {
		all[i] = newest[n]
	}
	return all
}

// at returns the machine that a node had at a time, nil for none.
func (c *soakCloud) at(node loom.NodeID, at time.Time) *soakMachine {
	return c.machine(func(m *soakMachine) bool { return m.Node == node && m.Made.Before(at) })
}

// mend makes machines of a cluster work that are still there, and lists true. It returns the
// nodes whose machine is gone. What came back although Loom replaced it is deleted.
func (c *soakCloud) mend(ctx context.Context, cluster loom.ClusterID) (gone []loom.NodeID, err error) {
	books := c.Books.Report()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	newest := c.of(cluster)
	for _, m := range newest {
		lives := slices.ContainsFunc(books.Live, func(live simcloud.Machine) bool { return live.ID == m.ID })
		switch {
		case !lives:
			gone = append(gone, m.Node)
		case !m.now().well():
			m.change(func(s *soakState) { s.state, s.hung, s.failing = loom.StateRunning, false, nil })
		}
	}
	for _, m := range books.Live {
		if m.Cluster == cluster.String() && !slices.ContainsFunc(newest, func(n *soakMachine) bool { return n.ID == m.ID }) {
			_, gone := c.Books.Delete(ctx, m.ID, 0)
			err = errors.Join(err, gone)
		}
	}
	return gone, err
}
