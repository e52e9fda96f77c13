package loom

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestJudgeList: machines are found by id or key, and a list that has lost too many is not
// believed.
func TestJudgeList(t *testing.T) {
	t.Parallel()
	expect := func(n int) (all []MachineExpected) {
		for i := range n {
			all = append(all, MachineExpected{NodeID(fmt.Sprint("n", i)), fmt.Sprint("m", i), fmt.Sprint("k", i)})
		}
		return all
	}
	list := func(states ...MachineState) (all []TaggedMachine) {
		for i, s := range states {
			if s != StateMissing {
				all = append(all, TaggedMachine{ID: fmt.Sprint("m", i), State: s})
			}
		}
		return all
	}
	r, s, m := StateRunning, StateStopped, StateMissing
	for _, c := range []struct {
		name     string
		expected int
		listed   []TaggedMachine
		want     []MachineState
		believed bool
	}{
		{"all run", 3, list(r, r, r), []MachineState{r, r, r}, true},
		{"one of one is gone", 1, list(m), []MachineState{m}, true},
		{"one of two stopped", 2, list(s, r), []MachineState{s, r}, true},
		{"both are gone", 2, nil, []MachineState{m, m}, false},
		{"one gone, one stopped", 3, list(m, s, r), []MachineState{m, s, r}, false},
		{"two of ten", 10, list(m, s, r, r, r, r, r, r, r, r), []MachineState{m, s, r, r, r, r, r, r, r, r}, true},
		{"three of ten", 10, list(m, s, m, r, r, r, r, r, r, r), []MachineState{m, s, m, r, r, r, r, r, r, r}, false},
		{"a state that is not said", 1, []TaggedMachine{{ID: "m0"}}, []MachineState{StateOther}, true},
		{"by its key", 1, []TaggedMachine{{ID: "other", Key: "k0", State: r}}, []MachineState{r}, true},
		{"nothing expected", 0, list(r), nil, true},
	} {
		states, believed := JudgeList(expect(c.expected), c.listed)
		if believed != c.believed || len(states) != c.expected {
			t.Errorf("%s: believed %v, %v", c.name, believed, states)
		}
		for i, want := range c.want {
			if got := states[NodeID(fmt.Sprint("n", i))].State; got != want {
				t.Errorf("%s: machine %d is %s, want %s", c.name, i, got, want)
			}
		}
	}
}

// TestGoneNeedsTwoLists: whatever a provider says in whatever order, a machine is gone only
// after two lists that lack it, with none between that has it, both since it stopped
// answering and a minute apart.
func TestGoneNeedsTwoLists(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 9))
	states := []MachineState{StateRunning, StateStopped, StateOther, StateMissing, StateMissing, StateMissing}
	gone := 0
	for range 20_000 {
		start := time.Unix(1_000_000, 0)
		down := start.Add(time.Duration(random.IntN(300)) * time.Second)
		var l Listed
		var since time.Time // of the first list in a row, since it is down, that lacks it
		at := start
		for range 1 + random.IntN(6) {
			at = at.Add(time.Duration(1+random.IntN(90)) * time.Second)
			l.State, l.At = states[random.IntN(len(states))], at
			switch { // as the database does
			case l.State != StateMissing:
				l.MissingSince = time.Time{}
			case l.MissingSince.IsZero() || l.MissingSince.Before(down):
				l.MissingSince = at
			}
			if l.State != StateMissing || at.Before(down) {
				since = time.Time{}
			} else if since.IsZero() {
				since = at
			}
		}
		status, message := l.judge(down)
		want := !since.IsZero() && at.Sub(since) >= MissingFor
		if (status == HealthGone) != want || message == "" {
			t.Fatalf("%+v, down since %v: %s, want gone: %v", l, down, status, want)
		}
		if want {
			gone++
		}
	}
	if gone < 1000 {
		t.Errorf("only %d machines were gone", gone)
	}
}

// TestSettleIncidents: every trouble is an incident once, whatever was open before.
func TestSettleIncidents(t *testing.T) {
	t.Parallel()
	kinds := []Trouble{{Kind: IncidentService, Service: "a"}, {Kind: IncidentService, Service: "b"}, {Kind: IncidentDisk}, {Kind: IncidentUnreachable}, {Kind: IncidentStopped}, {Kind: IncidentSignIn}}
	for bits := range 1 << len(kinds) {
		for was := range 1 << len(kinds) {
			var open []Incident
			var now []Trouble
			for i, k := range kinds {
				if was>>i&1 == 1 && (k.Kind != IncidentStopped || was>>(i-1)&1 == 0) { // a machine has one at a time
					open = append(open, Incident{ID: int64(i), Trouble: k})
				}
				if bits>>i&1 == 1 && (k.Kind != IncidentStopped || bits>>(i-1)&1 == 0) {
					now = append(now, k)
				}
			}
			goingOn, ended, begun := SettleIncidents(open, now)
			if len(goingOn)+len(ended) != len(open) || len(goingOn)+len(begun) != len(now) {
				t.Fatalf("%v, now %v: going on %v, ended %v, begun %v", open, now, goingOn, ended, begun)
			}
			for _, i := range goingOn {
				if !i.Same(i.Trouble) {
					t.Fatal(i)
				}
			}
		}
	}
}
