package clusters_test

import (
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// withStops returns the services of the bundle STOP actions.
func (b *bundle) withStops() {
	for _, name := range []string{"db", "web"} {
		s := service(name, []string{"base"})
		s.Provisioner.Actions[loom.ActionStop] = s.Provisioner.Actions[loom.ActionStart]
		s.Provisioner.Actions[loom.ActionConfigure] = s.Provisioner.Actions[loom.ActionStart]
		if name == "web" {
			s.Dependencies.Runtime = loom.PhaseDependency{Requires: []string{"db"}}
		}
		b.save(b.tenant, loom.KindService, s)
	}
}

// tasks returns "action service" of each task of a preview's plan, once each.
func tasks(v clusters.PreviewView) string {
	seen := map[string]bool{}
	var out []string
	for _, t := range v.Plan.Tasks {
		word := string(t.Action) + " " + t.Service
		if !seen[word] {
			seen[word] = true
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}

func TestServicesWithTheirClosure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withStops()
	id := b.active(3)
	const run, stopped, webStopped = `{"db": "started", "web": "started"}`, `{"db": "stopped", "web": "stopped"}`, `{"db": "started", "web": "stopped"}`
	for _, c := range []struct {
		kind                  loom.ChangeKind
		states, service, want string
		// changes is "change name old new because" of each line.
		changes []string
	}{
		{loom.ChangeStop, run, "db", "stop web, stop db", []string{"change db started stopped ", "change web started stopped It needs “db” to run."}},
		{loom.ChangeStop, run, "web", "stop web", []string{"change web started stopped "}},
		{loom.ChangeStart, run, "web", "start db, start web", []string{"change db started started “web” needs it to run.", "change web started started "}},
		{loom.ChangeStart, run, "db", "start db", []string{"change db started started "}},
		// Services that its stop took along start with it; one that was stopped alone does not.
		{loom.ChangeStart, stopped, "db", "start db, start web", []string{"change db stopped started ", "change web stopped started It needs “db” to run."}},
		{loom.ChangeStart, webStopped, "db", "start db", []string{"change db started started "}},
		{loom.ChangeRestart, run, "db", "stop web, stop db, start db, start web", []string{"restart db   ", "restart web   It needs “db” to run."}},
		{loom.ChangeStop, run, "", "stop web, stop db", nil},
	} {
		b.db.MustExec(`UPDATE nodes SET service_states = $2 WHERE cluster_id = $1`, int64(id), c.states)
		v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: c.kind, Cluster: id, Service: c.service})
		if err != nil {
			t.Fatal(err)
		}
		// Numbers follow levels: what must come first is first.
		if got := tasks(v); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.service, got, c.want)
		}
		seen := map[string]bool{}
		for _, change := range v.Changes {
			state := func(v any) string { s, _ := v.(string); return s }
			seen[strings.Join([]string{change.Change, change.Name, state(change.Old), state(change.New), change.Because}, " ")] = true
		}
		for _, line := range c.changes {
			if !seen[line] {
				t.Errorf("%s %s: no line %q in %v", c.kind, c.service, line, seen)
			}
		}
		if c.changes != nil && len(seen) != len(c.changes) {
			t.Errorf("%s %s: lines %v", c.kind, c.service, seen)
		}
		ref, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: c.kind, Service: c.service})
		if err != nil {
			t.Fatal(err)
		}
		plan, _, err := b.clusters.PlanOf(b.ctx, b.ana(), ref)
		if err != nil || len(plan.Tasks) != len(v.Plan.Tasks) || plan.Action != map[loom.ChangeKind]loom.ClusterAction{
			loom.ChangeStart: loom.StartServices, loom.ChangeStop: loom.StopServices, loom.ChangeRestart: loom.RestartServices}[c.kind] {
			t.Errorf("%s %s: the operation %s has %d tasks, the preview %d; %v", c.kind, c.service, plan.Action, len(plan.Tasks), len(v.Plan.Tasks), err)
		}
		b.finish(id, loom.ClusterActive)
		b.db.MustExec(`UPDATE nodes SET task_id = NULL WHERE cluster_id = $1`, int64(id))
	}
}

func TestServicesAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	for _, status := range []loom.ClusterStatus{loom.ClusterPending, loom.ClusterIncomplete, loom.ClusterInconsistent, loom.ClusterTerminated} {
		b.db.MustExec(`UPDATE clusters SET status = $2 WHERE id = $1`, int64(id), status)
		for _, kind := range []loom.ChangeKind{loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart} {
			_, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: kind})
			wantKind(t, err, loom.Conflict)
			_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id})
			wantKind(t, err, loom.Conflict)
			// That the service is not there comes before the state.
			_, err = b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: kind, Service: "ghost"})
			wantKind(t, err, loom.NotFound)
		}
	}
	_, err := b.clusters.Begin(b.ctx, b.actor("ben", loom.RoleUser), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeStop})
	wantKind(t, err, loom.NotFound)
}

// A plan without tasks still becomes an operation, and ends by itself.
func TestStopWithoutStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeStop, Cluster: id})
	if err != nil || len(v.Plan.Tasks) != 0 || !strings.Contains(strings.Join(v.Warnings, " "), "nothing runs") {
		t.Fatalf("%v, %v", v.Warnings, err)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	b.endOperations()
	if c := b.cluster(id); c.Status != loom.ClusterActive || c.Latest.Ref != ref || c.Latest.Status != loom.OperationComplete {
		t.Errorf("cluster %s, operation %s %s", c.Status, c.Latest.Ref, c.Latest.Status)
	}
}

// What is offered works now; for the rest there is a reason.
func TestActionsOfferWhatWorks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	actions, err := b.clusters.Actions(b.ctx, b.ana(), id)
	if err != nil || len(actions) != len(loom.ClusterChanges) {
		t.Fatalf("%v, %v", actions, err)
	}
	for _, kind := range loom.PreviewKinds {
		if why := actions[kind]; why != "" && kind != loom.ChangeRetry {
			t.Errorf("%s: %q", kind, why)
		}
	}
}
