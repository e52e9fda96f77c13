package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/hook"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
	"loom/views/route"
)

// TestCatalogByForms makes, checks, saves, deprecates, offers again and deletes an entry
// of every kind by the forms of its pages, without scripts.
func TestCatalogByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	for kind, document := range map[loom.EntityKind]string{
		loom.KindProvider:        `{"name":"fresh","providertype":"lab","provisioner":{"region":"north"}}`,
		loom.KindHardwareType:    `{"name":"fresh","providermap":{"lab":{"flavor":"1 GiB"}}}`,
		loom.KindImageType:       `{"name":"fresh","providermap":{"lab":{"image":"trixie"}}}`,
		loom.KindService:         `{"name":"fresh","provisioner":{"actions":{}}}`,
		loom.KindTemplate:        `{"name":"fresh","defaults":{"services":["nginx"],"provider":"lab"},"compatibility":{"services":["nginx"]}}`,
		loom.KindPartialTemplate: `{"name":"fresh","constraints":{"size":{"min":1,"max":5}}}`,
	} {
		list, at := route.AdminKind(kind), route.AdminEntry(kind, "fresh")
		check := route.AdminValidate(kind)
		w.get("admin", route.AdminNew(kind)).is(http.StatusOK)
		w.post("admin", list, url.Values{"body": {strings.Replace(document, "fresh", "not a name", 1)}}).is(http.StatusUnprocessableEntity)
		w.post("admin", check, url.Values{"body": {document}}).is(http.StatusOK)
		w.post("admin", check+"/name", url.Values{"name": {"fresh"}}).is(http.StatusOK).lacks("already")
		w.post("admin", list, url.Values{"body": {document}}).goesTo(at)
		w.post("admin", check+"/name", url.Values{"name": {"fresh"}}).is(http.StatusOK, "already")
		w.post("ana", list, url.Values{"body": {document}}).is(http.StatusForbidden)

		versions := route.AdminEntryVersions(kind, "fresh")
		if kind.Releasable() {
			w.press("admin", versions, "Withdraw").goesTo(versions)
			w.press("admin", versions, "Release").goesTo(versions)
			w.press("admin", at+"/edit", "Preview effect").is(http.StatusOK, "Effect on clusters")
		}
		w.press("admin", route.AdminEntryVersion(kind, "fresh", 1), "Save message", "message", "Old.").goesTo(versions)
		w.press("admin", at+"/edit", "Save as new version").goesTo(at + ".*")
		w.press("admin", at, "Deprecate").goesTo(at)
		w.get("admin", at).is(http.StatusOK, "Undeprecate")
		w.press("admin", at, "Undeprecate").goesTo(at)
		w.press("admin", at+"/delete", "Delete "+kind.Word()+" fresh").goesTo(list + ".*")
		w.get("admin", at).is(http.StatusNotFound)
	}
}

// Other buttons of administrators: a provider is tested, a notice is
// sent again, what an export needs is marked.
func TestAdminButtonsByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.press("admin", "/admin/providers/lab/test", "Test connection").is(http.StatusServiceUnavailable, "No provisioner is running")
	_, err := w.processes.Register(w.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1})
	w.must(err)
	w.press("admin", "/admin/providers/lab/test", "Test connection").goesTo("/admin/providers/lab/test")

	made, _, err := w.hooks.Create(w.ctx, w.actor("admin"), hook.Input{Name: "ci", URL: "https://ci.example/loom", Enabled: true})
	w.must(err)
	op := w.create("told", 2)
	w.db.MustExec(`DELETE FROM hook_deliveries`)
	w.db.MustExec(`INSERT INTO hook_deliveries (hook_id, tenant_id, operation_id, event, notice, status, ended_at)
		SELECT $1, tenant_id, id, 'start', '{}', 'failed', now() FROM operations WHERE cluster_id = $2`, made.ID, int64(op.Cluster))
	at := route.AdminHook(made.ID)
	w.press("admin", at, "Send again").goesTo(at)
	var sent int
	w.must(w.db.Get(&sent, `SELECT count(*) FROM hook_deliveries`))
	if sent != 2 {
		t.Errorf("%d deliveries after one was sent again", sent)
	}

	page := w.press("admin", route.AdminTransfer(), "Show what they need", "entry", "clustertemplates/web-cluster").is(http.StatusOK)
	marked := testkit.FormValues(t, page.Body, "main")["entry"]
	if all := strings.Join(marked, " "); !strings.Contains(all, "clustertemplates/web-cluster") || !strings.Contains(all, "services/haproxy") {
		t.Errorf("marked are %q", marked)
	}
}
