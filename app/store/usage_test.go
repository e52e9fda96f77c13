package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

// lives fills a database with clusters of several tenants and completed tasks.
type lives struct {
	t    *testing.T
	db   *testkit.Database
	next int
}

func newLives(t *testing.T) *lives {
	l := &lives{t: t, db: testkit.NewDatabase(t)}
	l.db.MustExec(`INSERT INTO tenants (id, name) VALUES ('a', 'a'), ('b', 'b')`)
	for i, c := range []struct{ tenant, owner, template, provider string }{
		{"a", "ana", "web", "lab"}, {"a", "ben", "db", "lab"}, {"b", "ana", "web", "cloud"},
	} {
		l.db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
			VALUES ($1, $2, $3, 'c', 'active', $4, 1, '{}', $5, '{}', '{}')`, i+1, c.tenant, c.owner, c.template, c.provider)
		l.db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE
			VALUES ($1, $2, $1, 1, 'cluster_create', 'complete', 'ana')`, i+1, c.tenant)
	}
	return l
}

// node gives the n-th node id of a cluster and makes its row.
func (l *lives) node(cluster, n int, hardware string) string {
	id := fmt.Sprintf("00000000-0000-4000-8000-%06d%06d", cluster, n)
	l.db.MustExec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT $1, id, tenant_id, $3, 'h', $4, 'i', 'f', 'i', 'root', '{}', '{}' FROM clusters WHERE id = $2`, id, cluster, n, hardware)
	return id
}

// task stores a task that ended at a second.
func (l *lives) task(cluster int, node, action, status string, at float64) {
	l.next++
	l.db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, ended_at)
		SELECT id, tenant_id, id, $2, $3, $4, $5, to_timestamp($6) FROM clusters WHERE id = $1`, cluster, l.next, node, action, status, at)
}

func (l *lives) used(f store.UsageFilter, split string, marks ...int64) []store.UsedTime {
	l.t.Helper()
	used, err := store.UsedTimeAllTenants(l.t.Context(), l.db.DB, f, split, marks, 1, 1, 1000)
	if err != nil {
		l.t.Fatal(err)
	}
	return used
}

// TestUsageOfTheSpecification is the documented example: 35 + 10 + 15 = 60.
func TestUsageOfTheSpecification(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	a, b, c := l.node(1, 1, "small"), l.node(1, 2, "big"), l.node(2, 1, "small")
	l.task(1, a, "create", "complete", 0)
	l.task(1, b, "create", "complete", 30)
	l.task(2, c, "create", "complete", 10)
	l.task(2, c, "delete", "complete", 25)
	l.task(2, c, "delete", "complete", 30) // the earliest counts
	l.task(1, b, "delete", "failed", 31)   // what failed does not
	l.task(1, a, "start", "complete", 5)

	if got := l.used(store.UsageFilter{}, "", 5, 40); !reflect.DeepEqual(got, []store.UsedTime{{0, "", "60"}}) {
		t.Errorf("used %v", got)
	}
	if got := l.used(store.UsageFilter{}, "", 5, 20, 30, 40); !reflect.DeepEqual(got, []store.UsedTime{{0, "", "25"}, {1, "", "15"}, {2, "", "20"}}) {
		t.Errorf("by intervals %v", got)
	}
	for split, want := range map[string][]store.UsedTime{
		"user":            {{0, "ana", "45"}, {0, "ben", "15"}},
		"clustertemplate": {{0, "db", "15"}, {0, "web", "45"}},
		"cluster":         {{0, "00000001", "45"}, {0, "00000002", "15"}},
		"hardwaretype":    {{0, "big", "10"}, {0, "small", "50"}},
		"provider":        {{0, "lab", "60"}},
		"tenant":          {{0, "a", "60"}},
	} {
		if got := l.used(store.UsageFilter{}, split, 5, 40); !reflect.DeepEqual(got, want) {
			t.Errorf("by %s: %v, want %v", split, got, want)
		}
	}
	for want, f := range map[string]store.UsageFilter{
		"60": {Tenant: "a"}, "45": {User: "ana"}, "15": {Cluster: 2}, "10": {},
	} {
		marks := []int64{5, 40}
		if want == "10" {
			marks = []int64{0, 10}
		}
		if got := l.used(f, "", marks...); len(got) != 1 || got[0].Value != want {
			t.Errorf("%+v: %v, want %s", f, got, want)
		}
	}
	if got := l.used(store.UsageFilter{Tenant: "b"}, "", 5, 40); len(got) != 0 {
		t.Errorf("another tenant used %v", got)
	}
	// Rounded once, at the end.
	half, err := store.UsedTimeAllTenants(t.Context(), l.db.DB, store.UsageFilter{}, "", []int64{5, 40}, 1, 40, 10)
	if err != nil || half[0].Value != "1" {
		t.Errorf("60/40 is %v, %v", half, err)
	}
	if _, err := store.UsedTimeAllTenants(t.Context(), l.db.DB, store.UsageFilter{}, "t.message", []int64{5, 40}, 1, 1, 10); err == nil {
		t.Error("split by anything")
	}
}

// TestUsageOfResizedNodes: the time before a resize counts under the type before it,
// whatever the node has now.
func TestUsageOfResizedNodes(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	n, still := l.node(1, 1, "large"), l.node(1, 2, "small")
	later := func(number int, action, before string) {
		l.t.Helper()
		l.db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by, before) OVERRIDING SYSTEM VALUE
			VALUES ($1, 'a', 1, $2, $3, 'complete', 'ana', $4)`, 10+number, number, action, before)
	}
	taskOf := func(operation int, node, action string, at float64) {
		l.t.Helper()
		l.next++
		l.db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, ended_at)
			VALUES ($1, 'a', 1, $2, $3, $4, 'complete', to_timestamp($5))`, operation, l.next, node, action, at)
	}
	nodes := func(hardware string) string {
		return fmt.Sprintf(`{"nodes": [{"id": %q, "hardwaretype": %q}, {"id": %q, "hardwaretype": "small"}]}`, n, hardware, still)
	}
	l.task(1, n, "create", "complete", 0)
	l.task(1, still, "create", "complete", 0)
	later(2, "cluster_resize", nodes("small"))
	taskOf(12, n, "delete", 100)
	taskOf(12, n, "create", 110)
	later(3, "add_services", nodes("medium"))
	later(4, "cluster_resize", nodes("medium"))
	taskOf(14, n, "delete", 200)
	taskOf(14, n, "create", 220)
	later(5, "rollback", `{"nodes": "nonsense"}`)

	want := []store.UsedTime{{0, "large", "80"}, {0, "medium", "90"}, {0, "small", "400"}}
	if got := l.used(store.UsageFilter{}, "hardwaretype", 0, 300); !reflect.DeepEqual(got, want) {
		t.Errorf("used %v, want %v", got, want)
	}
	if got := l.used(store.UsageFilter{Tenant: "b"}, "hardwaretype", 0, 300); len(got) != 0 {
		t.Errorf("another tenant used %v", got)
	}
}

func TestLivesOfNodes(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	n := l.node(1, 1, "small")
	// Made, made again without a DELETE (the machine was found), gone, made anew, a
	// skipped CREATE is none, a skipped DELETE ends it.
	for _, e := range []struct {
		action, status string
		at             float64
	}{{"create", "complete", 100}, {"create", "complete", 110}, {"delete", "complete", 150}, {"create", "complete", 200.5}, {"delete", "skipped", 210},
		{"create", "skipped", 300}} {
		l.task(1, n, e.action, e.status, e.at)
	}
	if got := l.used(store.UsageFilter{}, "", 0, 160, 1000); !reflect.DeepEqual(got, []store.UsedTime{{0, "", "50"}, {1, "", "9"}}) {
		t.Errorf("used %v", got)
	}
	first, any, now, err := store.FirstUseAllTenants(t.Context(), l.db.DB, store.UsageFilter{})
	if err != nil || first != 100 || !any || now < 1_700_000_000 {
		t.Errorf("first %d, %v, now %d, %v", first, any, now, err)
	}
	if _, any, _, err := store.FirstUseAllTenants(t.Context(), l.db.DB, store.UsageFilter{Tenant: "b"}); any || err != nil {
		t.Errorf("another tenant: %v, %v", any, err)
	}
	// A node that lives counts until now and no longer.
	l.task(1, n, "create", "complete", float64(now-10))
	got := l.used(store.UsageFilter{}, "", now-20, now+1000, now+2000)
	if len(got) != 2 || len(got[0].Value) != 2 || got[1].Value != "0" {
		t.Errorf("until now %v", got)
	}
}

// TestUsageProperties holds the sums against the plain way of adding up lives.
func TestUsageProperties(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	r := rand.New(rand.NewPCG(3, 4))
	type life struct{ began, ended int64 }
	var all []life
	for n := range 60 {
		id := l.node(1+n%3, n, "small")
		at := int64(r.IntN(500))
		for range 1 + r.IntN(3) {
			ended := at + 1 + int64(r.IntN(400))
			l.task(1+n%3, id, "create", "complete", float64(at))
			l.task(1+n%3, id, "delete", "complete", float64(ended))
			all = append(all, life{at, ended})
			at = ended + 1 + int64(r.IntN(50))
		}
	}
	for range 50 {
		marks := []int64{int64(r.IntN(600))}
		for range 1 + r.IntN(8) {
			marks = append(marks, marks[len(marks)-1]+1+int64(r.IntN(300)))
		}
		got := l.used(store.UsageFilter{}, "", marks...)
		for i := range len(marks) - 1 {
			want := int64(0)
			for _, one := range all {
				want += max(0, min(one.ended, marks[i+1])-max(one.began, marks[i]))
			}
			value := "0"
			if len(got) > 0 {
				value = got[i].Value
			}
			if value != fmt.Sprint(want) {
				t.Fatalf("from %d to %d: %s, want %d", marks[i], marks[i+1], value, want)
			}
		}
	}
}

// TestConfigsOfAClusterAreBounded: of the configs that a cluster has had, those stay that take
// little of the disk, the newest of them.
func TestConfigsOfAClusterAreBounded(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	large := `to_jsonb((SELECT string_agg(md5(random()::text || i || n), '') FROM generate_series(1, 1 << 17) i))`
	for cluster, body := range map[int]string{1: `'{}'`, 2: large} {
		l.db.MustExec(`INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation)
			SELECT 'a', $1, n, `+body+`, 'ana', n FROM generate_series(1, $2::int) n`, cluster, map[int]int{1: 1200, 2: 12}[cluster])
		_, err := store.InTx(t.Context(), l.db.DB, func(tx *sqlx.Tx) (bool, error) {
			return true, store.InsertConfigRevision(t.Context(), tx, "a", loom.OperationRef{Cluster: loom.ClusterID(cluster), Number: 2000}, "ana")
		})
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			First, Last, N, Bytes int
		}
		if err := l.db.DB.Get(&kept, `SELECT min(revision) AS first, max(revision) AS last, count(*) AS n, sum(pg_column_size(config)) AS bytes FROM config_revisions WHERE cluster_id = $1`, cluster); err != nil {
			t.Fatal(err)
		}
		if kept.Last != map[int]int{1: 1201, 2: 13}[cluster] || kept.N != kept.Last-kept.First+1 || kept.N < 2 || kept.N > loom.MaxRevisions || kept.Bytes > loom.MaxRevisionBytes {
			t.Errorf("of cluster %d are kept %+v", cluster, kept)
		}
	}
}

// TestUsedTimeIsBounded: parts that no answer would have are not summed up over all
// intervals, whose product with them costs time and disk.
func TestUsedTimeIsBounded(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	l.db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		SELECT i, 'a', 'ana', 'c', 'terminated', 'web', 1, '{}', 'lab', '{}', '{}' FROM generate_series(11, 60) i`)
	l.db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE
		SELECT i, 'a', i, 1, 'cluster_create', 'complete', 'ana' FROM generate_series(11, 60) i`)
	for cluster := 11; cluster <= 60; cluster++ {
		id := l.node(cluster, 1, "small")
		l.task(cluster, id, "create", "complete", 0)
		l.task(cluster, id, "delete", "complete", 100)
	}
	used, err := store.UsedTimeAllTenants(t.Context(), l.db.DB, store.UsageFilter{}, "cluster", []int64{0, 10, 20, 30, 40}, 1, 1, 7)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]bool{}
	for _, u := range used {
		parts[u.Split] = true
	}
	if len(used) != 7 || len(parts) != 2 {
		t.Errorf("%d values of %d parts: %v", len(used), len(parts), used)
	}
	if used, err = store.UsedTimeAllTenants(t.Context(), l.db.DB, store.UsageFilter{}, "cluster", []int64{0, 10, 20, 30, 40}, 1, 1, 1000); err != nil || len(used) != 200 {
		t.Errorf("%d values where there may be more than there are, %v", len(used), err)
	}
}

func TestQueueCounts(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	for queue, states := range map[string]string{"tenant_a": "{available,available,running,pending,scheduled}", "tenant_b": "{running}"} {
		l.db.MustExec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) SELECT s::river_job_state, $1, 'run_task', '{}', 1 FROM unnest($2::text[]) AS s`, queue, states)
	}
	all, err := store.QueueCountsAllTenants(t.Context(), l.db.DB)
	if want := []store.QueueCount{{"a", 2, 1}, {"b", 0, 1}}; err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	for tenant, want := range map[loom.TenantID]int{"b": 1, "": 0, "x": 0} {
		if one, err := store.QueueCounts(t.Context(), l.db.DB, tenant); err != nil || len(one) != want {
			t.Errorf("%q: %v, %v", tenant, one, err)
		}
	}
}
