package work_test

import (
	"context"
	"testing"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/jobs/work"
)

// writing is a machine whose journal a test writes.
type writing func(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string

// Follow calls the function.
func (w writing) Follow(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string {
	return w(ctx, t, sink)
}

// TestJournal: a provisioner of the tenant follows a journal; when it ends, its reader is told.
func TestJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.addTenant("t2", 1)
	cluster, nodes := w.cluster("t1", 1)
	plan := loom.Plan{Action: loom.ClusterCreate, Tasks: []loom.PlanTask{{Number: 1, Node: nodes[0], Action: loom.ActionCreate, Level: 1, Rank: 1}}, Gates: []loom.Gate{{}}}
	plan.Edges = []loom.Edge{{From: 1, To: plan.EndVertex()}}
	op := w.insert("t1", cluster, plan)
	following := func(p *work.Provisioner) {
		p.Fleet = fleet.New(w.db.DB)
		p.Follower = writing(func(ctx context.Context, target *loom.JournalTarget, sink loom.Sink) string {
			if target.Spec == nil || target.Spec.Node != nodes[0] || len(target.Logs.Files) != 1 {
				t.Errorf("target: %+v", target)
			}
			sink.Log("stdout", "one")
			<-ctx.Done()
			return ""
		})
	}
	runner := newRunner(nil)
	w.scheduler()
	w.provisioner(runner, 10, following, func(p *work.Provisioner) { p.OnlyTenant = "t2" })
	first := w.provisioner(runner, 10, following)
	w.ends(op, time.Minute, loom.OperationComplete)
	w.exec(`UPDATE nodes SET state = 'ready', services = '{web}'`)
	w.exec(`UPDATE clusters SET services = '{"web": {"name": "web", "logs": {"files": ["/var/log/web.log"]}}}'`)

	ana, journals := loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}, fleet.New(w.db.DB)
	id, err := journals.OpenJournal(t.Context(), ana, loom.Journal{Cluster: cluster, Node: nodes[0], Service: "web", Lines: 10, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (loom.Journal, []loom.JournalLine) {
		j, lines, err := journals.Journal(t.Context(), ana, id, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return j, lines
	}
	w.eventually(time.Minute, "a line", func() bool {
		_, lines := read()
		return len(lines) == 1 && lines[0].Text == "one"
	})
	first.stop(t)
	if j, _ := read(); !j.Ended || j.Message != loom.JournalLost {
		t.Errorf("the journal of a process that ended: %+v", j)
	}
	w.eventually(time.Minute, "the River job to be done", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'follow_journal' AND state = 'completed'`) == 1
	})
}
