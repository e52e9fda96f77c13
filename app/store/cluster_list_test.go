package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

// shortWords are of few letters, of which there are no trigrams; some are only in the names
// of addresses, some in how JSON writes them.
var shortWords = []string{"we", "b-", "77", "0.", "1", "ss", "v4", "th", "\th", `o"`, `"t`, "k\\", ", ", "ïv", "ÏV", "::", "WE", "  ", "b "}

// listWorld is a tenant with many clusters, made by chance from few words, and another
// one with the same.
type listWorld struct {
	t  *testing.T
	db *testkit.Database
	// through reads by indexes wherever there is one.
	through *sqlx.DB
	r       *rand.Rand
}

// listWords occur in names, descriptions, host names and addresses, whole or in part;
// some are special to LIKE, to JSON or to neither.
var listWords = []string{"web", "Web-1", "db", "stored-77", "100%", "a_b", `back\slash`, `quo"te`, "tab\there", "naïve", "<b>", "10.1.2.3", "fd00::1", "x", "\u2028", "00000012", "12", "é"}

func newListWorld(t *testing.T) *listWorld {
	db := testkit.NewDatabase(t)
	through, err := store.Open(t.Context(), store.WithSetting(db.DSN, "enable_seqscan", "off"), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { through.Close() }) //nolint:errcheck // of a test
	w := &listWorld{t, db, through, rand.New(rand.NewPCG(7, 9))}
	w.db.MustExec(`INSERT INTO tenants (id, name) VALUES ('a', 'a'), ('b', 'b')`)
	for id := 1; id <= 240; id++ {
		w.cluster(id, []string{"a", "a", "b"}[id%3])
	}
	w.db.MustExec(`ANALYZE clusters, nodes, operations, tasks`)
	return w
}

func (w *listWorld) pick(from ...string) string { return from[w.r.IntN(len(from))] }

func (w *listWorld) json(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *listWorld) cluster(id int, tenant string) {
	labels, services := map[string]string{}, map[string]any{}
	for range w.r.IntN(3) {
		labels[w.pick("team", "env", `a"b`)] = w.pick("web", "prod", "")
		services[w.pick("nginx", "mysql", "é")] = map[string]any{"nginx": 1}
	}
	created := time.Date(2026, 1, 1, 0, w.r.IntN(100), 0, 0, time.UTC) // some at once
	var expires any
	if w.r.IntN(2) == 0 {
		expires = time.Now().Add(time.Duration(w.r.IntN(200)-100) * time.Hour)
	}
	w.db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, description, status, template_name, template_version, template, provider_name, provider_fields, services,
			labels, latest_operation, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 1, '{}', $8, '{}', $9, $10, $11, $12, $13)`, id, tenant, w.pick("ana", "ben"), w.pick(listWords...)+w.pick("", " two"), w.pick(listWords...),
		w.pick("pending", "active", "active", "incomplete", "terminated"), w.pick("web", "db"), w.pick("lab", "cloud"), w.json(services), w.json(labels), w.r.IntN(2), created, expires)
	for n := range w.r.IntN(3) {
		addresses := map[string]string{}
		for range w.r.IntN(3) {
			addresses[w.pick("access_v4", "bind_v4", "web")] = w.pick(listWords...)
		}
		w.db.MustExec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses)
			VALUES (gen_random_uuid(), $1, $2, $3, $4, 'h', 'i', 'f', 'i', 'root', '{}', '{}', $5)`, id, tenant, n, strings.ToLower(w.pick(listWords...))+".local", w.json(addresses))
	}
	w.db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $1, 1, 'cluster_create', 'running', 'ana')`, id, tenant)
	for n := range w.r.IntN(5) {
		w.db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, gate, action, status) VALUES ($1, $2, $1, $3, $4, 'create', $5)`,
			id, tenant, n+1, n == 3, w.pick("complete", "skipped", "running", "blocked"))
	}
}

// plainly says which clusters of tenant a match, by conditions that look at each row.
func (w *listWorld) plainly(f store.ClusterFilter) map[loom.ClusterID]bool {
	conditions, args := []string{"c.tenant_id = 'a'"}, []any{}
	add := func(condition string, values ...any) {
		for i, v := range values {
			args = append(args, v)
			condition = strings.ReplaceAll(condition, fmt.Sprintf("?%d", i+1), fmt.Sprintf("$%d", len(args)))
		}
		conditions = append(conditions, condition)
	}
	const node = `EXISTS (SELECT FROM nodes n WHERE n.cluster_id = c.id AND strpos(n.hostname, ?1) > 0)`
	const address = `EXISTS (SELECT FROM nodes n, jsonb_each_text(n.ipaddresses) a WHERE n.cluster_id = c.id AND strpos(a.value, ?1) > 0)`
	const id = `strpos(lpad(c.id::text, 8, '0'), ?1) > 0`
	if len(f.Statuses) > 0 {
		add(`c.status = ANY (?1)`, pq.Array(f.Statuses))
	}
	if f.Owner != "" {
		add(`c.owner_id = ?1`, f.Owner)
	}
	for key, value := range f.Labels {
		add(`c.labels->>?1 = ?2`, key, value)
	}
	for _, word := range f.Words {
		add(`(strpos(lower(c.name), ?1) > 0 OR strpos(lower(c.description), ?1) > 0 OR `+id+` OR `+node+` OR `+address+`)`, strings.ToLower(word))
	}
	for _, term := range f.Terms {
		value := term.Values[0]
		not := ""
		if term.Not {
			not = " IS NOT TRUE"
		}
		key, text, exact := strings.Cut(value, "=")
		switch {
		case term.Field == "label" && exact:
			add(`(c.labels->>?1 = ?2)`+not, key, text)
		case term.Field == "label":
			add(`jsonb_exists(c.labels, ?1)`+not, value)
		default:
			add("("+map[string]string{"service": `jsonb_exists(c.services, ?1)`, "name": `strpos(lower(c.name), ?1) > 0`, "id": id, "node": node, "ip": address, "template": "c.template_name = ?1"}[term.Field]+")"+not, strings.ToLower(value))
		}
	}
	var ids []int64
	if err := w.db.Select(&ids, `SELECT c.id FROM clusters c WHERE `+strings.Join(conditions, " AND "), args...); err != nil {
		w.t.Fatal(err)
	}
	found := map[loom.ClusterID]bool{}
	for _, n := range ids {
		found[loom.ClusterID(n)] = true
	}
	return found
}

// pages reads all pages of a list, and checks that their totals agree.
func (w *listWorld) pages(db *sqlx.DB, f store.ClusterFilter, sort string, limit int) []loom.ClusterSummary {
	w.t.Helper()
	var all []loom.ClusterSummary
	total := -1
	for p := (loom.Page{Sort: sort, Limit: limit}); ; {
		list, err := store.ClustersByTenant(w.t.Context(), db, "a", f, p)
		if err != nil {
			w.t.Fatal(err)
		}
		if total >= 0 && list.Total != total {
			w.t.Errorf("%+v: one page says %d match, another %d", f, total, list.Total)
		}
		total, all = list.Total, append(all, list.Items...)
		if list.Next == "" {
			break
		}
		p.After = list.Next
	}
	if total != len(all) {
		w.t.Errorf("%+v by %s: %d match, pages have %d", f, sort, total, len(all))
	}
	return all
}

func listFilters() []store.ClusterFilter {
	live := []loom.ClusterStatus{loom.ClusterPending, loom.ClusterActive, loom.ClusterIncomplete}
	filters := []store.ClusterFilter{
		{}, {Statuses: live}, {Statuses: []loom.ClusterStatus{loom.ClusterTerminated, loom.ClusterActive}}, {Labels: map[string]string{"team": "web"}}, {Labels: map[string]string{"team": "web", `a"b`: ""}},
		{Words: []string{"web", "10.1"}, Statuses: live}, {Words: []string{"nowhere"}}, {Words: []string{"access_v4"}}, {Words: []string{"%"}}, {Words: []string{"_"}}, {Words: []string{`\`}}, {Words: []string{`"`}},
	}
	for _, word := range shortWords {
		filters = append(filters, store.ClusterFilter{Words: []string{word}}, store.ClusterFilter{Words: []string{word, "1"}, Statuses: live}, store.ClusterFilter{Words: []string{word}, Owner: "ana"})
		for _, field := range []string{"name", "id", "node", "ip"} {
			filters = append(filters, store.ClusterFilter{Terms: []loom.SearchTerm{{Field: field, Values: []string{word}}}})
		}
	}
	for _, word := range listWords {
		filters = append(filters, store.ClusterFilter{Words: []string{word}}, store.ClusterFilter{Words: []string{strings.ToUpper(word)}, Statuses: live})
		for _, field := range []string{"name", "id", "node", "ip", "service", "label"} {
			filters = append(filters, store.ClusterFilter{Terms: []loom.SearchTerm{{Field: field, Values: []string{word}, Not: len(word)%2 == 0}}})
		}
	}
	for _, value := range []string{"nginx", "mysql", "é", "team", "env", `a"b`, "team=web", "env=", `a"b=prod`} {
		for _, not := range []bool{false, true} {
			for _, field := range []string{"service", "label"} {
				filters = append(filters, store.ClusterFilter{Statuses: live, Terms: []loom.SearchTerm{{Field: field, Values: []string{value}, Not: not}, {Field: "template", Values: []string{"web"}}}})
			}
		}
	}
	return filters
}

// TestListsFindWhatLookingAtEachRowFinds: whatever a list leans on, it has the clusters
// that match, each once, in the order asked for, and says how many they are.
func TestListsFindWhatLookingAtEachRowFinds(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	for i, f := range listFilters() {
		want := w.plainly(f)
		sort, limit := store.ClusterSorts[i%len(store.ClusterSorts)], []int{0, 7, 25}[i%3]
		got := w.pages([]*sqlx.DB{w.db.DB, w.through}[i/3%2], f, sort, limit)
		seen := map[loom.ClusterID]bool{}
		for _, c := range got {
			if !want[c.ID] || seen[c.ID] {
				t.Errorf("%+v by %s: cluster %s does not match, or twice", f, sort, c.ID)
			}
			seen[c.ID] = true
		}
		if len(seen) != len(want) {
			t.Errorf("%+v by %s: found %d, there are %d", f, sort, len(seen), len(want))
		}
		f.Uncounted = true
		first, err := store.ClustersByTenant(t.Context(), w.db.DB, "a", f, loom.Page{Sort: sort, Limit: 7})
		if n := min(7, len(got)); err != nil || first.Total != 0 || !slices.EqualFunc(first.Items, got[:n], func(a, b loom.ClusterSummary) bool { return a.ID == b.ID }) {
			t.Errorf("%+v by %s, uncounted: %d of %d, %v", f, sort, len(first.Items), first.Total, err)
		}
		if sort == "-createTime" && !slices.IsSortedFunc(got, func(a, b loom.ClusterSummary) int { return b.Created.Compare(a.Created) }) {
			t.Errorf("%+v: not by time", f)
		}
		if sort == "name" && !slices.IsSortedFunc(got, func(a, b loom.ClusterSummary) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%+v: not by name", f)
		}
	}
}

// TestListsCountTasksAndNodes: progress and nodes of each row are those of its own.
func TestListsCountTasksAndNodes(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	w.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{links}', '[{"label": "Page", "url": "http://x/"}]') WHERE id % 3 = 0`)
	w.db.MustExec(`UPDATE operations SET started_at = '2026-06-01 12:00Z', ended_at = '2026-06-01 12:01Z' WHERE cluster_id % 2 = 0`)
	const plain = `SELECT c.id, count(t.id) AS total, count(t.id) FILTER (WHERE t.status IN ('complete', 'skipped')) AS done, (SELECT count(*) FROM nodes n WHERE n.cluster_id = c.id) AS nodes,
		ARRAY(SELECT jsonb_object_keys(c.services) ORDER BY 1) AS services
		FROM clusters c LEFT JOIN operations o ON o.cluster_id = c.id AND o.number = c.latest_operation LEFT JOIN tasks t ON t.operation_id = o.id AND NOT t.gate WHERE c.tenant_id = 'a' GROUP BY c.id`
	var rows []struct {
		ID                 int64
		Total, Done, Nodes int
		Services           pq.StringArray
	}
	if err := w.db.Select(&rows, plain); err != nil {
		t.Fatal(err)
	}
	listed := map[loom.ClusterID]loom.ClusterSummary{}
	for _, c := range w.pages(w.db.DB, store.ClusterFilter{}, "name", 25) {
		listed[c.ID] = c
	}
	for _, r := range rows {
		c := listed[loom.ClusterID(r.ID)]
		if c.Progress.Total != r.Total || c.Progress.Done != r.Done || c.Nodes != r.Nodes || !slices.Equal(c.Services, []string(r.Services)) {
			t.Errorf("cluster %d: %d of %d tasks, %d nodes, %v; want %+v", r.ID, c.Progress.Done, c.Progress.Total, c.Nodes, c.Services, r)
		}
		if c.Linked != (r.ID%3 == 0) {
			t.Errorf("cluster %d: linked %v", r.ID, c.Linked)
		}
		if took := c.Progress.Ended.Sub(c.Progress.Started); r.ID%2 == 0 && c.LatestOperation > 0 && took != time.Minute {
			t.Errorf("cluster %d: its operation took %s", r.ID, took)
		}
	}
	for _, c := range w.pages(w.through, store.ClusterFilter{Brief: true}, "name", 25) {
		if c.Progress.Total != 0 || c.Nodes != listed[c.ID].Nodes {
			t.Errorf("in brief cluster %s has %+v", c.ID, c)
		}
	}
}

// TestNodesInUse: the quota counts the nodes that live clusters have, of the tenant alone.
func TestNodesInUse(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	w.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE number = 1`)
	for _, tenant := range []loom.TenantID{"a", "b"} {
		var want int
		if err := w.db.Get(&want, `SELECT count(*) FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE c.tenant_id = $1 AND c.status <> 'terminated' AND n.state <> 'deleted'`, tenant); err != nil {
			t.Fatal(err)
		}
		use, err := store.QuotaUse(t.Context(), w.db.DB, tenant)
		if err != nil || use.Nodes != want || want == 0 {
			t.Errorf("tenant %s uses %d nodes, want %d: %v", tenant, use.Nodes, want, err)
		}
		for limit, full := range map[int]bool{want: true, want + 1: false} {
			w.db.MustExec(`UPDATE tenants SET max_nodes = $2 WHERE id = $1`, tenant, limit)
			if n, err := store.NoticesFor(t.Context(), w.db.DB, tenant, "ana", time.Hour); err != nil || n.NodesFull != full {
				t.Errorf("tenant %s of %d nodes, %d used: full %v, %v", tenant, limit, want, n.NodesFull, err)
			}
		}
	}
}

// TestSearchNodesFindsWhatLookingAtEachFinds is the same for the palette.
func TestSearchNodesFindsWhatLookingAtEachFinds(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	for _, word := range slices.Concat([]string{"%", "_", `\`, `"`, "access"}, shortWords, listWords) {
		word = strings.ToLower(word)
		var want []string
		if err := w.db.Select(&want, `SELECT n.id FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE n.tenant_id = 'a' AND c.status <> 'terminated'
			AND (strpos(n.hostname, $1) > 0 OR EXISTS (SELECT FROM jsonb_each_text(n.ipaddresses) a WHERE strpos(a.value, $1) > 0)) ORDER BY n.hostname, n.id LIMIT 20`, word); err != nil {
			t.Fatal(err)
		}
		for _, db := range []*sqlx.DB{w.db.DB, w.through} {
			found, err := store.SearchNodes(t.Context(), db, "a", store.Viewer{}, word, 20)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range found {
				got = append(got, string(n.ID))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: found %v, want %v", word, got, want)
			}
		}
	}
}
