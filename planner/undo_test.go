package planner

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

func TestUndoGolden(t *testing.T) {
	t.Parallel()
	list, defined := example()
	for name, s := range defined {
		s.Provisioner.Actions[loom.ActionRemove] = loom.ServiceAction{Type: "shell"}
		defined[name] = s
	}
	made := State{Nodes: list, Services: defined}
	all := func(int) bool { return true }
	create, err := Make(loom.ClusterCreate, list, defined, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	// Up to the installation of app, and without what a failed task kept back.
	half := func(n int) bool { return create.Tasks[n-1].Level <= 5 }
	big := machines("small", "db", "web", "lb", "lb", "lb", "web")
	small := slices.Clone(big[:5])
	expand, err := MakeChange(Change{Before: State{Nodes: small, Services: shop()}, After: State{Nodes: big, Services: shop()}})
	if err != nil {
		t.Fatal(err)
	}
	added := slices.Clone(big[:5])
	added[2].Services = []string{"lb", "web"}
	add, err := Make(loom.AddServices, added, shop(), Scope{Services: []string{"web"}, Nodes: []loom.NodeID{"n3"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		in   RollbackInput
	}{
		{"create", RollbackInput{Plan: create, Done: all, After: made}},
		{"create_half", RollbackInput{Plan: create, Done: half, After: made}},
		{"create_nothing", RollbackInput{Plan: create, Done: func(int) bool { return false }, After: made}},
		{"create_machine", RollbackInput{Plan: create, After: made, HasMachine: func(id loom.NodeID) bool { return id == "n2" }}},
		{"expand", RollbackInput{Plan: expand, Done: all, Before: State{Nodes: small, Services: shop()}, After: State{Nodes: big, Services: shop()}}},
		{"expand_untold", RollbackInput{Plan: expand, Done: func(n int) bool { return expand.Tasks[n-1].Level <= 7 },
			Before: State{Nodes: small, Services: shop()}, After: State{Nodes: big, Services: shop()}}},
		{"add", RollbackInput{Plan: add, Done: all, Before: State{Nodes: small, Services: shop()}, After: State{Nodes: added, Services: shop()}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			plan, err := PlanRollback(test.in)
			if err != nil {
				t.Fatal(err)
			}
			checkShape(t, plan)
			golden.File(t, filepath.Join("testdata", "undo_"+test.name+".txt"), Text(plan))
		})
	}
	if _, err := PlanRollback(RollbackInput{Plan: create, Done: all, After: State{Nodes: list[:1], Services: defined}}); !errors.Is(err, loom.Invalid) {
		t.Errorf("undoing with another layout gives %v", err)
	}
}

// TestUndoReverses stops creates of random clusters anywhere: what was done is
// undone once and nothing else, and what was in order is undone in reverse.
func TestUndoReverses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 4))
		list, defined, _, _ := randomCase(r)
		for name, s := range defined {
			if r.IntN(2) == 0 {
				s.Provisioner.Actions[loom.ActionRemove] = loom.ServiceAction{Type: "shell"}
			}
			defined[name] = s
		}
		create, err := Make(loom.ClusterCreate, list, defined, Scope{})
		if err != nil {
			t.Fatal(err)
		}
		before := closure(len(create.Tasks), taskEdges(create))
		// What is done is closed: all before a task that is done is done.
		done := make([]bool, len(create.Tasks)+1)
		for v := range done {
			done[v] = v > 0 && r.IntN(3) > 0
		}
		for v := range done {
			for w := range done {
				if done[w] && before[v].has(w) {
					done[v] = true
				}
			}
		}
		undo, err := PlanRollback(RollbackInput{Plan: create, Done: func(n int) bool { return done[n] }, After: State{Nodes: list, Services: defined}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkShape(t, undo)
		at := map[string]int{}
		for _, task := range undo.Tasks {
			at[taskName(task.Node, task.Service, task.Action)] = task.Number
		}
		reverse := map[loom.TaskAction]loom.TaskAction{
			loom.ActionCreate: loom.ActionDelete, loom.ActionStart: loom.ActionStop, loom.ActionInstall: loom.ActionRemove}
		undone := make([]int, len(create.Tasks)+1)
		count := 0
		for _, task := range create.Tasks {
			action, is := reverse[task.Action]
			s := defined[task.Service]
			if is && done[task.Number] && (task.Service == "" || s.Defines(action)) {
				undone[task.Number] = at[taskName(task.Node, task.Service, action)]
				count++
				if undone[task.Number] == 0 {
					t.Fatalf("seed %d: task %d is not undone\n%s", seed, task.Number, Text(undo))
				}
			}
		}
		if count != len(undo.Tasks) {
			t.Fatalf("seed %d: %d tasks undo %d", seed, len(undo.Tasks), count)
		}
		after := closure(len(undo.Tasks), taskEdges(undo))
		for v := range undone {
			for w := range undone {
				// CREATEs of other nodes come before services for their addresses only.
				sameKind := v > 0 && w > 0 && (create.Tasks[v-1].Node == create.Tasks[w-1].Node || create.Tasks[v-1].Service != "")
				if sameKind && undone[v] > 0 && undone[w] > 0 && before[v].has(w) && create.Tasks[v-1].Action == create.Tasks[w-1].Action &&
					!after[undone[w]].has(undone[v]) && !scoped(defined, create.Tasks[v-1], create.Tasks[w-1]) {
					t.Fatalf("seed %d: task %d came before %d, but is not undone after it\n%s\n%s", seed, v, w, Text(create), Text(undo))
				}
			}
		}
	}
}

// TestAgain: of random plans that ended anywhere, what is left keeps its order and
// nothing else is in it; with nothing settled it is the plan itself.
func TestAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 6))
		plan, err := MakeChange(randomChange(r))
		if err != nil {
			t.Fatal(err)
		}
		same, err := PlanRetry(plan, func(int) bool { return false })
		if err != nil || Text(same) != Text(plan) {
			t.Fatalf("seed %d: with nothing settled (%v)\n%s\nwant\n%s", seed, err, Text(same), Text(plan))
		}
		before := closure(len(plan.Tasks), taskEdges(plan))
		settled := make([]bool, len(plan.Tasks)+1)
		for v := range settled {
			settled[v] = v > 0 && r.IntN(3) == 0
		}
		for v := range settled {
			for w := range settled {
				settled[v] = settled[v] || settled[w] && before[v].has(w)
			}
		}
		left, err := PlanRetry(plan, func(v int) bool { return settled[v] })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkShape(t, left)
		// A task may be there twice; both keep the order of their levels.
		names := map[string][]int{}
		for _, task := range left.Tasks {
			name := taskName(task.Node, task.Service, task.Action)
			names[name] = append(names[name], task.Number)
		}
		now := make([]int, len(settled))
		count := 0
		for _, task := range plan.Tasks {
			if name := taskName(task.Node, task.Service, task.Action); !settled[task.Number] {
				if len(names[name]) == 0 {
					t.Fatalf("seed %d: task %d is lost", seed, task.Number)
				}
				now[task.Number], names[name] = names[name][0], names[name][1:]
				count++
			}
		}
		if count != len(left.Tasks) {
			t.Fatalf("seed %d: %d tasks are left, want %d", seed, len(left.Tasks), count)
		}
		after := closure(len(left.Tasks), taskEdges(left))
		for v := range now {
			for w := range now {
				if now[v] > 0 && now[w] > 0 && before[v].has(w) != after[now[v]].has(now[w]) {
					t.Fatalf("seed %d: the order of tasks %d and %d is another", seed, v, w)
				}
			}
		}
	}
}

// scoped reports whether services install in the scope of their node: undoing puts
// all nodes in order then, or none by way of a third service.
func scoped(defined map[string]loom.Service, tasks ...loom.PlanTask) bool {
	for _, s := range defined {
		if s.Dependencies.Install.Scope == "node" {
			return true
		}
	}
	return false
}
