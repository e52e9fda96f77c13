package web_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
	"loom/views/clusterview"
	"loom/views/route"
)

// TestEveryTopicIsSignalled does what each topic tells of: who may
// follow hears it, and the part of a page that follows shows it.
func TestEveryTopicIsSignalled(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	super := w.superCookie()
	ctx, stop := context.WithTimeout(w.ctx, 150*time.Second)
	t.Cleanup(stop)
	go w.hub.Run(ctx) //nolint:errcheck // the streams would fail
	server := httptest.NewUnstartedServer(w.handler)
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(stop) // before the server waits for its streams
	follow := func(user loom.UserID, topic string) *pageStream {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events?topics="+url.QueryEscape(topic), nil)
		w.must(err)
		r.Header.Set("Cookie", "loom-dev="+w.cookies[user])
		answer, err := http.DefaultTransport.RoundTrip(r)
		w.must(err)
		t.Cleanup(func() { answer.Body.Close() })
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s follows %s: %s", user, topic, answer.Status)
		}
		s := &pageStream{t, bufio.NewScanner(answer.Body)}
		for b := s.next(); b["id"] == ""; b = s.next() { // it follows from its first place on
		}
		return s
	}
	heard := func(s *pageStream, topic, data string) {
		t.Helper()
		for b := s.next(); b["event"] != topic || !strings.Contains(b["data"], data); b = s.next() {
		}
	}
	shop, blog := w.create("shop", 2), w.create("blog", 2)
	w.runSome(shop, 1, 1)
	id := shop.Cluster.String()
	runs := loom.TaskRef{Operation: shop, Number: 2}
	end := func(ref loom.OperationRef) {
		w.must(store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
			op, err := store.LockOperation(ctx, tx, w.tenant.ID, ref)
			if err != nil {
				return err
			}
			return store.EndOperation(ctx, tx, &op, loom.OperationComplete, loom.ClusterActive, "", false)
		}))
	}
	for _, test := range []struct {
		what, topic, data string
		user              loom.UserID
		act               func()
		path, part, shows string
	}{
		{what: "an operation pauses", topic: route.TopicOperation(shop), user: "ana", act: func() { w.post("ana", route.OperationVerb(shop, "pause"), url.Values{}) },
			path: route.OperationPanel(shop), part: "operation-head", shows: "Paused"},
		{what: "an operation goes on", topic: route.TopicCluster(shop.Cluster), user: "ana", act: func() { w.post("ana", route.OperationVerb(shop, "resume"), url.Values{}) },
			path: clusterview.PartURL(shop.Cluster, clusterview.PartOperation), part: clusterview.PartOperation.ID(), shows: "Running"},
		{what: "a listed cluster changes", topic: route.TopicClusters(), data: `{"ids":[]}`, user: "ana", act: func() { w.post("ana", route.OperationVerb(shop, "pause"), url.Values{}) },
			path: "/clusters/rows?ids=" + id, part: "clusters", shows: "shop"},
		{what: "a line is logged", topic: route.TopicLog(runs, 1), user: "ana", act: func() {
			var row int64
			w.must(w.db.Get(&row, `SELECT id FROM tasks WHERE cluster_id = $1 AND number = 2 AND NOT gate`, int64(shop.Cluster)))
			log := w.ops.Log(execution.AttemptKey{Task: loom.TaskID(row), Attempt: 1})
			log.Add("stdout", "hello from the machine\n")
			log.Close()
		}, path: route.TaskLog(runs, 1), part: "log", shows: "hello from the machine"},
		{what: "an operation ends", topic: loom.TopicOwn, data: `"` + id + `/1"`, user: "ana", act: func() { end(shop) },
			path: route.News() + "?of=" + id + "/1", part: "toasts", shows: "Create of shop is complete."},
		{what: "the counts of the tenant", topic: route.TopicTenant(), user: "admin", act: func() { end(blog) },
			path: "/home/clusters", part: "home-clusters", shows: "Created"},
		{what: "a lease ends soon", topic: loom.TopicOwn, data: `"` + id + `"`, user: "ana", act: func() {
			w.db.MustExec(`UPDATE clusters SET expires_at = now() + interval '30 minutes' WHERE id = $1`, int64(shop.Cluster))
			w.must(w.clusters.Expire(ctx))
		}, path: route.News() + "?of=" + id, part: "toasts", shows: "The lease of shop ends in"},
		{what: "a token ends soon", topic: loom.TopicOwn, data: `"` + loom.NewsOfToken, user: "ana", act: func() {
			_, _, err := w.accounts.CreateToken(ctx, w.actor("ana"), account.NewToken{Name: "nightly", Scopes: []loom.Scope{loom.ScopeRead}})
			w.must(err)
			w.db.MustExec(`UPDATE tokens SET created_at = now() - interval '27 days', expires_at = now() + interval '76 hours'`)
			w.must(w.ops.PurgeSessions(ctx))
		}, path: route.News() + "?of=" + loom.NewsOfToken + "1", part: "toasts", shows: "Your token “nightly” expires in 3 d."},
		{what: "a tenant is made", topic: route.TopicSystem(), data: `"tenants/new-tenant"`, user: super, act: func() { w.makeTenant("new-tenant", "zoe") },
			path: route.System(), part: "live", shows: "Tenants"},
	} {
		s := follow(test.user, test.topic)
		test.act()
		heard(s, test.topic, test.data)
		if a := w.part(test.user, test.path, test.part); !strings.Contains(a.Body, test.shows) {
			t.Errorf("%s: %s does not show %q: %.600s", test.what, test.path, test.shows, a.Body)
		}
	}
	// What is somebody else's stays unheard and untold.
	s := follow("eve", loom.TopicOwn)
	var hers loom.TenantID
	w.must(w.db.Get(&hers, `SELECT id FROM tenants WHERE name = 'other'`))
	w.must(store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
		if err := store.TellOwner(ctx, tx, w.tenant.ID, shop.Cluster, "", id+"/1"); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx,
			loom.Event{Tenant: w.tenant.ID, Topic: loom.TopicOfUser + "eve", IDs: []string{"98/1"}}, // another of that name
			loom.Event{Tenant: hers, Topic: loom.TopicOfUser + "eve", IDs: []string{"99/1"}})
	}))
	b := s.next()
	for b["event"] == "" { // a place without a signal
		b = s.next()
	}
	if b["event"] != loom.TopicOwn || b["data"] != `{"ids":["99/1"]}` {
		t.Errorf("eve hears %v", b)
	}
	if a := w.part("eve", route.News()+"?of="+id+"/1,"+id+",x,99/1,1/x", "toasts"); strings.TrimSpace(a.Body) != "" {
		t.Errorf("eve is told %q", a.Body)
	}
	if a := w.part("eve", route.News()+"?of=token/1,token/x,token/", "toasts"); a.Code != http.StatusOK || strings.TrimSpace(a.Body) != "" {
		t.Errorf("eve is told of tokens: %d %q", a.Code, a.Body)
	}
}
