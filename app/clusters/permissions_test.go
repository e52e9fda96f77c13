package clusters_test

import (
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
)

// Whoever may not know of a cluster hears NotFound from every use case, in the
// same words as for a cluster that does not exist, and changes nothing.
func TestForeignersSeeAndDoNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.attempts(ref, 3)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	node := v.Nodes[0].ID
	b.finish(ref.Cluster, loom.ClusterActive)
	preview, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	text := "mine"
	// calls on a cluster that a stranger tries; id is the cluster's.
	calls := func(actor loom.Actor, id loom.ClusterID) map[string]error {
		ref := loom.OperationRef{Cluster: id, Number: 1}
		task := loom.TaskRef{Operation: ref, Number: 1}
		out := map[string]error{}
		_, out["Cluster"] = b.clusters.Cluster(b.ctx, actor, id)
		_, out["Actions"] = b.clusters.Actions(b.ctx, actor, id)
		_, out["NodeRecord"] = b.clusters.NodeRecord(b.ctx, actor, id, node)
		_, out["Operations"] = b.clusters.Operations(b.ctx, actor, id)
		_, out["Operation"] = b.clusters.Operation(b.ctx, actor, ref)
		_, out["Tasks"] = b.clusters.Tasks(b.ctx, actor, ref, clusters.TaskFilter{})
		_, out["Task"] = b.clusters.Task(b.ctx, actor, task)
		_, _, out["PlanOf"] = b.clusters.PlanOf(b.ctx, actor, ref)
		_, _, out["Log"] = b.clusters.Log(b.ctx, actor, task, clusters.LogInput{})
		_, out["Reveal"] = b.clusters.Reveal(b.ctx, actor, id, node)
		_, out["Delete"] = b.clusters.Delete(b.ctx, actor, id, clusters.DeleteInput{})
		_, out["Preview"] = b.clusters.Preview(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: id})
		_, out["ChangeExpiry"] = b.clusters.ChangeExpiry(b.ctx, actor, id, time.Now().Add(time.Hour))
		_, out["Edit"] = b.clusters.Edit(b.ctx, actor, id, clusters.EditInput{Description: &text})
		for _, topic := range []string{"cluster:" + id.String(), "op:" + id.String() + "/1", "log:" + id.String() + "/1/1/1"} {
			out[topic[:3]] = b.clusters.MaySeeTopic(b.ctx, actor, topic)
		}
		return out
	}
	other := loom.Actor{Tenant: "t2", TenantName: "other", User: "ana", Role: loom.RoleAdmin, Via: "session"}
	super := loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	for name, actor := range map[string]loom.Actor{"same user of another tenant": other, "superadmin": super, "other user": b.actor("bob", loom.RoleUser)} {
		absent := calls(actor, 99_999_999)
		for call, err := range calls(actor, ref.Cluster) {
			if err == nil || loom.AsError(err).Kind != loom.NotFound {
				t.Errorf("%s, %s: %v", name, call, err)
				continue
			}
			if call == "Cluster" || call == "Delete" || call == "Operations" {
				want := loom.NewError(loom.NotFound, "There is no cluster %s.", ref.Cluster).Message
				if got := loom.AsError(err).Message; got != want || loom.AsError(absent[call]).Kind != loom.NotFound {
					t.Errorf("%s, %s: %q tells that there is one", name, call, got)
				}
			}
		}
		if _, err := b.clusters.PreviewByID(b.ctx, actor, preview.ID); loom.AsError(err).Kind != loom.NotFound {
			t.Errorf("%s reads the preview: %v", name, err)
		}
		if err := b.clusters.Discard(b.ctx, actor, preview.ID); loom.AsError(err).Kind != loom.NotFound {
			t.Errorf("%s discards the preview: %v", name, err)
		}
		if _, err := b.clusters.Apply(b.ctx, actor, applyOf(preview)); loom.AsError(err).Kind != loom.NotFound {
			t.Errorf("%s applies the preview: %v", name, err)
		}
		list, err := b.clusters.Clusters(b.ctx, actor, clusters.ListInput{})
		if err != nil || len(list.Items) != 0 || list.Total != 0 {
			t.Errorf("%s lists %d of %d, %v", name, len(list.Items), list.Total, err)
		}
	}
	// The template of one tenant is not another's.
	if _, err := b.clusters.Create(b.ctx, other, request(2)); loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("create from a foreign template: %v", err)
	}
	if _, err := b.clusters.FormFacts(b.ctx, other, "site", ""); loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("facts of a foreign template: %v", err)
	}
	after, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || after.Status != loom.ClusterActive || after.Description != "" || after.LatestOperation != 1 {
		t.Errorf("the cluster changed: %+v, %v", after.Cluster, err)
	}
	// The administrator of the tenant does see it.
	if _, err := b.clusters.Cluster(b.ctx, b.admin(), ref.Cluster); err != nil {
		t.Error(err)
	}
	if facts, err := b.clusters.FormFacts(b.ctx, b.ana(), "site", ""); err != nil || facts.Provider.Name != "lab" || len(facts.Services) != 3 {
		t.Errorf("%+v, %v", facts, err)
	}
}

func TestScopesOfTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	reader := b.ana()
	reader.Via, reader.Scopes = "token:ci", []loom.Scope{loom.ScopeRead}
	if _, err := b.clusters.Cluster(b.ctx, reader, ref.Cluster); err != nil {
		t.Error(err)
	}
	if _, err := b.clusters.Check(b.ctx, reader, request(2)); err != nil {
		t.Error(err)
	}
	v := b.preview(reader, request(2))
	_, err := b.clusters.Apply(b.ctx, reader, applyOf(v))
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Create(b.ctx, reader, request(2))
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Delete(b.ctx, reader, ref.Cluster, clusters.DeleteInput{})
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Reveal(b.ctx, reader, ref.Cluster, "x")
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Edit(b.ctx, reader, ref.Cluster, clusters.EditInput{})
	wantKind(t, err, loom.Forbidden)
}

func TestTopics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	id := ref.Cluster.String()
	super := loom.Actor{Tenant: loom.SuperTenant, User: "admin", Role: loom.RoleSuperadmin}
	for topic, ok := range map[string]bool{
		"clusters": true, "tenant": true, "user:me": true, "cluster:" + id: true, "op:" + id + "/1": true, "log:" + id + "/1/2/3": true,
		"system": false, "user:bob": false, "": false, "cluster:": false, "cluster:" + id + "/1": false, "op:" + id: false,
		"op:" + id + "/x": false, "op:" + id + "/0": false, "what:" + id: false, "cluster:00000099": false,
	} {
		if err := b.clusters.MaySeeTopic(b.ctx, b.ana(), topic); (err == nil) != ok {
			t.Errorf("%q: %v", topic, err)
		}
	}
	if err := b.clusters.MaySeeTopic(b.ctx, super, "system"); err != nil {
		t.Error(err)
	}
}

// TestForeignersReadNoNodesAndLogs is TestForeignersSeeAndDoNothing for what reads
// over several tasks or clusters.
func TestForeignersReadNoNodesAndLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.attempts(ref, 3)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	node := v.Nodes[0].ID
	log, err := b.clusters.Interleaved(b.ctx, b.ana(), clusters.LogSource{Operation: ref}, clusters.InterleavedInput{Whole: true})
	if err != nil || len(log.Lines) != 3 || log.Over {
		t.Fatalf("%+v, %v", log, err)
	}
	other := loom.Actor{Tenant: "t2", TenantName: "other", User: "ana", Role: loom.RoleAdmin, Via: "session"}
	super := loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	for name, actor := range map[string]loom.Actor{"same user of another tenant": other, "superadmin": super, "other user": b.actor("bob", loom.RoleUser)} {
		calls := map[string]error{}
		_, calls["OperationPage"] = b.clusters.OperationPage(b.ctx, actor, ref.Cluster, clusters.OperationListInput{})
		_, calls["TaskPage"] = b.clusters.TaskPage(b.ctx, actor, ref, clusters.TaskListInput{})
		_, calls["NodeByID"] = b.clusters.NodeByID(b.ctx, actor, node)
		_, calls["Interleaved"] = b.clusters.Interleaved(b.ctx, actor, clusters.LogSource{Operation: ref}, clusters.InterleavedInput{})
		_, calls["Interleaved of a node"] = b.clusters.Interleaved(b.ctx, actor, clusters.LogSource{Operation: ref, Node: node}, clusters.InterleavedInput{})
		for call, err := range calls {
			if err == nil || loom.AsError(err).Kind != loom.NotFound {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
		if page, err := b.clusters.Nodes(b.ctx, actor, loom.Page{}); err != nil || len(page.Items) != 0 {
			t.Errorf("%s lists %d nodes, %v", name, len(page.Items), err)
		}
		if found, err := b.clusters.NodeProperties(b.ctx, actor, ref.Cluster, nil); err != nil || len(found) != 0 {
			t.Errorf("%s reads %v, %v", name, found, err)
		}
	}
	for _, cursor := range []string{"x", "MQ", "MS4tMQ", "1.1", "====", "Li4u"} {
		_, err := b.clusters.Interleaved(b.ctx, b.ana(), clusters.LogSource{Operation: ref}, clusters.InterleavedInput{After: cursor})
		wantKind(t, err, loom.Invalid)
	}
}
