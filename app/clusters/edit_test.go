package clusters_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestChangeExpiryAndEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	leased := siteTemplate()
	leased.Administration.Lease = loom.LeaseRule{Initial: 8 * 3_600_000, Max: 24 * 3_600_000, Step: 6 * 3_600_000}
	b.save(b.tenant, loom.KindTemplate, leased)
	ref := b.create(b.ana(), 2)
	_, err := b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, time.Now().Add(time.Hour))
	wantKind(t, err, loom.Invalid) // pending
	b.finish(ref.Cluster, loom.ClusterActive)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Lease.Rule != "step" {
		t.Fatalf("%+v, %v", v.Lease, err)
	}
	_, err = b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, v.Created.Add(15*time.Hour))
	wantKind(t, err, loom.Invalid)
	changed, err := b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, v.Lease.Latest)
	if err != nil || changed.Revision != v.Revision+1 {
		t.Fatal(err)
	}
	again, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || !again.Expires.Equal(v.Lease.Latest) {
		t.Errorf("expires %v, %v", again.Expires, err)
	}
	_, err = b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, time.Time{})
	wantKind(t, err, loom.Invalid)

	text := "for the demo"
	edited, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &text, Labels: map[string]string{"a": "b"}})
	if err != nil || edited.Description != text || edited.Labels["a"] != "b" || !edited.Expires.Equal(v.Lease.Latest) {
		t.Errorf("%+v, %v", edited, err)
	}
	bad := "\x00"
	_, err = b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &bad})
	wantKind(t, err, loom.Invalid)
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'update' AND kind = 'cluster'`); n != 2 {
		t.Errorf("%d audit entries", n)
	}
	b.finish(ref.Cluster, loom.ClusterTerminated)
	_, err = b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &text})
	wantKind(t, err, loom.Conflict)
}

// Who writes about a cluster changes what he changed, not what somebody else changed
// meanwhile; where both changed the same, the second is told.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	labels := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	seen := &clusters.EditedText{Description: "one", Labels: labels("a", "1")}
	for name, c := range map[string]struct {
		stored      clusters.EditedText
		description *string
		labels      map[string]string
		want        clusters.EditedText
		clash       bool
	}{
		"nobody else":         {stored: *seen, description: new("two"), labels: labels("a", "2"), want: clusters.EditedText{Description: "two", Labels: labels("a", "2")}},
		"he changed labels":   {stored: clusters.EditedText{Description: "one", Labels: labels("b", "1")}, description: new("two"), labels: labels("a", "1"), want: clusters.EditedText{Description: "two", Labels: labels("b", "1")}},
		"he wrote the text":   {stored: clusters.EditedText{Description: "three", Labels: labels("a", "1")}, description: new("one"), labels: labels(), want: clusters.EditedText{Description: "three", Labels: labels()}},
		"both wrote the same": {stored: clusters.EditedText{Description: "two", Labels: labels("a", "1")}, description: new("two"), want: clusters.EditedText{Description: "two", Labels: labels("a", "1")}},
		"both wrote":          {stored: clusters.EditedText{Description: "three", Labels: labels("a", "1")}, description: new("two"), clash: true},
		"both have labels":    {stored: clusters.EditedText{Description: "one", Labels: labels("b", "1")}, labels: labels("a", "2"), clash: true},
	} {
		_, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &c.stored.Description, Labels: c.stored.Labels})
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: c.description, Labels: c.labels, Seen: seen})
		var conflict *clusters.EditConflict
		switch {
		case c.clash:
			wantKind(t, err, loom.Conflict)
			if !errors.As(err, &conflict) || conflict.Stored.Description != c.stored.Description || !maps.Equal(conflict.Stored.Labels, c.stored.Labels) {
				t.Errorf("%s: %v, %+v", name, err, conflict)
			}
		case err != nil || got.Description != c.want.Description || !maps.Equal(got.Labels, c.want.Labels):
			t.Errorf("%s: %q %v, %v", name, got.Description, got.Labels, err)
		}
	}
}

func TestOwnerIsHandedOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	b.db.MustExec(`INSERT INTO users (tenant_id, id, disabled) VALUES ('t1', 'ben', false), ('t1', 'idle', true), ('t2', 'eve', false)`)
	preview, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: id})
	if err != nil {
		t.Fatal(err)
	}
	owner := func(id string) clusters.EditInput { return clusters.EditInput{Owner: new(loom.UserID(id))} }
	for _, name := range []string{"idle", "nobody"} { // only administrators learn who there is
		_, err = b.clusters.Edit(b.ctx, b.ana(), id, owner(name))
		if e := wantKind(t, err, loom.Invalid); !strings.HasPrefix(e.Fields[0].Message, "There is no user with this id") {
			t.Errorf("%q: %v", name, e.Fields)
		}
	}
	_, err = b.clusters.Edit(b.ctx, b.actor("ben", loom.RoleUser), id, owner("ben"))
	wantKind(t, err, loom.NotFound)
	for _, name := range []string{"idle", "eve", "nobody", "", "\x00"} {
		_, err := b.clusters.Edit(b.ctx, b.admin(), id, owner(name))
		if e := wantKind(t, err, loom.Invalid); e.Fields[0].Field != "ownerId" {
			t.Errorf("%q: %v", name, e.Fields)
		}
	}
	c, err := b.clusters.Edit(b.ctx, b.admin(), id, owner("ben"))
	if err != nil || c.Owner.User != "ben" {
		t.Fatalf("%v, %v", c.Owner, err)
	}
	_, err = b.clusters.Cluster(b.ctx, b.ana(), id)
	wantKind(t, err, loom.NotFound)
	// What the one before previewed is a view of it too.
	_, err = b.clusters.PreviewByID(b.ctx, b.ana(), preview.ID)
	wantKind(t, err, loom.NotFound)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(preview))
	wantKind(t, err, loom.NotFound)
	wantKind(t, b.clusters.Discard(b.ctx, b.ana(), preview.ID), loom.NotFound)
	if _, err := b.clusters.PreviewByID(b.ctx, b.actor("ana", loom.RoleAdmin), preview.ID); err != nil {
		t.Errorf("an administrator’s own preview: %v", err)
	}
	if _, err := b.clusters.Cluster(b.ctx, b.actor("ben", loom.RoleUser), id); err != nil {
		t.Error(err)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'update' AND before->>'ownerId' = 'ana' AND after->>'ownerId' = 'ben'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
}

// TestProtection: no machine of a protected cluster is deleted or exchanged, at once, by
// preview, by a retry or on the way back; what is broken can be repaired, and it may grow.
func TestProtection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	protect := func(on bool) {
		t.Helper()
		if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: &on}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "protected") || !strings.Contains(e.Message, "Unprotect it first") {
			t.Errorf("%s: %v", what, e.Message)
		}
	}
	larger := clusters.PreviewInput{Kind: loom.ChangeResize, Cluster: id, Change: clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}}}
	shown := b.previewOf(loom.ChangeResize, id, larger.Change)
	protect(true)
	_, err := b.clusters.Begin(b.ctx, b.ana(), larger)
	refused("resize", err)
	_, err = b.clusters.Preview(b.ctx, b.ana(), larger)
	refused("preview of a resize", err)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(shown))
	refused("a resize that was shown before", err)
	_, err = b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 2})
	refused("shrink", err)
	_, err = b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{})
	refused("delete", err)
	if len(m.machines) != 3 {
		t.Errorf("%d machines", len(m.machines))
	}

	// Growing and mending go on.
	b.starts(clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: 4}})
	m.run(nil)
	b.starts(clusters.PreviewInput{Kind: loom.ChangeRepair, Cluster: id, Change: clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1001)}}})
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)

	// The way back from a change of hardware is one as well, and so is going on with it.
	protect(false)
	resize := b.starts(larger)
	m.run(fault(loom.ActionInstall, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	protect(true)
	refused("retry of a resize", b.retry(id, resize.Number))
	refused("rollback of a resize", b.rollback(id, resize.Number))
	protect(false)
	if err := b.rollback(id, resize.Number); err != nil {
		t.Fatal(err)
	}
	m.run(fault(loom.ActionConfirm, ""))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	protect(true)
	last := b.latest(id).Ref.Number
	if v, err := b.clusters.Preview(b.ctx, b.admin(), clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id}); err == nil && v.ByAction[loom.ActionDelete] > 0 {
		t.Errorf("the retry of a rollback deletes %d machines", v.ByAction[loom.ActionDelete])
	}
	protect(false)
	if err := b.retry(id, last); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
}
