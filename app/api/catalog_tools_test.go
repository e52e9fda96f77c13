package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const own = `</v2/check?kind=services&name=lost>; rel="describedby"`
	saved := w.call(w.admin, put, "/v2/services/lost", `{"name":"lost","dependencies":{"install":{"requires":["ghost"],"uses":["spirit"]}}}`).want(200)
	if saved.header.Get("Loom-Findings") != "2" || saved.header.Get("Link") != own {
		t.Errorf("headers %v", saved.header)
	}
	if fine := w.call(w.admin, post, "/v2/services", `{"name":"fine"}`).want(200); fine.header.Get("Loom-Findings") != "0" || fine.header.Get("Link") != "" {
		t.Errorf("headers %v", fine.header)
	}
	found := w.call(w.user, get, "/v2/check?kind=services&name=lost", "").want(200)
	if want := `[{"severity":"error","code":"dangling","kind":"services","name":"lost","version":1,"field":"/dependencies/install/requires/0","value":"ghost",`; !strings.HasPrefix(found.body, want) ||
		len(found.array()) != 2 || found.header.Get("ETag") == "" {
		t.Errorf("findings %s", found.body)
	}
	w.call(w.user, get, "/v2/check?kind=services&name=lost", "", "If-None-Match", found.header.Get("ETag")).want(304)
	// Both have nothing to do with one another, so one machine does for neither.
	if site := w.call(w.user, get, "/v2/check?kind=clustertemplates", "").want(200).array(); len(site) != 1 || site[0]["code"] != "unsolvable" || site[0]["value"] != "1" {
		t.Errorf("site %v", site)
	}
	for query, want := range map[string]int{
		"severity=error": 1, "severity=warning": 2, "severity=error,warning": 3, "": 3, "name=nobody": 0, "kind=providers,imagetypes": 0,
		"kind=services,clustertemplates&name=lost,site": 3, "name=lost,site&severity=warning": 2,
	} {
		if all := w.call(w.user, get, "/v2/check?"+query, "").want(200).array(); len(all) != want {
			t.Errorf("%s: %v, want %d", query, all, want)
		}
	}
	for _, sort := range []string{"kind", "name", "severity"} {
		var walked []string
		for next := "/v2/check?limit=1&sort=" + sort; next != ""; {
			a := w.call(w.user, get, next, "").want(200)
			for _, f := range a.array() {
				walked = append(walked, fmt.Sprint(f["name"], f["value"]))
			}
			next = a.link("next")
		}
		want := map[string]string{"kind": "lostghost lostspirit site1", "name": "lostghost lostspirit site1", "severity": "lostghost lostspirit site1"}[sort]
		if strings.Join(walked, " ") != want {
			t.Errorf("by %s: %v", sort, walked)
		}
	}
	w.call(w.user, get, "/v2/check?kind=things", "").fails(400, "kind", "partialtemplates")
	w.call(w.user, get, "/v2/check?kind=providertypes", "").fails(400, "kind", "providers")
	w.call(w.user, get, "/v2/check?severity=fatal", "").fails(400, "severity", "error, warning")
	w.call(w.user, get, "/v2/check?colour=red", "").fails(400, "colour", "severity")
	if other := w.call(w.foreign, get, "/v2/check", "").want(200); strings.TrimSpace(other.body) != "[]" {
		t.Errorf("another tenant sees %s", other.body)
	}
	w.call("", get, "/v2/check", "").want(401)
}

func TestUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish(w.cluster(w.user, "ana-one"))
	w.cluster(w.admin, "admin-one")
	w.call(w.admin, put, "/v2/partialtemplates/part", `{"name":"part"}`).want(200)
	w.call(w.admin, put, "/v2/clustertemplates/child", `{"name":"child","extends":{"name":"site"},"includes":[{"name":"part"}],"constraints":{"services":{"web":{"hardwaretypes":["small"]}}}}`).want(200)
	w.call(w.admin, put, "/v2/services/kv", `{"name":"kv","dependencies":{"provides":["store"]}}`).want(200)
	w.call(w.admin, put, "/v2/services/user", `{"name":"user","dependencies":{"runtime":{"requires":["store"]}},"follows":["kv"]}`).want(200)
	for path, want := range map[string]string{
		"providers/lab":       "hardwaretypes/small/providermap/lab imagetypes/deb12/providermap/lab clustertemplates/site/defaults/provider cluster/00000001 cluster/00000002",
		"hardwaretypes/small": "clustertemplates/child/constraints/services/web/hardwaretypes/0 clustertemplates/site/defaults/hardwaretype cluster/00000001 cluster/00000002",
		"imagetypes/deb12":    "clustertemplates/site/defaults/imagetype cluster/00000001 cluster/00000002",
		"services/balancer": "clustertemplates/site/constraints/layout/cantcoexist/0/1 clustertemplates/site/constraints/services/balancer clustertemplates/site/defaults/services/1" +
			" cluster/00000001 cluster/00000002",
		"services/kv":                  "services/user/dependencies/runtime/requires/0 services/user/follows/0",
		"clustertemplates/site":        "clustertemplates/child/extends/name cluster/00000001 cluster/00000002",
		"partialtemplates/part":        "clustertemplates/child/includes/0/name",
		"plugins/providertypes/fake":   "providers/lab/providertype cluster/00000001 cluster/00000002",
		"plugins/automatortypes/shell": "services/balancer/provisioner/actions/install/type services/balancer/provisioner/actions/start/type services/web/provisioner/actions/install/type services/web/provisioner/actions/start/type cluster/00000001 cluster/00000002",
	} {
		var got []string
		for _, u := range w.call(w.admin, get, "/v2/"+path+"/uses", "").want(200).array() {
			field, _ := u["field"].(string)
			got = append(got, fmt.Sprintf("%v/%v%v", u["kind"], u["name"], field))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is used at\n%s\nwant\n%s", path, strings.Join(got, " "), want)
		}
	}
	mine := w.call(w.user, get, "/v2/clustertemplates/site/uses", "").want(200).body
	if !strings.Contains(mine, "00000001") || strings.Contains(mine, "00000002") {
		t.Errorf("a user sees the clusters %s", mine)
	}
	w.exec(`UPDATE clusters SET status = 'terminated' WHERE id = 1`)
	if gone := w.call(w.user, get, "/v2/clustertemplates/site/uses", "").want(200).body; strings.Contains(gone, "cluster\"") {
		t.Errorf("a terminated cluster counts: %s", gone)
	}
	if page := w.call(w.admin, get, "/v2/providers/lab/uses?limit=2", "").want(200); len(page.array()) != 2 || page.link("next") == "" {
		t.Errorf("page %s", page.body)
	}
	w.call(w.user, get, "/v2/services/nothing/uses", "").fails(404, "", "nothing")
	w.call(w.foreign, get, "/v2/services/kv/uses", "").want(404)
	if other := w.call(w.foreign, get, "/v2/plugins/providertypes/fake/uses", "").want(200); strings.TrimSpace(other.body) != "[]" {
		t.Errorf("another tenant sees %s", other.body)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{"name":"s","description":"one"}`, `{"name":"s","label":"L","follows":["a"]}`, `{"name":"s","label":"M"}`} {
		w.call(w.admin, put, "/v2/services/s", body).want(200)
	}
	at := "/v2/services/s/compare"
	if got := w.call(w.user, get, at, "").want(200).body; got != `[{"path":"/follows","sign":"-","old":["a"]},{"path":"/label","sign":"~","old":"L","new":"M"}]`+"\n" {
		t.Errorf("the two newest: %s", got)
	}
	if got := w.call(w.user, get, at+"?from=1&to=2", "").want(200).body; got != `[{"path":"/description","sign":"-","old":"one"},{"path":"/follows","sign":"+","new":["a"]},{"path":"/label","sign":"+","new":"L"}]`+"\n" {
		t.Errorf("1 to 2: %s", got)
	}
	w.call(w.admin, put, "/v2/services/s", `{"name":"s","label":"M","defaultConfig":{"a":null}}`).want(200)
	w.call(w.admin, put, "/v2/services/s", `{"name":"s","label":"M","defaultConfig":{"a":1}}`).want(200)
	if got := w.call(w.user, get, at, "").want(200).body; got != `[{"path":"/defaultConfig/a","sign":"~","old":null,"new":1}]`+"\n" {
		t.Errorf("from null: %s", got)
	}
	w.call(w.user, get, at+"?from=0", "").fails(400, "from", "whole number")
	w.call(w.user, get, at+"?to=x", "").fails(400, "to", "whole number")
	w.call(w.user, get, at+"?from=9", "").fails(404, "", "version 9")
	w.call(w.user, get, at+"?to=1", "").fails(404, "", "before version 1")
	w.call(w.user, get, "/v2/services/none/compare", "").want(404)
	w.call(w.foreign, get, at, "").want(404)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.admin, put, "/v2/partialtemplates/locked", `{"name":"locked","immutable":true,"defaults":{"config":{"audit":true}}}`).want(200)
	w.call(w.admin, put, "/v2/clustertemplates/a", `{"name":"a","extends":{"name":"b"}}`).want(200)
	w.call(w.admin, put, "/v2/clustertemplates/b", `{"name":"b","extends":{"name":"a"}}`).want(200)
	before := w.rows()
	a := w.call(w.user, post, "/v2/resolve", `{"name":"new","extends":{"name":"site"},"includes":[{"name":"locked"}],"defaults":{"services":["more"]},"constraints":{"size":{"min":2}}}`).want(200)
	got := a.object()
	defaults := got["defaults"].(map[string]any)
	if got["version"] != 1.0 || fmt.Sprint(defaults["services"]) != "[web balancer more]" || defaults["provider"] != "lab" || defaults["config"].(map[string]any)["audit"] != true {
		t.Errorf("resolved %s", a.body)
	}
	// It lacks the service “more”, and of its parent's size only the minimum is said anew.
	if a.header.Get("Loom-Findings") != "2" || !strings.Contains(a.header.Get("Link"), "</v2/check?kind=clustertemplates&name=new>") {
		t.Errorf("headers %v", a.header)
	}
	if w.rows() != before {
		t.Error("resolving stored something")
	}
	w.call(w.user, post, "/v2/resolve", `{"name":"x","extends":{"name":"none"}}`).fails(404, "extends.name", "none")
	w.call(w.user, post, "/v2/resolve", `{"name":"x","includes":[{"name":"locked"},{"name":"none"}]}`).fails(404, "includes[1].name", "none")
	w.call(w.user, post, "/v2/resolve", `{"name":"x","extends":{"name":"a"}}`).fails(400, "extends.name", "x → a → b → a")
	w.call(w.user, post, "/v2/resolve", `{"name":"x","includes":[{"name":"locked"}],"defaults":{"config":{"audit":1}}}`).fails(400, "defaults.config.audit", "immutable")
	w.call(w.user, post, "/v2/resolve", `{"name":"x","defaults":{"services":["web"]}}`).fails(400, "defaults.provider", "provider")
	w.call(w.user, post, "/v2/resolve", `{"name":"x","defaults":{"provider":"lab"}}`).fails(400, "defaults.services", "services")
	w.call(w.user, post, "/v2/resolve", `{"name":"x","defaults":{"provider":"lab","services":["web"],"dnsSuffix":"a..b"}}`).fails(400, "defaults.dnsSuffix", "")
	w.call(w.foreign, post, "/v2/resolve", `{"name":"x","extends":{"name":"site"}}`).fails(404, "extends.name", "site")
}

func TestExportImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.admin, put, "/v2/providers/sealed", `{"name":"sealed","providertype":"needy","provisioner":{"zone":"b","key":"planted-secret"}}`).want(200)
	w.call(w.admin, put, "/v2/providers/sealed", `{"name":"sealed","providertype":"needy","provisioner":{"zone":"c","key":""}}`).want(200)
	exported := w.call(w.user, get, "/v2/export", "").want(200)
	if strings.Contains(exported.body, "planted") || !strings.Contains(exported.body, "\n  \"clustertemplates\": [\n    {\n      \"administration\"") || !slices.Contains(exported.header.Values("Vary"), "Accept") {
		t.Errorf("export %v\n%s", exported.header, exported.body)
	}
	w.call(w.user, get, "/v2/export", "", "If-None-Match", exported.header.Get("ETag")).want(304)
	archive := w.call(w.user, get, "/v2/export", "", "Accept", "application/gzip, */*").want(200)
	if archive.header.Get("Content-Type") != "application/gzip" {
		t.Errorf("archive %v", archive.header)
	}
	files := unpack(t, archive.body)
	if len(files) != 8 || files["services/web.json"] == "" || strings.Contains(files["providers/sealed.json"], "planted") || strings.Contains(files["providers/sealed.json"], "version") {
		t.Errorf("files %v", files)
	}

	w.call(w.user, post, "/v2/import", "nonsense").want(403) // before the body is looked at
	w.call(w.admin, post, "/v2/import?dryRun=maybe", `{}`).fails(400, "dryRun", "true")
	// Either form of an export changes nothing but versions.
	for _, body := range []string{exported.body, archive.body} {
		dry := w.call(w.admin, post, "/v2/import?dryRun=true&mode=merge", body, "Content-Type", "text/plain").want(200).object()
		if len(dry["same"].([]any)) != 8 || len(dry["changed"].([]any))+len(dry["new"].([]any))+len(dry["removed"].([]any)) != 0 || len(dry["findings"].([]any)) != 1 {
			t.Errorf("dry run %v", dry)
		}
		told := w.call(w.admin, post, "/v2/import?mode=merge", body).want(200)
		if told.header.Get("Loom-Findings") != "1" || told.header.Get("Link") != `</v2/check>; rel="describedby"` {
			t.Errorf("headers %v", told.header)
		}
		if p := w.call(w.admin, get, "/v2/providers/sealed", "").want(200).object(); p["version"] != 2.0 || fmt.Sprint(p["sealed"]) != "[key]" {
			t.Errorf("after a merge %v", p)
		}
	}
	w.call(w.admin, post, "/v2/import", archive.body, "Content-Type", "application/json").want(200)
	if p := w.call(w.admin, get, "/v2/providers/sealed", "").want(200).object(); p["version"] != 1.0 || fmt.Sprint(p["sealed"]) != "[key]" {
		t.Errorf("after a replacement %v", p)
	}
	// In another tenant the secret does not come along.
	w.call(w.foreign, post, "/v2/import", exported.body).want(200)
	if p := w.call(w.foreign, get, "/v2/providers/sealed", "").want(200); strings.Contains(p.body, `"sealed":[`) {
		t.Errorf("in another tenant %s", p.body)
	}

	before := w.call(w.admin, get, "/v2/export", "").body
	bad := w.call(w.admin, post, "/v2/import", `{"services":[{"name":"ok"},{"name":"a b"},7],"hardwaretypes":[{"providermap":[]}],"imagetypes":[{"name":"i","providermap":{"p":3}}]}`)
	bad.fails(400, "services[1].name", "letters")
	bad.fails(400, "services[2]", "object")
	bad.fails(400, "hardwaretypes[0].providermap", "")
	bad.fails(400, "imagetypes[0].providermap.p", "")
	if w.call(w.admin, get, "/v2/export", "").body != before {
		t.Error("a refused import changed something")
	}
	dry := w.call(w.admin, post, "/v2/import?dryRun=TRUE", `{"services":[{"name":"web"},{"name":"a b"}]}`).want(200).object()
	if fmt.Sprint(dry["invalid"]) != "[map[errors:[map[field:services[1].name message:Use letters without accents, digits, “_”, “-” and “.” only. This name has a space.]] kind:services name:a b]]" || len(dry["removed"].([]any)) != 7 || len(dry["changed"].([]any)) != 1 {
		t.Errorf("dry run %v", dry)
	}
	w.call(w.admin, post, "/v2/import", `{"clustertemplates":[{"name":"long","administration":{"leaseduration":{"initial":9,"max":5}}}]}`).want(200) // the lease rule is not checked
	if left := w.call(w.admin, get, "/v2/services", "").want(200); strings.TrimSpace(left.body) != "[]" {
		t.Errorf("an absent kind is left with %s", left.body)
	}
}

func unpack(t *testing.T, body string) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			var content bytes.Buffer
			if _, err := io.Copy(&content, r); err != nil {
				t.Fatal(err)
			}
			files[header.Name] = content.String()
		}
	}
}

// TestImportAndPutAtOnce replaces the catalog while single entries are stored:
// whichever comes last wins whole, and no answer of success is a lie.
func TestImportAndPutAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var document strings.Builder
	document.WriteString(`{"services":[{"name":"contested","label":"imported"}`)
	for i := range 40 {
		fmt.Fprintf(&document, `,{"name":"s%d"}`, i)
	}
	document.WriteString(`]}`)
	for range 5 {
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				w.call(w.admin, put, "/v2/services/contested", `{"name":"contested","label":"put"}`).want(200)
			})
			group.Go(func() {
				w.call(w.admin, put, fmt.Sprintf("/v2/services/extra%d", i), fmt.Sprintf(`{"name":"extra%d"}`, i)).want(200)
			})
		}
		for range 2 {
			group.Go(func() { w.call(w.admin, post, "/v2/import", document.String()).want(200) })
		}
		group.Wait()
		var labels, rows int
		w.must(w.db.QueryRowContext(t.Context(), `SELECT count(*), count(DISTINCT version) FROM catalog_versions WHERE kind = 'services' AND name = 'contested'`).Scan(&rows, &labels))
		if rows == 0 || rows != labels {
			t.Errorf("%d rows of %d versions", rows, labels)
		}
		// The import is version 1 of all it brought; what was put afterwards is on top of it.
		first := w.call(w.admin, get, "/v2/services/contested/1", "").want(200).object()
		if first["label"] != "imported" {
			t.Errorf("the first version is %v", first)
		}
		if all := w.call(w.admin, get, "/v2/services", "").want(200).array(); len(all) < 41 || len(all) > 44 {
			t.Errorf("%d services", len(all))
		}
	}
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, body := "/v2/services/s", `{"name":"s"}`
	w.call(w.admin, put, at, body, "If-Match", "*").fails(409, "", "leave If-Match out")
	w.call(w.admin, put, at, body, "If-Match", `"1"`).fails(409, "", "deleted")
	w.call(w.admin, put, at, body, "If-Match", `"0"`).want(200) // there was none
	w.call(w.admin, put, at, body, "If-Match", `"0"`).fails(409, "", "version 1")
	w.call(w.admin, put, at, body, "If-Match", "*").want(200)
	w.call(w.admin, put, at, body, "If-Match", `W/"2"`).want(200)
	w.call(w.admin, put, at, body, "If-Match", `"2"`).fails(409, "", "version 3")
	for _, bad := range []string{`"x"`, `"-1"`, `"1.0"`, `"99999999999"`, `"1", "2"`} {
		w.call(w.admin, put, at, body, "If-Match", bad).fails(400, "If-Match", "quotes")
	}
	w.call(w.user, put, at, body, "If-Match", "nonsense").want(403)
}

// A cursor of a list belongs to its filter, too.
func TestCursorsOfFilteredLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.call(w.admin, put, "/v2/services/"+name, `{"name":"`+name+`","description":"of three"}`).want(200)
	}
	next := w.call(w.user, get, "/v2/services?q=OF+three&limit=1", "").want(200).link("next")
	if row := w.call(w.user, get, next, "").want(200).array(); len(row) != 1 || row[0]["name"] != "three" {
		t.Errorf("the second page holds %v", row)
	}
	w.call(w.user, get, strings.Replace(next, "q=OF+three", "q=of", 1), "").fails(400, "after", "another filter")
	w.call(w.user, get, next+"&deprecated=false", "").fails(400, "after", "another filter")
}
