package processes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
)

const typed = "typed-secret-77"

func draft() loom.ProviderDraft {
	return loom.ProviderDraft{Provider: loom.Provider{Base: loom.Base{Name: "new"}, Type: "lab", Fields: map[string]any{"region": "south"}}, Secrets: map[string]loom.Secret{"pin": loom.NewSecret(typed)}}
}

// nowhere fails when a text is in any row of any table, River's included, or when the bytes of
// a sealed draft are still there.
func (a *asked) nowhere(text string) {
	a.t.Helper()
	var tables []string
	a.must(a.db.Select(&tables, `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`))
	if len(tables) < 20 {
		a.t.Fatalf("only %d tables", len(tables))
	}
	for _, table := range tables {
		if n := a.count(`SELECT count(*) FROM ` + table + ` r WHERE strpos(r::text, '` + text + `') > 0 OR strpos(r::text, encode(convert_to('` + text + `', 'UTF8'), 'hex')) > 0 OR strpos(r::text, encode(convert_to('` + text + `', 'UTF8'), 'base64')) > 0`); n > 0 {
			a.t.Errorf("%q is in %d rows of %s", text, n, table)
		}
	}
}

func (a *asked) run(id int64) processes.ProbeRun {
	a.t.Helper()
	run, err := a.ProbeByID(a.ctx, a.admin, id)
	a.must(err)
	return run
}

// TestDraft: a provider that is not saved is tested with its secrets, by the same way; its
// steps are seen while it runs, and its secrets are gone in the end.
func TestDraft(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	id, err := a.BeginDraft(a.ctx, a.admin, draft())
	a.must(err)
	if run := a.run(id); run.Started || run.Ended || !run.Draft || run.Provider != "new" {
		t.Errorf("before it began: %+v", run)
	}
	a.nowhere(typed)
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE sealed IS NOT NULL`); n != 1 {
		t.Errorf("%d sealed drafts", n)
	}
	c := &cloud{probe: loom.Probe{OK: true, Checks: []loom.ProbeCheck{{Name: "resolve", OK: true}, {Name: "connect", OK: true}}}}
	c.before = func(context.Context) error { return nil }
	seen := make(chan struct{})
	a.serve(told{c, func(call *loom.ProviderCall) {
		call.Told(loom.ProbeCheck{Name: "resolve", OK: true, Message: "Yes."})
		for run := a.run(id); len(run.Answer.Checks) == 0; run = a.run(id) {
			if run.Ended {
				t.Error("it ended too early")
				break
			}
		}
		close(seen)
	}})
	<-seen
	for !a.run(id).Ended {
		if err := a.ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if run := a.run(id); !run.Answer.OK || len(run.Answer.Checks) != 2 || run.Answer.Time.IsZero() {
		t.Errorf("the answer: %+v", run)
	}
	call := c.calls[0]
	if call.Provider.Fields["pin"] != typed || call.Provider.Fields["region"] != "south" || call.Provider.Name != "new" || call.Sensitive[0] != typed || call.ResourceSet != 3 || call.Tenant != "t1" {
		t.Errorf("call: %+v", call)
	}
	a.nowhere(typed)
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE sealed IS NOT NULL`); n != 0 {
		t.Errorf("%d sealed drafts are left", n)
	}
	if n := a.count(`SELECT count(*) FROM audit WHERE tenant_id = 't1' AND actor = 'admin' AND verb = 'probe' AND object = 'new'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if _, err := a.LastProbe(a.ctx, a.admin, "lab"); !errors.Is(err, loom.NotFound) {
		t.Errorf("a draft counts for a saved provider: %v", err)
	}
	colleague, stranger := a.admin, a.admin
	colleague.User, stranger.Tenant = "other", "t2"
	for name, actor := range map[string]loom.Actor{"a colleague": colleague, "another tenant": stranger} {
		if _, err := a.ProbeByID(a.ctx, actor, id); !errors.Is(err, loom.NotFound) {
			t.Errorf("%s reads it: %v", name, err)
		}
	}
}

// told tells steps before it answers.
type told struct {
	*cloud
	tell func(call *loom.ProviderCall)
}

func (c told) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	c.tell(call)
	return c.cloud.Probe(ctx, call)
}

// TestDraftsAreBounded: a tenant tests a few connections at once, which does not keep
// another one from it; a type that is switched off is not tested.
func TestDraftsAreBounded(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	other := a.admin
	other.Tenant = "t2"
	for range 3 {
		_, err := a.BeginDraft(a.ctx, a.admin, draft())
		a.must(err)
	}
	_, err := a.BeginDraft(a.ctx, a.admin, draft())
	if e := loom.AsError(err); e.Kind != loom.Throttled || e.RetryAfter == 0 {
		t.Errorf("a fourth one: %v", err)
	}
	if _, err := a.BeginProbe(a.ctx, a.admin, "lab"); !errors.Is(err, loom.Throttled) {
		t.Errorf("a saved one: %v", err)
	}
	_, err = a.BeginDraft(a.ctx, other, draft())
	a.must(err)
	a.exec(`UPDATE tenants SET provider_types_off = '{lab}' WHERE id = 't1'`)
	c := &cloud{probe: loom.Probe{OK: true, Checks: []loom.ProbeCheck{{Name: "x", OK: true}}}}
	for _, id := range a.requests() {
		a.must(a.WorkRequest(a.ctx, a.process, id, c))
	}
	if len(c.calls) != 1 || c.calls[0].Tenant != "t2" {
		t.Errorf("%d calls", len(c.calls))
	}
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE tenant_id = 't1' AND probe::text LIKE '%switched off%'`); n != 3 {
		t.Errorf("%d refusals", n)
	}
	for range 20 {
		id, err := a.BeginDraft(a.ctx, other, draft())
		a.must(err)
		a.requests()
		a.must(a.WorkRequest(a.ctx, a.process, id, c))
	}
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE tenant_id = 't2'`); n > 10 {
		t.Errorf("%d answers are kept", n)
	}
}

// TestLostProbesEnd: a provisioner that was killed, and one that never came, leave no probe
// behind that seems to run, and no secret.
func TestLostProbesEnd(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	killed, err := a.BeginDraft(a.ctx, a.admin, draft())
	a.must(err)
	saved, err := a.BeginProbe(a.ctx, a.admin, "lab")
	a.must(err)
	late, err := a.BeginDraft(a.ctx, a.admin, draft())
	a.must(err)
	for _, id := range []int64{killed, saved} {
		a.must(store.Exec(a.ctx, a.db.DB, func(tx *sqlx.Tx) error {
			if _, taken, _, err := store.TakeRequestAllTenants(a.ctx, tx, id, a.process); err != nil || !taken {
				return fmt.Errorf("take: %t, %w", taken, err)
			}
			return store.ProgressProbe(a.ctx, tx, "t1", id, a.process, loom.Probe{Checks: []loom.ProbeCheck{{Name: "resolve", OK: true}}})
		}))
	}
	_, err = a.Reap(a.ctx)
	a.must(err)
	if a.run(killed).Ended || a.run(late).Ended {
		t.Error("probes end that run")
	}
	a.exec(`UPDATE processes SET expires_at = now() - interval '1 s'`)
	a.exec(`UPDATE provider_requests SET created_at = created_at - interval '2 minutes' WHERE id = $1`, late)
	_, err = a.Reap(a.ctx)
	a.must(err)
	for id, says := range map[int64]string{killed: "has stopped", saved: "has stopped", late: "No provisioner took the test"} {
		run := a.run(id)
		failed, _ := run.Answer.Failed()
		if !run.Ended || run.Answer.OK || !strings.Contains(failed.Message, says) || id != late && run.Answer.Checks[0].Name != "resolve" {
			t.Errorf("%+v", run)
		}
	}
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE sealed IS NOT NULL`); n != 0 {
		t.Errorf("%d secrets are left", n)
	}
	// What the lost one may still say does not count.
	a.must(store.Exec(a.ctx, a.db.DB, func(tx *sqlx.Tx) error {
		held, err := store.EndRequest(a.ctx, tx, "t1", killed, a.process, &loom.Probe{OK: true}, "", false)
		if held {
			t.Error("it ended twice")
		}
		return err
	}))
	_, err = a.BeginDraft(a.ctx, a.admin, draft())
	if e := loom.AsError(err); e.Kind != loom.Unavailable || !strings.Contains(e.Message, "No provisioner is running. Start one with “loom provisioner”") {
		t.Errorf("without a provisioner: %v", err)
	}
}
