package api

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// A slip in an import must not wipe a catalog: what is not known is refused, with
// what was meant.
func TestImportRefusesSlips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.call(w.admin, get, "/v2/export", "").body
	w.call(w.admin, post, "/v2/import?dryrun=true", `{"services":[]}`).fails(400, "dryrun", "did you mean “dryRun”? This path takes mode, dryRun")
	w.call(w.admin, post, "/v2/import?Mode=merge", `{"services":[]}`).fails(400, "Mode", "did you mean “mode”")
	w.call(w.admin, post, "/v2/import?force=1", `{"services":[]}`).fails(400, "force", "mode, dryRun")
	w.call(w.admin, post, "/v2/import", `{"clustertemplate":[]}`).fails(400, "clustertemplate", "did you mean “clustertemplates”")
	w.call(w.admin, post, "/v2/import?mode=merge", `{"clusters":[]}`).fails(400, "clusters", "providers, hardwaretypes, imagetypes, services, clustertemplates and partialtemplates")
	w.call(w.admin, post, "/v2/import", `{}`).fails(400, "", `"partialtemplates": []`)
	if after := w.call(w.admin, get, "/v2/export", "").body; after != before {
		t.Errorf("a refused import left\n%s", after)
	}
	w.call(w.admin, post, "/v2/import?mode=merge", `{}`).want(200)
	if after := w.call(w.admin, get, "/v2/export", "").body; after != before {
		t.Errorf("merging nothing left\n%s", after)
	}
	// Said in full it is taken at its word.
	w.call(w.admin, post, "/v2/import", `{"providers":[],"hardwaretypes":[],"imagetypes":[],"services":[],"clustertemplates":[],"partialtemplates":[]}`).want(200)
	if left := w.call(w.admin, get, "/v2/providers", "").body; strings.TrimSpace(left) != "[]" {
		t.Errorf("left are %s", left)
	}
	// What an empty catalog exports can be imported.
	w.call(w.admin, post, "/v2/import", w.call(w.admin, get, "/v2/export", "").body).want(200)
}

// What the dry run says of an entry is what the real import is refused for.
func TestDryRunSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"services":[{"name":"ok"},{"description":"x"},{"name":"s","links":[{}],"shrink":"no"},7]}`
	done := w.call(w.admin, post, "/v2/import", body).want(400).problem()
	var told []string
	for _, row := range w.call(w.admin, post, "/v2/import?dryRun=true", body).want(200).object()["invalid"].([]any) {
		entry := row.(map[string]any)
		for _, e := range entry["errors"].([]any) {
			told = append(told, e.(map[string]any)["field"].(string)+" "+e.(map[string]any)["message"].(string))
		}
	}
	var refused []string
	for _, e := range done.Errors {
		refused = append(refused, e.Field+" "+e.Message)
	}
	if len(told) != 4 || strings.Join(told, "\n") != strings.Join(refused, "\n") || !strings.HasPrefix(told[0], "services[1].name ") || !strings.HasPrefix(told[1], "services[2].links[0].url ") {
		t.Errorf("the dry run says\n%s\nthe import\n%s", strings.Join(told, "\n"), strings.Join(refused, "\n"))
	}
}

func TestMessagesOfBaseFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.admin, put, "/v2/services/x", `{"name":5}`).fails(400, "name", "“5”, is not the one in the path, “x”")
	w.call(w.admin, put, "/v2/services/5", `{"name":5}`).want(200)
	w.call(w.admin, put, "/v2/services/x", `{"name":{"a":1}}`).fails(400, "name", "must be a text")
	size := w.call(w.admin, put, "/v2/clustertemplates/x", `{"name":"x","constraints":{"size":{"min":1.5,"max":"many"}}}`).want(400).problem()
	if len(size.Errors) != 2 || size.Errors[0].Field != "constraints.size.min" || !strings.Contains(size.Errors[0].Message, "whole number") || size.Errors[1].Field != "constraints.size.max" {
		t.Errorf("size: %+v", size.Errors)
	}
	for _, icon := range []string{"server", "icons/web.png", "/static/web.svg", "https://example.org/i.png", "HTTP://example.org/i.png", "data:image/png;base64,iVBORw0KGgo=", "a b"} {
		w.call(w.admin, put, "/v2/services/x", `{"name":"x","icon":"`+icon+`","label":"`+strings.Repeat("ä", 255)+`"}`).want(200)
	}
	w.call(w.admin, put, "/v2/services/x", `{"name":"x","icon":"data:image/png;base64,AAAA"}`).fails(400, "icon", "a PNG or SVG of at most 32 KiB")
}

// Deleting what others use is allowed, and says how many there are.
func TestDeleteTellsWhatDangles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{"name":"kv","dependencies":{"provides":["store"]}}`, `{"name":"other","dependencies":{"provides":["store"]}}`,
		`{"name":"user","dependencies":{"runtime":{"requires":["store"],"uses":["store"]}}}`, `{"name":"fan","follows":["kv"]}`} {
		w.call(w.admin, post, "/v2/services", body).want(200)
	}
	told := func(path, want string) {
		t.Helper()
		a := w.call(w.admin, del, path, "").want(200)
		link := `</v2/check>; rel="describedby"`
		if want == "0" {
			link = ""
		}
		if a.header.Get("Loom-Findings") != want || a.header.Get("Link") != link || a.body != "" {
			t.Errorf("%s: %v %q", path, a.header, a.body)
		}
	}
	w.call(w.admin, put, "/v2/services/kv", `{"name":"kv","dependencies":{"provides":["store"]}}`).want(200)
	told("/v2/services/kv/1", "0") // the second version is still there
	told("/v2/services/kv", "1")   // fan; the store is still provided
	told("/v2/services/kv", "0")   // gone already
	told("/v2/services/other", "1")
	told("/v2/services/user", "0")
	told("/v2/providers/lab", "3")
	w.call(w.user, del, "/v2/services/fan", "").want(403)
}

// The document says which routes send the header, and speaks properly.
func TestRoutesTellFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	telling := 0
	for _, rt := range w.api.routes() {
		for _, wrong := range []string{" a image", " a automator", " an hardware", " an service"} {
			if strings.Contains(rt.summary, wrong) {
				t.Errorf("%s %s: %s", rt.method, rt.path, rt.summary)
			}
		}
		response := rt.operation()["responses"].(fields)
		success, _ := response["200"].(fields)
		headers, _ := success["headers"].(fields)
		if _, described := headers["Loom-Findings"]; described != rt.findings {
			t.Errorf("%s %s describes %v", rt.method, rt.path, headers)
		}
		if rt.findings {
			telling++
			if headers["Link"] == nil {
				t.Errorf("%s %s describes %v", rt.method, rt.path, headers)
			}
		}
	}
	if want := 2 + 4*len(loom.TenantKinds) + 3*2; telling != want {
		t.Errorf("%d routes tell findings, want %d", telling, want)
	}
}
