package clusters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// fill inserts clusters as they are after their create, three nodes each, with
// equal names, times and ends of leases among them.
func (b *bundle) fill(n int) {
	b.t.Helper()
	b.db.MustExec(`
INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services,
                      created_at, expires_at, latest_operation)
SELECT 1000 + i, 't1', CASE WHEN i % 5 = 0 THEN 'bob' ELSE 'ana' END, 'c' || i % 7,
       (ARRAY['active', 'terminated', 'pending', 'incomplete'])[1 + i % 4], 'site', 1, '{"name": "site", "label": "Site"}', 'lab',
       '{}', '{"web": {}, "base": {}}', '2030-01-01'::timestamptz + (i / 3) * interval '1 s',
       CASE WHEN i % 3 = 0 THEN '2031-01-01'::timestamptz + (i % 11) * interval '1 microsecond' END, 1
FROM generate_series(1, $1) i`, n)
	b.db.MustExec(`
INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses)
SELECT gen_random_uuid(), 1000 + i, 't1', 1000 + k, 'c' || i || '-' || k || '.lab', 'small', 'deb', 's1', 'deb12', 'root', '{web}', '{shell}',
       jsonb_build_object('access_v4', '10.' || i / 200 || '.' || i % 200 || '.' || k)
FROM generate_series(1, $1) i, generate_series(0, 2) k`, n)
	b.db.MustExec(`
INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by)
SELECT 't1', 1000 + i, 1, 'cluster_create', CASE WHEN i % 4 = 2 THEN 'running' ELSE 'complete' END, 'ana' FROM generate_series(1, $1) i`, n)
	b.db.MustExec(`
INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, action, status)
SELECT o.id, o.tenant_id, o.cluster_id, k, 'create', CASE WHEN k < 4 THEN 'complete' ELSE 'ready' END FROM operations o, generate_series(1, 5) k`)
	b.db.MustExec(`ANALYZE`)
}

// Every row is on exactly one page, in order, whichever way one walks.
func TestPagesHoldEveryClusterOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const all = 61
	b.fill(all)
	for _, sort := range store.ClusterSorts {
		for _, limit := range []int{7, 60, 61, 62} {
			in := clusters.ListInput{Page: loom.Page{Sort: sort, Limit: limit}}
			whole, err := b.clusters.Clusters(b.ctx, b.admin(), clusters.ListInput{Page: loom.Page{Sort: sort, Limit: -1}})
			if err != nil || len(whole.Items) != all || whole.Total != all || whole.Next != "" || whole.Prev != "" {
				t.Fatalf("%s: %d of %d, %v", sort, len(whole.Items), whole.Total, err)
			}
			checkOrder(t, sort, whole.Items)
			var seen []loom.ClusterID
			var last clusters.List
			for range all + 1 {
				page, err := b.clusters.Clusters(b.ctx, b.admin(), in)
				if err != nil {
					t.Fatal(err)
				}
				last = page
				for _, c := range page.Items {
					seen = append(seen, c.ID)
				}
				if page.Next == "" {
					break
				}
				in.After = page.Next
			}
			if want := ids(whole.Items); !slices.Equal(seen, want) {
				t.Fatalf("%s by %d: forwards %v, want %v", sort, limit, seen, want)
			}
			back := slices.Clone(ids(last.Items))
			in.After, in.Before = "", last.Prev
			for range all + 1 {
				if in.Before == "" {
					break
				}
				page, err := b.clusters.Clusters(b.ctx, b.admin(), in)
				if err != nil {
					t.Fatal(err)
				}
				back = append(ids(page.Items), back...)
				if page.Next == "" {
					t.Fatalf("%s by %d: no way forwards from a page reached backwards", sort, limit)
				}
				in.Before = page.Prev
			}
			if want := ids(whole.Items); !slices.Equal(back, want) {
				t.Fatalf("%s by %d: backwards %v, want %v", sort, limit, back, want)
			}
		}
	}
}

func ids(items []loom.ClusterSummary) []loom.ClusterID {
	out := []loom.ClusterID{}
	for _, c := range items {
		out = append(out, c.ID)
	}
	return out
}

func checkOrder(t *testing.T, sort string, items []loom.ClusterSummary) {
	t.Helper()
	field, descending := strings.CutPrefix(sort, "-")
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	key := func(c loom.ClusterSummary) string {
		switch field {
		case "createTime":
			return c.Created.UTC().Format(time.RFC3339Nano) + c.ID.String()
		case "name":
			return c.Name + "/" + c.ID.String()
		case "expireTime":
			if c.Expires.IsZero() {
				return far.Format("2006-01-02T15:04:05.000000") + c.ID.String()
			}
			return c.Expires.UTC().Format("2006-01-02T15:04:05.000000") + c.ID.String()
		}
		return string(c.Status) + "/" + c.ID.String()
	}
	for i := 1; i < len(items); i++ {
		if a, b := key(items[i-1]), key(items[i]); (a < b) == descending {
			t.Fatalf("%s: %s before %s", sort, a, b)
		}
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(61)
	b.db.MustExec(`UPDATE clusters SET labels = '{"team": "red"}' WHERE id IN (1001, 1002)`)
	for _, c := range []struct {
		name  string
		actor loom.Actor
		in    clusters.ListInput
		want  int
	}{
		{"user sees his own", b.ana(), clusters.ListInput{}, 49},
		{"user asks for another's", b.ana(), clusters.ListInput{Owner: "bob"}, 0},
		{"admin asks for an owner", b.admin(), clusters.ListInput{Owner: "bob"}, 12},
		{"statuses", b.admin(), clusters.ListInput{Statuses: []loom.ClusterStatus{loom.ClusterActive, loom.ClusterPending}}, 30},
		{"template", b.admin(), clusters.ListInput{Template: "site"}, 61},
		{"no such provider", b.admin(), clusters.ListInput{Provider: "x"}, 0},
		{"id", b.admin(), clusters.ListInput{Q: "00001042"}, 1},
		{"host name", b.admin(), clusters.ListInput{Q: "C17-1.LAB"}, 1},
		{"address", b.admin(), clusters.ListInput{Q: "10.0.17.2"}, 1},
		{"kind of address is no word", b.admin(), clusters.ListInput{Q: "access_v4"}, 0},
		{"lease ends before", b.admin(), clusters.ListInput{ExpiresBefore: time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)}, 20},
		{"lease ends before, none", b.admin(), clusters.ListInput{ExpiresBefore: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, 0},
		{"label", b.admin(), clusters.ListInput{Labels: map[string]string{"team": "red"}}, 2},
		{"label of another value", b.admin(), clusters.ListInput{Labels: map[string]string{"team": "blue"}}, 0},
		{"two words", b.admin(), clusters.ListInput{Q: "c3 10.0.17."}, 1},
		{"wild cards are plain", b.admin(), clusters.ListInput{Q: "%"}, 0},
	} {
		got, err := b.clusters.Clusters(b.ctx, c.actor, c.in)
		if err != nil || len(got.Items) != c.want || got.Total != c.want {
			t.Errorf("%s: %d of %d, want %d, %v", c.name, len(got.Items), got.Total, c.want, err)
		}
	}
	one, err := b.clusters.Clusters(b.ctx, b.admin(), clusters.ListInput{Q: "00001042"})
	if err != nil || len(one.Items) != 1 {
		t.Fatal(err)
	}
	c := one.Items[0]
	if c.Nodes != 3 || c.Template.Label != "Site" || c.Provider.Label != "The lab" || c.Provider.Version != 1 || !slices.Equal(c.Services, []string{"base", "web"}) ||
		c.Progress != (loom.Progress{Action: loom.ClusterCreate, Status: loom.OperationRunning, Total: 5, Done: 3}) {
		t.Errorf("%+v", c)
	}
}

func TestListRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(5)
	page, err := b.clusters.Clusters(b.ctx, b.admin(), clusters.ListInput{Page: loom.Page{Limit: 2}})
	if err != nil || page.Next == "" {
		t.Fatal(err)
	}
	tampered := loom.Cursor{Sort: "-createTime", Keys: []string{"tomorrow", "1", "x"}}.Encode()
	for name, in := range map[string]clusters.ListInput{
		"sort":          {Page: loom.Page{Sort: "size"}},
		"limit":         {Page: loom.Page{Limit: 501}},
		"both":          {Page: loom.Page{After: page.Next, Before: page.Next}},
		"other sort":    {Page: loom.Page{Sort: "name", After: page.Next}},
		"other filter":  {Page: loom.Page{After: page.Next}, Q: "c1"},
		"garbage":       {Page: loom.Page{Before: "@@"}},
		"tampered":      {Page: loom.Page{After: tampered}},
		"status":        {Statuses: []loom.ClusterStatus{"gone"}},
		"NUL":           {Q: "\x00"},
		"endless words": {Q: strings.Repeat("a ", 50)},
	} {
		if _, err := b.clusters.Clusters(b.ctx, b.admin(), in); loom.AsError(err).Kind != loom.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ten thousand clusters are listed without a noticeable wait.
func TestListOfManyClusters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(10_000)
	for _, in := range []clusters.ListInput{
		{}, {Page: loom.Page{Sort: "name"}}, {Page: loom.Page{Sort: "expireTime"}}, {Q: "c17-1.lab"}, {Q: "10.3.17"}, {Q: "nothing like it"},
		{Statuses: []loom.ClusterStatus{loom.ClusterIncomplete}}, {Page: loom.Page{Limit: -1}},
	} {
		begin := time.Now()
		page, err := b.clusters.Clusters(b.ctx, b.admin(), in)
		took := time.Since(begin)
		t.Logf("%-60s %5d of %5d in %v", fmt.Sprintf("%+v", in), len(page.Items), page.Total, took.Round(time.Millisecond))
		if err != nil || took > 10*time.Second {
			t.Errorf("%+v: %v, %v", in, took, err)
		}
	}
}
