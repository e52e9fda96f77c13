package clusters_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

func TestStalePreviewOfAdding(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.made(2)
	v := b.previewAdd(id, "cache", "base")
	// A newer version is not what was shown.
	newer := service("cache", nil)
	newer.DefaultConfig = map[string]any{"cache": map[string]any{"mb": 128}}
	b.save(b.tenant, loom.KindService, newer)
	_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	e := wantKind(t, err, loom.Conflict)
	if e.Preview == "" || !strings.Contains(e.Message, "“cache” is now version 2, not 1") {
		t.Fatalf("%+v", e)
	}
	fresh, err := b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview)
	if err != nil || fresh.Hash == v.Hash || !reflect.DeepEqual(fresh.Added, []string{"cache"}) {
		t.Fatalf("fresh %+v, %v", fresh.Added, err)
	}
	// Nor is another cluster.
	if _, err := b.addServices(b.ana(), id, []string{"lone"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh))
	e = wantKind(t, err, loom.Conflict)
	if e.Preview == "" || !strings.Contains(e.Message, "The cluster changed") {
		t.Fatalf("%+v", e)
	}
	if fresh, err = b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview); err != nil {
		t.Fatal(err)
	}
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh)); err != nil {
		t.Fatal(err)
	}
	if now := b.shape(id); !slices.Contains(now.Services, "cache 2") || !slices.Contains(now.Services, "lone 1") {
		t.Errorf("cluster %+v", now)
	}
	// One whose service is gone cannot be made anew.
	b.runTasks("")
	gone := b.previewAdd(id, "bare")
	b.db.MustExec(`DELETE FROM catalog_versions WHERE kind = 'services' AND name = 'bare'`)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(gone))
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" || e.Unsat == nil || !strings.Contains(e.Message, "cannot be done any more") {
		t.Errorf("%+v", e)
	}
}

// Twenty at once: one begins, the others hear that it runs.
func TestAddingBeginsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.active(3)
	names := []string{"cache", "lone", "bare"}
	wins := []string{}
	for i, err := range together(12, func(i int) error {
		_, err := b.addServices(b.ana(), id, names[i%3:i%3+1], nil)
		return err
	}) {
		if err == nil {
			wins = append(wins, names[i%3])
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if len(wins) != 1 {
		t.Fatalf("%v began", wins)
	}
	now := b.shape(id)
	if want := append([]string{"base 1", "db 1", "web 1"}, wins[0]+" 1"); len(now.Services) != 4 || !slices.Contains(now.Services, want[3]) {
		t.Errorf("services %v, want %v", now.Services, want)
	}
	for _, n := range now.Nodes {
		for _, name := range names {
			if name != wins[0] && strings.Contains(n, name) {
				t.Errorf("node %s has %s", n, name)
			}
		}
	}
}

// A hook that refuses, and an abort while it is asked, leave the cluster as it was.
func TestAddingThatNeverBegins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.made(3)
	ops := execution.New(b.db.DB, b.ring, execution.Options{})
	if _, err := b.addServices(b.ana(), id, []string{"lone"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	before := b.shape(id)
	b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, b.tenant)
	for _, how := range []string{"refused", "aborted"} {
		revision := b.cluster(id).Revision
		ref, err := b.addServices(b.ana(), id, []string{"cache", "app", "bare"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		waiting := b.shape(id)
		if c := b.cluster(id); c.Latest.Status != loom.OperationNotSubmitted || len(waiting.Services) != 7 || waiting.Configs != 2 {
			t.Fatalf("the operation is %s, %+v", c.Latest.Status, waiting)
		}
		if how == "aborted" {
			_, err = ops.Abort(b.ctx, b.ana(), ref)
		} else {
			var delivery int64
			if err := b.db.Get(&delivery, `SELECT max(id) FROM hook_deliveries WHERE blocking AND status = 'waiting'`); err != nil {
				t.Fatal(err)
			}
			err = ops.RecordDelivery(b.ctx, loom.DeliveryID(delivery), loom.DeliveryOutcome{Status: loom.DeliveryRefused, Sent: true, Code: 409, Refusal: "Freeze."})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.endOperations()
		if now := b.shape(id); !reflect.DeepEqual(now, before) {
			t.Errorf("%s left\n%+v\nwant\n%+v", how, now, before)
		}
		if c := b.cluster(id); c.Revision <= revision || !c.Latest.Status.Final() {
			t.Errorf("%s: revision %d after %d, operation %s", how, c.Revision, revision, c.Latest.Status)
		}
	}
	// Without the hook it goes as if nothing had been.
	b.db.MustExec(`DELETE FROM hooks`)
	if _, err := b.addServices(b.ana(), id, []string{"cache", "app", "bare"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if now := b.shape(id); now.Status != loom.ClusterActive || len(now.Services) != 7 {
		t.Errorf("%+v", now)
	}
}
