package clusters_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestRemoveServices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	b.withRoles()
	id := b.made(3)
	if _, err := b.addServices(b.ana(), id, []string{"cache", "app", "bare"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	_, err := b.begin(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: []string{"cache"}})
	e := wantKind(t, err, loom.Unsolvable)
	if err := says(err, "app", "cache"); err != nil {
		t.Error(err)
	}
	// What would help names the whole list; it was tried, so it works.
	var help []string
	for _, s := range e.Unsat.Suggestions {
		if len(s.Services) > 0 {
			help = s.Services
		}
	}
	same(t, "suggestion", help, []string{"app", "cache"})
	v := b.previewOf(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: append(help, "bare")})
	if !strings.HasPrefix(v.Summary(), "Removes 3 services from the cluster, runs ") && !strings.Contains(v.Summary(), "0 tasks") {
		t.Errorf("summary %q", v.Summary())
	}
	if !slices.Contains(lines(v), "remove service bare@1000: It defines no action for that, so nothing runs.") {
		t.Errorf("changes %v", lines(v))
	}
	if !slices.Contains(v.Warnings, "“cache” has no remove action: its files stay on the machines.") {
		t.Errorf("warnings %v", v.Warnings)
	}
	config := b.shape(id).Config
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	now := b.shape(id)
	same(t, "services", now.Services, []string{"base 1", "db 2", "web 2"})
	if now.Status != loom.ClusterActive || !reflect.DeepEqual(now.Config, config) || len(b.before(ref).Services) != 6 {
		t.Errorf("%+v", now)
	}
	same(t, "nodes", now.Nodes, []string{"1000 [base db] [shell]", "1001 [base web] [shell]", "1002 [base web] [shell]"})

	for _, c := range []struct {
		names []string
		kind  loom.Kind
		texts []string
	}{
		{nil, loom.Invalid, []string{"services", "Name the services"}},
		{[]string{"ghost"}, loom.Unsolvable, []string{"ghost is not on the cluster"}},
		{[]string{"base"}, loom.Unsolvable, []string{"base"}},
		{[]string{"a\x00"}, loom.Invalid, []string{"services[0]", "NUL"}},
		{[]string{"base", "db", "web"}, loom.Unsolvable, []string{"1000"}},
	} {
		_, err := b.begin(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: c.names})
		wantKind(t, err, c.kind)
		if err := says(err, c.texts...); err != nil {
			t.Error(err)
		}
	}
	// STOP and REMOVE are those of the version that was there.
	v = b.previewOf(loom.ChangeRemoveServices, b.made(2), clusters.ChangeInput{Services: []string{"db"}})
	same(t, "tasks", steps(v.Plan), []string{"stop db@1000"})
}
