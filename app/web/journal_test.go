package web_test

import (
	"context"
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
	"loom/views/route"
)

// writing is a machine whose journals a test writes.
type writing func(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string

// Follow calls the function.
func (w writing) Follow(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string {
	return w(ctx, t, sink)
}

// follower starts a provisioner that follows journals, and the hub, until the test ends.
func (w *clusterWorld) follower(machine writing) {
	w.t.Helper()
	process, err := w.processes.Register(w.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1})
	w.must(err)
	w.db.MustExec(`UPDATE processes SET expires_at = now() + interval '1 hour'`)
	ctx, cancel := context.WithCancel(w.ctx)
	notices, err := store.Listen(ctx, w.db.DSN, "public.river_insert")
	w.must(err)
	over, hub := make(chan struct{}), make(chan error, 1)
	w.t.Cleanup(func() { cancel(); <-over; <-hub })
	go func() { hub <- w.hub.Run(ctx) }()
	target := func(_ context.Context, j loom.Journal, _ loom.HealthNode) (*loom.JournalTarget, error) {
		return &loom.JournalTarget{Journal: j}, nil
	}
	go func() {
		defer close(over)
		for range notices {
			var id loom.JournalID
			if err := w.db.GetContext(ctx, &id, `DELETE FROM river_job WHERE id = (SELECT min(id) FROM river_job WHERE kind = 'follow_journal') RETURNING args->>'journal_id'`); err != nil {
				continue
			}
			if err := fleet.New(w.db.DB).FollowJournal(ctx, process, id, target, machine); err != nil && ctx.Err() == nil {
				w.t.Errorf("journal %s: %v", id, err)
			}
		}
	}()
}

// journalPage returns the page of the journal of a service of an active cluster, which has logs.
func (w *clusterWorld) journalPage(service string) (cluster loom.ClusterID, node loom.NodeID, page string) {
	w.t.Helper()
	cluster = w.active("logged", 2)
	for _, n := range w.cluster(cluster).Nodes {
		if strings.Contains(strings.Join(n.Services, " "), service) {
			node = n.ID
		}
	}
	w.db.MustExec(`UPDATE clusters SET services = jsonb_set(services, ARRAY[$1, 'logs'], '{"files": ["/var/log/x.log"]}') WHERE id = $2`, service, int64(cluster))
	return cluster, node, route.ServiceJournal(cluster, node, service)
}

// TestJournalPage: the last lines without scripts, and rows for those that follow.
func TestJournalPage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	cluster, node, at := w.journalPage("nginx")
	link := `href="` + at + `"`
	w.get("ana", route.ClusterTab(cluster, "services")).is(200, link)
	w.get("ana", route.Node(cluster, node)).is(200, link, `aria-label="Journal of nginx"`)
	w.get("ana", at).is(200, "No provisioner is running")
	w.get("eve", at).is(404)
	other := strings.Replace(at, "/nginx/", "/nix/", 1)
	w.get("ana", other).is(404)

	more, end := make(chan string), make(chan struct{})
	w.follower(func(ctx context.Context, _ *loom.JournalTarget, sink loom.Sink) string {
		sink.Log("stdout", "first <script>alert(1)</script> \x1b[31mred\x1b]0;title\x07 line")
		for {
			select {
			case <-ctx.Done():
				return ""
			case <-end:
				return "It is <over>."
			case text := <-more:
				for range strings.Count(text, "x") {
					sink.Log("stdout", text)
				}
			}
		}
	})
	page := w.get("ana", at).is(200, "Journal of nginx", link+`>Reload</a>`, "first &lt;script&gt;alert(1)&lt;/script&gt;", `class="a-red"`, "data-more=", "data-every=").lacks("\x1b", "title\x07")
	found := regexp.MustCompile(`data-more="([^"]+)"`).FindStringSubmatch(page.Body)
	rows := html.UnescapeString(found[1])
	w.get("ana", at).is(200, found[1], "first &lt;script&gt;") // the same journal
	w.get("ana", rows+"&after=1").is(204)
	w.get("eve", rows).is(404)
	more <- strings.Repeat("x", 500)
	await := func(texts ...string) clusterAnswer {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			a := w.get("ana", rows+"&after=1")
			missing := false
			for _, text := range texts {
				missing = missing || !strings.Contains(a.Body, text)
			}
			if !missing {
				return a
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %q: %d %.500s", texts, a.Code, a.Body)
			}
		}
	}
	await(`id="L2"`, "lines skipped: more than 200 a second").lacks("first")
	close(end)
	over := await("It is &lt;over&gt;.", `data-stream="loom"`)
	if over.Header.Get("Loom-Ended") == "" {
		t.Error("scripts ask for more")
	}
	var audited int
	if err := w.db.Get(&audited, `SELECT count(*) FROM audit WHERE kind = 'journal'`); err != nil || audited != 1 {
		t.Errorf("%d entries in the audit, %v", audited, err)
	}
	w.get("ana", rows+"0").is(404)

	var document struct{ Lines []struct{ Text string } }
	w.must(json.Unmarshal([]byte(w.get("ana", at+"?as=json").is(200).Body), &document))
	if len(document.Lines) != 1 || !strings.HasPrefix(document.Lines[0].Text, "first") {
		t.Errorf("as JSON: %+v", document)
	}
	w.db.MustExec(`UPDATE clusters SET services = services #- '{nginx,logs}'`)
	w.get("ana", at).is(200, "does not say where its logs are").lacks("data-more")
	w.db.MustExec(`UPDATE nodes SET state = 'failed'`)
	w.get("ana", route.ClusterTab(cluster, "services")).is(200).lacks(link)
}
