package hook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/hook"
	"loom/app/loom"
)

// verify checks a signature as a receiver does, written from the documentation.
func verify(t *testing.T, c call, key string) {
	t.Helper()
	stamp, mac, found := strings.Cut(c.header.Get("X-Loom-Signature"), ",v1=")
	seconds := strings.TrimPrefix(stamp, "t=")
	given, err := hex.DecodeString(mac)
	sent, numErr := strconv.ParseInt(seconds, 10, 64)
	if !found || err != nil || numErr != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		t.Fatalf("the signature is %q", c.header.Get("X-Loom-Signature"))
	}
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(seconds + "." + c.body))
	if !hmac.Equal(given, h.Sum(nil)) {
		t.Error("the signature does not fit the body")
	}
	other := hmac.New(sha256.New, []byte(key+"x"))
	other.Write([]byte(seconds + "." + c.body))
	if hmac.Equal(given, other.Sum(nil)) {
		t.Error("the signature does not depend on the secret")
	}
}

func TestHooksHearOfCreateAndDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	w.runs(loom.TaskResult{})
	mine, all, theirs, narrow := newEndpoint(t, nil), newEndpoint(t, nil), newEndpoint(t, nil), newEndpoint(t, nil)
	h, key := w.create(admin, hook.Input{URL: mine.URL})
	global, _ := w.create(super, hook.Input{URL: all.URL, Global: true})
	w.create(foreign, hook.Input{URL: theirs.URL})
	w.create(admin, hook.Input{URL: narrow.URL, Actions: []loom.ClusterAction{loom.ClusterDelete}, Events: []loom.HookEvent{loom.HookSuccess}, Templates: []string{"site"}})
	w.create(admin, hook.Input{URL: narrow.URL, Templates: []string{"else"}})

	id := w.cluster("t1", loom.ClusterPending)
	op := w.begin("t1", id, loom.ClusterCreate)
	w.becomes(op, loom.OperationComplete)
	w.eventually("two notices", func() bool { return len(mine.got()) == 2 && len(all.got()) == 2 })
	op = w.begin("t1", id, loom.ClusterDelete)
	w.becomes(op, loom.OperationComplete)
	w.eventually("two more, and the narrow one", func() bool { return len(mine.got()) == 4 && len(narrow.got()) == 1 })

	for _, c := range mine.got() {
		verify(t, c, key)
		for _, leak := range []string{"pa55word", key} {
			if strings.Contains(c.body, leak) {
				t.Errorf("the body holds %q: %s", leak, c.body)
			}
		}
		v := c.object(t)
		cluster, operation := v["cluster"].(map[string]any), v["operation"].(map[string]any)
		if v["tenant"] != "acme" || v["schema"] != 1.0 || v["event"] != c.header.Get("X-Loom-Event") || v["id"] != c.header.Get("X-Loom-Delivery") ||
			cluster["name"] != "shop" || cluster["numNodes"] != 2.0 || operation["requestedBy"] != "ana" ||
			v["links"].(map[string]any)["cluster"] != "https://loom.example/v2/clusters/"+id.String() {
			t.Errorf("the body is %s", c.body)
		}
		// Facts of the moment, whenever it was sent.
		want := map[any]string{"start": "running pending", "success": "complete active"}[v["event"]]
		if operation["action"] == "cluster_delete" && v["event"] == "success" {
			want = "complete terminated"
		}
		if got := operation["status"].(string) + " " + cluster["status"].(string); got != want {
			t.Errorf("%s of %s says %s, want %s", v["event"], operation["action"], got, want)
		}
	}
	if len(theirs.got()) != 0 {
		t.Error("a hook of another tenant was called")
	}
	w.eventually("all delivered", func() bool {
		return w.text(`SELECT count(*) FROM hook_deliveries WHERE status = 'delivered'`) == "9"
	})
	if log := w.log(admin, h); len(log) != 4 || log[0].Tries != 1 || log[0].Code != 200 || log[0].Operation != op.Ref {
		t.Errorf("the log is %+v", log)
	}
	w.begin("t2", w.cluster("t2", loom.ClusterPending), loom.ClusterCreate)
	w.eventually("the other tenant's", func() bool { return len(theirs.got()) == 2 && len(all.got()) == 6 })
	if len(mine.got()) != 4 {
		t.Error("a hook heard of another tenant")
	}
	if _, err := w.hooks.Deliveries(ctx, foreign, global.ID, hook.Filter{}, loom.Page{}); !errors.Is(err, loom.NotFound) {
		t.Errorf("a tenant sees a global hook: %v", err)
	}
}

func TestHooksHearOfFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e, legacy := newEndpoint(t, nil), newEndpoint(t, nil)
	w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookFailure}})
	w.create(admin, hook.Input{URL: legacy.URL, Events: []loom.HookEvent{loom.HookFailure}, LegacyBody: true})
	w.runs(loom.TaskResult{Status: 1, Message: "no room"})
	w.becomes(w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate), loom.OperationFailed)
	w.eventually("the notices", func() bool { return len(e.got()) == 1 && len(legacy.got()) == 1 })
	if op := e.got()[0].object(t)["operation"].(map[string]any); op["status"] != "failed" || op["message"] == nil {
		t.Errorf("the operation is %v", op)
	}
	body := legacy.got()[0].object(t)
	cluster, job, nodes := body["cluster"].(map[string]any), body["job"].(map[string]any), body["nodes"].([]any)
	if cluster["status"] != "INCOMPLETE" || job["clusterAction"] != "CLUSTER_CREATE" || job["jobStatus"] != "FAILED" || len(nodes) != 2 || len(cluster["nodes"].([]any)) != 2 {
		t.Errorf("the legacy body is %v", body)
	}
	if text := legacy.got()[0].body; strings.Contains(text, "pa55word") || !strings.Contains(text, `"zone":"z1"`) || !strings.Contains(text, `"port":80`) {
		t.Errorf("the legacy body is %s", text)
	}
}

func TestDeliveriesAreTriedAgainAndReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, func(w http.ResponseWriter, n int) {
		if n < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	h, key := w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.runs(loom.TaskResult{})
	for n := 1; n <= 2; n++ {
		w.eventually("a try", func() bool { return w.log(admin, h)[0].Tries == n })
		d := w.log(admin, h)[0]
		if d.Status != loom.DeliveryWaiting || d.Code != 500 || d.Error == "" || !d.Next.After(time.Now().Add(time.Duration(n)*5*time.Second)) {
			t.Errorf("after try %d: %+v", n, d)
		}
		w.eventually("River waits too", func() bool {
			return w.text(`SELECT count(*) FROM river_job WHERE kind = 'deliver_hook' AND state = 'scheduled'`) == "1"
		})
		w.due(0)
	}
	w.eventually("delivered", func() bool { return w.log(admin, h)[0].Status == loom.DeliveryDelivered })
	calls := e.got()
	if len(calls) != 3 || calls[0].body != calls[2].body {
		t.Errorf("%d calls, or their bodies differ", len(calls))
	}
	first := w.log(admin, h)[0]
	again, err := w.hooks.Replay(ctx, admin, h.ID, first.ID)
	w.must(err)
	if again.ID == first.ID || again.Status != loom.DeliveryWaiting || !again.Time.Equal(first.Time) || again.Operation != first.Operation {
		t.Errorf("the replay is %+v", again)
	}
	w.eventually("replayed", func() bool { return len(e.got()) == 4 && w.log(admin, h)[0].Status == loom.DeliveryDelivered })
	verify(t, e.got()[3], key)
	if v := e.got()[3].object(t); v["id"] != strconv.Itoa(int(again.ID)) || v["operation"].(map[string]any)["status"] != "running" {
		t.Errorf("the replayed body is %v", v)
	}
	if _, err := w.hooks.Replay(ctx, admin, h.ID, 999); !errors.Is(err, loom.NotFound) {
		t.Errorf("replay of nothing: %v", err)
	}
	if _, err := w.hooks.Replay(ctx, foreign, h.ID, first.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("replay by another tenant: %v", err)
	}
}

func TestDeliveriesAreGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, status(http.StatusBadGateway))
	h, _ := w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	w.runs(loom.TaskResult{})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.eventually("a try", func() bool { return w.log(admin, h)[0].Tries == 1 })
	w.eventually("River waits too", func() bool {
		return w.text(`SELECT count(*) FROM river_job WHERE kind = 'deliver_hook' AND state = 'scheduled'`) == "1"
	})
	w.due(24 * time.Hour)
	w.eventually("given up", func() bool { return w.log(admin, h)[0].Status == loom.DeliveryFailed })
	if d := w.log(admin, h)[0]; d.Tries != 2 || d.Code != 502 || !d.Next.IsZero() {
		t.Errorf("given up as %+v", d)
	}
}

func TestDeliveriesOfADeadProcessAndLostOnesAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, nil)
	w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{dead-00000000}' WHERE kind = 'deliver_hook'`)
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.exec(`DELETE FROM river_job WHERE kind = 'deliver_hook' AND state = 'available'`)
	w.exec(`UPDATE hook_deliveries SET next_at = now() - interval '2 minutes'`)
	w.runs(loom.TaskResult{})
	w.eventually("both", func() bool { return len(e.got()) >= 2 })
}

func TestNothingIsSentToAHookThatIsOffOrGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, nil)
	off, _ := w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	gone, _ := w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	id := w.cluster("t1", loom.ClusterPending)
	w.begin("t1", id, loom.ClusterCreate)
	_, err := w.hooks.Put(ctx, admin, off.ID, hook.Input{Name: "off", URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	w.must(err)
	w.must(w.hooks.Delete(ctx, admin, gone.ID))
	w.runs(loom.TaskResult{})
	w.eventually("dropped", func() bool { return w.log(admin, off)[0].Status == loom.DeliveryFailed })
	w.eventually("River is done", func() bool {
		return w.text(`SELECT count(*) FROM river_job WHERE kind = 'deliver_hook' AND state <> 'completed'`) == "0"
	})
	if len(e.got()) != 0 {
		t.Error("something was sent")
	}
	if d := w.log(admin, off)[0]; d.Tries != 0 || !strings.Contains(d.Error, "switched off") {
		t.Errorf("dropped as %+v", d)
	}
	if n := w.text(`SELECT count(*) FROM secrets WHERE entity = $1`, "hook:"+strconv.Itoa(int(gone.ID))); n != "0" {
		t.Error("the secret of the deleted hook stayed")
	}
	if _, err := w.hooks.Replay(ctx, admin, off.ID, w.log(admin, off)[0].ID); !errors.Is(err, loom.Conflict) {
		t.Errorf("replay to a hook that is off: %v", err)
	}
}

func TestPrivateAddressesAreNotCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // public addresses only
	e := newEndpoint(t, nil)
	if _, _, err := w.hooks.Create(ctx, admin, hook.Input{Name: "x", URL: e.URL}); !errors.Is(err, loom.Invalid) {
		t.Fatalf("a literal address was saved: %v", err)
	}
	h, _ := w.create(admin, hook.Input{URL: "https://hooks.example/", Events: []loom.HookEvent{loom.HookStart}})
	// A name that led elsewhere when it was saved.
	w.exec(`UPDATE hooks SET url = $1`, strings.Replace(e.URL, "127.0.0.1", "localhost", 1))
	w.runs(loom.TaskResult{})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.eventually("a try", func() bool { return w.log(admin, h)[0].Tries == 1 })
	if d := w.log(admin, h)[0]; d.Status != loom.DeliveryWaiting || d.Code != 0 || !strings.Contains(d.Error, "LOOM_HOOK_NETWORKS") || !strings.Contains(d.Error, "“localhost” leads to an address") || strings.Contains(d.Error, "private") || strings.Contains(d.Error, "127.0.0.1") || len(e.got()) != 0 {
		t.Errorf("%d calls; %+v", len(e.got()), d)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	target := newEndpoint(t, nil)
	e := newEndpoint(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", target.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	h, _ := w.create(admin, hook.Input{URL: e.URL, Events: []loom.HookEvent{loom.HookStart}})
	w.runs(loom.TaskResult{})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.eventually("a try", func() bool { return w.log(admin, h)[0].Tries == 1 })
	if d := w.log(admin, h)[0]; d.Code != 307 || !strings.Contains(d.Error, "redirect") || len(target.got()) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestAHugeClusterMakesABoundedBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, nil)
	h, _ := w.create(admin, hook.Input{URL: e.URL, Events: startOnly, LegacyBody: true})
	id := w.cluster("t1", loom.ClusterPending)
	w.exec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, results)
		SELECT gen_random_uuid(), $1, 't1', 1001 + i, 'n' || i, 'h', 'i', 'f', 'm', 'root', '{web}', '{}', jsonb_build_object('big', repeat('x', 1000000 / i))
		FROM generate_series(1, 1198) AS i`, id)
	w.begin("t1", id, loom.ClusterCreate)
	if n := w.text(`SELECT length(notice::text) < 3000000 FROM hook_deliveries`); n != "true" {
		t.Errorf("the stored notice is too large")
	}
	if _, ok, err := w.hooks.Send(ctx, w.log(admin, h)[0].ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	body := e.got()[0].object(t)
	if len(body["nodes"].([]any)) != 1000 || body["nodesOmitted"] != 200.0 || len(e.got()[0].body) > 5_000_000 {
		t.Errorf("%d nodes, %v left out, %d bytes", len(body["nodes"].([]any)), body["nodesOmitted"], len(e.got()[0].body))
	}
}
