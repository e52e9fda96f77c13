package simcloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"loom/app/loom"
)

// Books is the cloud with its books, in memory; NewBooks makes one and Open
// one that a file keeps.
type Books struct {
	mu       sync.Mutex
	machines map[string]*Machine
	order    []string
	keyed    map[string][]string // ids of all machines ever made, by key
	journal  *journal

	asked    map[string]int // calls of Create, by key
	unknown  []string
	effects  map[attempt]*record
	open     map[string]attempt             // attempt at work, by node
	software map[string]map[string]Software // by key of the machine and service
	overlaps []string
	late     int
	// gone are processes that are dead or stood still for too long.
	gone map[int]bool
}

type attempt struct {
	task   string
	number int
}

// record is what came of an attempt.
type record struct {
	Effect
	began, completed int
}

// NewBooks makes an empty cloud.
func NewBooks() *Books {
	return &Books{machines: map[string]*Machine{}, keyed: map[string][]string{}, asked: map[string]int{},
		effects: map[attempt]*record{}, open: map[string]attempt{}, software: map[string]map[string]Software{}, gone: map[int]bool{}}
}

// Create makes a machine.
func (l *Books) Create(_ context.Context, w Want) (Machine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done, err := l.sync(true)
	if err != nil {
		return Machine{}, err
	}
	defer done()
	now := time.Now()
	l.asked[w.Key]++
	if w.Token && w.Key != "" {
		for _, id := range l.keyed[w.Key] {
			if m := l.machines[id]; m.Lives(now) {
				return *m, nil
			}
		}
	}
	m := w.Machine
	m.Made, m.Gone, m.State = now, time.Time{}, loom.StateRunning
	m.ID = "mock-" + string(m.Node)
	for n := 2; l.machines[m.ID] != nil; n++ {
		m.ID = fmt.Sprintf("mock-%s-%d", m.Node, n)
	}
	l.add(m)
	return m, l.journal.write(entry{Made: &m})
}

func (l *Books) add(m Machine) {
	l.machines[m.ID] = &m
	l.order = append(l.order, m.ID)
	l.keyed[m.Key] = append(l.keyed[m.Key], m.ID)
}

// Find returns the machines that are there.
func (l *Books) Find(_ context.Context, q Query) ([]Machine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done, err := l.sync(false)
	if err != nil {
		return nil, err
	}
	defer done()
	now := time.Now()
	if q.ID != "" {
		if m := l.machines[q.ID]; m != nil && m.Lives(now) {
			return []Machine{*m}, nil
		}
		return nil, nil
	}
	var found []Machine
	ids := l.order
	if q.Key != "" {
		ids = l.keyed[q.Key]
	}
	for _, id := range ids {
		if m := l.machines[id]; m.Lives(now) && now.Sub(m.Made) >= q.Lag {
			found = append(found, *m)
		}
	}
	return found, nil
}

// Delete makes a machine cease to be.
func (l *Books) Delete(_ context.Context, id string, linger time.Duration) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done, err := l.sync(true)
	if err != nil {
		return false, err
	}
	defer done()
	now := time.Now()
	m := l.machines[id]
	switch {
	case m == nil:
		l.unknown = append(l.unknown, id)
		return false, nil
	case !m.Lives(now):
		return false, nil
	case m.Gone.IsZero():
		m.Gone = now.Add(linger)
		err = l.journal.write(entry{Gone: m.ID, At: m.Gone})
	}
	return true, err
}

// Look looks at a machine; one that is there answers, and all works there.
func (l *Books) Look(ctx context.Context, look Look) (Sight, error) {
	for _, q := range []Query{{ID: look.ID}, {Key: look.Key}} {
		if q == (Query{}) {
			continue
		}
		if found, err := l.Find(ctx, q); err != nil || len(found) > 0 {
			return Sight{Answers: err == nil}, err
		}
	}
	return Sight{}, nil
}

// Begin notes an attempt at work, and whether another one is, on the same
// machine.
func (l *Books) Begin(_ context.Context, e Effect) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := attempt{e.Task, e.Attempt}
	r := l.effects[key]
	if r == nil {
		r = &record{Effect: e}
		l.effects[key] = r
	}
	r.began++
	if other, busy := l.open[string(e.Node)]; busy && other != key && !l.gone[e.Process] && !l.gone[l.effects[other].Process] {
		l.overlaps = append(l.overlaps, fmt.Sprintf("attempt %d of task %s began on node %s while attempt %d of task %s was running",
			e.Attempt, e.Task, e.Node, other.number, other.task))
	}
	l.open[string(e.Node)] = key
	return nil
}

// End notes that an attempt is no longer at work.
func (l *Books) End(_ context.Context, e Effect, done bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := attempt{e.Task, e.Attempt}
	if r := l.effects[key]; r != nil && done {
		if l.gone[r.Process] {
			l.late++
		}
		r.completed++
		// What a process that stood still ends behind the back of another changes
		// nothing here: nobody could know of it (docs/faults.md).
		if !l.gone[r.Process] || l.open[string(e.Node)] == key {
			l.change(r.Effect)
		}
	}
	if l.open[string(e.Node)] == key {
		delete(l.open, string(e.Node))
	}
	return nil
}

// change notes what an action that was done makes of a service.
func (l *Books) change(e Effect) {
	s := l.software[e.Key][e.Service]
	switch e.Action {
	case loom.ActionInstall:
		s.Release = e.Release
	case loom.ActionStart, loom.ActionStop:
		s.Running = e.Action == loom.ActionStart
	default:
		return
	}
	if l.software[e.Key] == nil {
		l.software[e.Key] = map[string]Software{}
	}
	l.software[e.Key][e.Service] = s
}

// On returns the services of the machine of a key, by name.
func (l *Books) On(key string) map[string]Software {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.software[key])
}

// Abandon says that a process is dead, or stands still long enough that others
// have its work: what it is at work on counts for nothing. One that goes on may
// also begin what it was about to begin.
func (l *Books) Abandon(process int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[process] = true
}

// Welcome says that a process is new: its number may have been another's.
func (l *Books) Welcome(process int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.gone, process)
}

// Report is what the books say.
type Report struct {
	// Live machines, oldest first.
	Live []Machine
	// Creates counts the calls, Made the machines.
	Creates, Made int
	// Doubled are keys of which more than one machine was ever made, Unknown what
	// was to be deleted and never was, Overlaps attempts at work side by side.
	Doubled, Unknown, Overlaps []string
	// Late counts attempts that ended after their process was given up.
	Late int
}

// Report sums up.
func (l *Books) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{Unknown: slices.Clone(l.unknown), Overlaps: slices.Clone(l.overlaps), Late: l.late}
	now := time.Now()
	for _, id := range l.order {
		if m := l.machines[id]; m.Lives(now) {
			r.Live = append(r.Live, *m)
		}
	}
	r.Made = len(l.order)
	for key, ids := range l.keyed {
		if key != "" && len(ids) > 1 {
			r.Doubled = append(r.Doubled, key)
		}
	}
	for _, n := range l.asked {
		r.Creates += n
	}
	slices.Sort(r.Doubled)
	return r
}

// Done returns the numbers of the attempts of a task that did all they had to,
// with how often each did, and how often the task was begun.
func (l *Books) Done(task string) (done map[int]int, begun int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done = map[int]int{}
	// Attempts are few and numbered from 1 with gaps, so they are looked up.
	for key, r := range l.effects {
		if key.task == task {
			begun += r.began
			if r.completed > 0 {
				done[key.number] = r.completed
			}
		}
	}
	return done, begun
}

// Forget drops what the books say of attempts and of services, once they were looked
// at.
func (l *Books) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.effects)
	clear(l.open)
	clear(l.software)
}
