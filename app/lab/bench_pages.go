package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
)

// pageCallers look at pages side by side.
const pageCallers = 2

// pageFigures are the answers of one page; bytes is its HTML, wire what of it
// travels. Web and database are the processor time that one answer takes, which says
// more than the others on a host that is busy.
type pageFigures struct {
	httpFigures
	bytes, wire   int
	web, database time.Duration
}

// times are the columns of what was measured of a page.
func (f *pageFigures) times() string {
	return fmt.Sprintf("%7.0f %7.1f %7.1f  %7.1f %7.1f", f.perSecond, milliseconds(f.p50), milliseconds(f.p99), milliseconds(f.web), milliseconds(f.database))
}

const pageColumns = "  per s  p50 ms  p99 ms   web ms  SQL ms"

// visitor is somebody who is signed in to the pages, and waits so long for one.
type visitor struct {
	url      string
	client   *http.Client
	patience time.Duration
}

// visitor signs the administrator of demo in.
func (b *benchInstance) visitor(ctx context.Context) (*visitor, error) {
	found, err := b.visitors(ctx, 1)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// visitors signs the administrator of demo in with several browsers.
func (b *benchInstance) visitors(ctx context.Context, n int) ([]*visitor, error) {
	password := loom.NewSecret(rand.Text()) // one that Loom generated would have to be changed first
	if _, err := b.Accounts.SetPassword(ctx, b.actor.TenantName, b.actor.User, password); err != nil {
		return nil, err
	}
	found := make([]*visitor, n)
	for i := range found {
		var err error
		if found[i], err = b.signIn(ctx, password); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (b *benchInstance) signIn(ctx context.Context, password loom.Secret) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	// Without compression of its own the client sees what travels.
	v := &visitor{b.url, &http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * fullScale.live, DisableCompression: true}}, answerPatience}
	form := url.Values{"tenant": {b.actor.TenantName}, "user": {string(b.actor.User)}, "password": {password.Reveal()}}
	_, err = v.send(ctx, http.MethodPost, "/login", form, false)
	return v, err
}

// send returns the body of an answer.
func (v *visitor) send(ctx context.Context, method, path string, form url.Values, compressed bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, v.patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if compressed {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	answer, err := v.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, answer.Status, body)
	}
	return body, err
}

// benchPages measures the pages that are used most, with many clusters stored and
// a large operation running.
func (e *environment) benchPages(ctx context.Context, scale benchScale) (err error) {
	b, err := e.startBench(ctx, "LOOM_MOCK=true")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata"), nil); err != nil {
		return err
	}
	small, err := b.create(ctx, "mock", 3)
	if err != nil {
		return err
	}
	if err := b.until(ctx, small, 1); err != nil {
		return err
	}
	if err := b.fillClusters(ctx, scale.clusters); err != nil {
		return fmt.Errorf("store %d clusters: %w", scale.clusters, err)
	}
	for _, statement := range []string{varied, `VACUUM ANALYZE clusters`, `VACUUM ANALYZE nodes`, `VACUUM ANALYZE searched_nodes`} {
		if _, err := b.System.DB.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if scale.wants(livePages) {
		if err := b.measureLive(ctx, scale); err != nil {
			return fmt.Errorf("live pages: %w", err)
		}
	}
	v, err := b.visitor(ctx)
	if err != nil {
		return err
	}
	big, err := b.create(ctx, "mock-slow", scale.nodes)
	if err != nil {
		return err
	}
	log, err := b.fillLog(ctx, small, 10*scale.clusters)
	if err != nil {
		return err
	}
	if err := b.measurePages(ctx, v, big, log, scale); err != nil {
		return err
	}
	return b.measureFilters(ctx, v, scale)
}

// page is one that is looked at.
type page struct{ name, path string }

func pagesOf(cluster loom.ClusterID, node loom.NodeID, nodes, tasks int) []page {
	at := "/clusters/" + cluster.String()
	op := at + "/operations/1"
	return []page{
		{"home as the operation begins", "/"}, // thousands of short tasks a second
		{"clusters", "/clusters"},
		{"clusters by words and status", "/clusters?q=stored-77+status:active"},
		{"search", "/search?q=stored-77"},
		{"search for two letters", "/search?q=77"},
		{"search for two letters of all nodes", "/search?q=19"},
		{"new cluster", "/clusters/new?template=mock"},
		{fmt.Sprintf("cluster of %d nodes", nodes), at},
		{"its nodes", at + "/nodes"},
		{"one node", at + "/nodes/" + string(node)},
		{fmt.Sprintf("operation of %d tasks, graph", tasks), op},
		{"its timeline", op + "/timeline"},
		{"its table of tasks", op + "/table"},
		{"a task with its log", op + "/tasks/1"},
		{"usage", "/usage"},
		{"activity", "/activity"},
		{"home", "/"},
	}
}

// filtersOf are the lists that each of the filters of the list of clusters gives, by
// itself and beside the status that is always asked for; some match few, some all.
func filtersOf() []page {
	list := func(name, value string) page {
		return page{name + " " + value, "/clusters?" + url.Values{name: {value}}.Encode()}
	}
	return []page{
		list("status", "active"), list("status", "attention"), list("status", "terminated"), list("template", "mock"), list("template", "other"),
		list("provider", "mock"), list("owner", string(loom.AdminUser)), list("owner", "nobody"), list("label", "team=web"), list("label", "team"),
		list("lease", "ended"), list("lease", "48h"), list("lease", "none"), list("sort", "name"), list("sort", "-expireTime"),
		list("q", "stored"), list("q", "stored-777"), list("q", "77"), list("q", "198.18.2"), list("q", "nowhere"),
		list("q", "name:stored-77"), list("q", "node:bench1-1000"), list("q", "ip:198.18.2"), list("q", "id:0077"), list("q", "service:mock-app"), list("q", "-label:team=web"),
	}
}

// varied makes the stored clusters differ in what lists are narrowed by.
const varied = `
UPDATE clusters SET labels = jsonb_build_object('team', CASE WHEN id % 50 = 0 THEN 'web' ELSE 'other' END),
    expires_at = CASE WHEN id % 3 = 0 THEN now() + (id % 1000) * interval '12 hours' END,
    status = CASE WHEN id % 20 = 0 THEN 'terminated' WHEN id % 400 = 1 THEN 'incomplete' ELSE status END
WHERE name LIKE 'stored-%'`

// measureFilters measures the list of clusters with one filter at a time.
func (b *benchInstance) measureFilters(ctx context.Context, v *visitor, scale benchScale) error {
	var figures []pageFigures
	var names []string
	for _, p := range scale.pickedOf(filtersOf()) {
		f, err := b.measurePage(ctx, v, p.path, scale.while/2)
		if err != nil {
			return err
		}
		figures, names = append(figures, f), append(names, p.name)
	}
	if len(figures) == 0 {
		return nil
	}
	fmt.Fprintf(b.Out, "\nThe list of clusters with one filter, %s each\n\n  %-34s %s\n", scale.while/2, "", pageColumns)
	for i, f := range figures {
		fmt.Fprintf(b.Out, "  %-34s %s\n", names[i], f.times())
	}
	return nil
}

func (b *benchInstance) measurePages(ctx context.Context, v *visitor, big loom.ClusterID, log page, scale benchScale) error {
	op, err := b.Clusters.Operation(ctx, b.actor, loom.OperationRef{Cluster: big, Number: 1})
	if err != nil {
		return err
	}
	var node loom.NodeID
	if err := b.System.DB.GetContext(ctx, &node, `SELECT id FROM nodes WHERE cluster_id = $1 ORDER BY number LIMIT 1`, int64(big)); err != nil {
		return err
	}
	total := 0
	for _, n := range op.Tasks {
		total += n
	}
	fmt.Fprintf(b.Out, "\nPages: %d callers, %s each, with %d clusters stored and an operation of %d tasks running on the same host\n\n", pageCallers, scale.while, scale.clusters, total)
	fmt.Fprintf(b.Out, "  %-34s %s  %9s %9s\n", "", pageColumns, "HTML KB", "on wire")
	for _, p := range scale.pickedOf(append(pagesOf(big, node, scale.nodes, total), log)) {
		f, err := b.measurePage(ctx, v, p.path, scale.while)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.Out, "  %-34s %s  %9.1f %9.1f\n", p.name, f.times(), float64(f.bytes)/1000, float64(f.wire)/1000)
	}
	return nil
}

func (b *benchInstance) measurePage(ctx context.Context, v *visitor, path string, while time.Duration) (f pageFigures, err error) {
	plain, err := v.send(ctx, http.MethodGet, path, nil, false)
	if err != nil {
		return f, err
	}
	packed, err := v.send(ctx, http.MethodGet, path, nil, true)
	if err != nil {
		return f, err
	}
	f.bytes, f.wire = len(plain), len(packed)
	// What the database does without anybody looking is not the pages'.
	before, err := b.pageCPU(ctx)
	if err != nil {
		return f, err
	}
	select {
	case <-ctx.Done():
		return f, context.Cause(ctx)
	case <-time.After(while / 3):
	}
	quiet, err := b.pageCPU(ctx)
	if err != nil {
		return f, err
	}
	f.httpFigures, err = measureCalls(ctx, pageCallers, while, func(ctx context.Context, _ int64) error {
		_, err := v.send(ctx, http.MethodGet, path, nil, true)
		return err
	})
	if err != nil {
		return f, err
	}
	after, err := b.pageCPU(ctx)
	share := float64(after.at.Sub(quiet.at)) / float64(quiet.at.Sub(before.at))
	answers := f.perSecond * after.at.Sub(quiet.at).Seconds()
	each := func(before, quiet, after time.Duration) time.Duration {
		return max(0, time.Duration((float64(after-quiet)-share*float64(quiet-before))/answers))
	}
	f.web, f.database = each(before.web, quiet.web, after.web), each(before.database, quiet.database, after.database)
	return f, err
}

// pageCPU is the processor time used up to a moment.
type pageCPU struct {
	at            time.Time
	web, database time.Duration
}

func (b *benchInstance) pageCPU(ctx context.Context) (c pageCPU, err error) {
	c.at = time.Now()
	if c.web, err = cpuOf(b.processes[0]); err != nil {
		return c, err
	}
	c.database, err = b.postgresCPU(ctx)
	return c, err
}
