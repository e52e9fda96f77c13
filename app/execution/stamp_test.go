package execution_test

import (
	"reflect"
	"testing"
	"time"

	"loom/app/execution"
	"loom/app/loom"
)

// TestFactsComeWithTheAttempt: what the spec of a task needs comes with its begin, where
// the process knows what it has in common with others as that is now.
func TestFactsComeWithTheAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.seal("provider:lab", "api_password", "adm1n-secret")
	var steps []loom.TaskAction
	for range 20 {
		steps = append(steps, loom.ActionConfirm)
	}
	w.plan(loom.ClusterCreate, steps...)
	key := w.deliver(1)
	next := func(result loom.TaskResult) (taken execution.Taken, facts bool) {
		t.Helper()
		ends, err := w.ops.FinishTasks(ctx, "p1", []execution.Finished{{Key: key, Result: result}}, map[loom.TenantID]int{"t1": 1})
		if err != nil || len(ends.Taken) != 1 {
			t.Fatalf("%+v began, %v", ends.Taken, err)
		}
		key = ends.Taken[0].Key
		return ends.Taken[0], ends.Taken[0].Facts() != nil
	}
	spec := func() *loom.TaskSpec {
		t.Helper()
		s, err := w.ops.Spec(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		s.Deadline = time.Time{}
		return s
	}
	if _, known := next(loom.TaskResult{}); known {
		t.Error("facts came although nothing is known")
	}
	spec()
	taken, known := next(loom.TaskResult{})
	if !known {
		t.Fatal("no facts came")
	}
	built, err := w.ops.Build(ctx, taken.Facts())
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(built.Deadline); left < time.Minute {
		t.Errorf("%s are left", left)
	}
	built.Deadline = time.Time{}
	if read := spec(); !reflect.DeepEqual(built, read) {
		t.Errorf("built %+v\n read %+v", built, read)
	}
	// Another node's address is nobody's secret and read anew by its version.
	w.exec(`UPDATE nodes SET hostname = 'elsewhere'`)
	w.exec(`INSERT INTO node_changes (cluster_id, version) SELECT cluster_id, 7 FROM nodes ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 7`)
	if taken, known = next(loom.TaskResult{}); !known {
		t.Error("no facts came after a node changed")
	} else if built, err := w.ops.Build(ctx, taken.Facts()); err != nil || built.Hostname != "elsewhere" {
		t.Errorf("built %+v, %v", built, err)
	}
	for name, change := range map[string]func(){
		"a secret of the provider":  func() { w.exec(`DELETE FROM secrets WHERE entity = 'provider:lab'`) },
		"a secret of the cluster":   func() { w.seal("cluster:"+w.cluster.String(), "token", "t0ken") },
		"the cluster":               func() { w.exec(`UPDATE clusters SET config = '{"a": "b"}'`) },
		"keys of the owner":         func() { w.exec(`UPDATE users SET ssh_keys = '{one}'`) },
		"the resources":             func() { w.exec(`UPDATE tenants SET resource_set = resource_set + 1`) },
		"what the operation undoes": func() { w.exec(`UPDATE operations SET after = '{}'`) },
	} {
		change()
		if _, known := next(loom.TaskResult{}); known {
			t.Errorf("%s changed, but what was known before was taken for it", name)
		}
		spec()
		if _, known := next(loom.TaskResult{}); !known {
			t.Errorf("%s changed once, but nothing is known any more", name)
		}
	}
	// What a task learns in secret is sealed after the next one began.
	if _, known := next(loom.TaskResult{Result: map[string]any{"ssh-auth": map[string]any{"password": "pa55word"}}}); known {
		t.Error("facts came without what was learned in secret")
	}
	if s := spec(); !reflect.DeepEqual(s.Results["ssh-auth"], map[string]any{"password": "pa55word"}) {
		t.Errorf("the next one is told %v", s.Results)
	}
	if taken, _ = next(loom.TaskResult{}); taken.Facts() == nil {
		t.Error("no facts came")
	} else if s, err := w.ops.Build(ctx, taken.Facts()); err != nil || !reflect.DeepEqual(s.Results["ssh-auth"], map[string]any{"password": "pa55word"}) {
		t.Errorf("the one after it is told %v, %v", s.Results, err)
	}
}
