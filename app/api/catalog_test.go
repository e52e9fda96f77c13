package api

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestCatalogKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bodies := map[loom.EntityKind]string{
		loom.KindProvider:        `{"name":"new","providertype":"fake","provisioner":{"n":5,"empty":""},"version":77,"unknown":true}`,
		loom.KindHardwareType:    `{"name":"new","providermap":{"lab":{"flavor":"x","cost":0.05}}}`,
		loom.KindImageType:       `{"name":"new","providermap":{"lab":{"image":"x"}}}`,
		loom.KindService:         `{"name":"new","provisioner":{"actions":{"start":{"type":"shell","fields":{"timeout":5}}}}}`,
		loom.KindTemplate:        `{"name":"new","defaults":{"services":[{"name":"web","config":{"a":1}}]},"administration":{"leaseduration":{"initial":"1h"}}}`,
		loom.KindPartialTemplate: `{"name":"new","immutable":true}`,
	}
	for _, kind := range loom.TenantKinds {
		at := "/v2/" + string(kind)
		body := bodies[kind]
		w.call(w.user, post, at, body).fails(403, "", "administrator")
		w.call(w.user, post, at, "nonsense").fails(403, "", "administrator") // rights come first
		w.call(w.admin, post, at, "").fails(400, "", "empty")
		w.call(w.admin, post, at, "null").fails(400, "", "object is needed")
		w.call(w.admin, post, at, "{\n\"name\": x}").fails(400, "", "line 2, column 9")
		w.call(w.admin, post, at, `{}`).fails(400, "name", "required")
		w.call(w.admin, post, at, `{"name":{}}`).fails(400, "name", "must be a text")
		w.call(w.admin, post, at, body).want(200)
		w.call(w.admin, post, at, body).fails(409, "", "already")
		one := w.call(w.user, get, at+"/new", "").want(200)
		if one.header.Get("ETag") != `"1"` || one.object()["version"] != 1.0 || strings.Contains(one.body, "unknown") {
			t.Errorf("%s: %v %s", kind, one.header, one.body)
		}
		w.call(w.user, get, at+"/new", "", "If-None-Match", `"0", "1"`).want(304)
		w.call(w.admin, put, at+"/new", body, "If-Match", `"1"`).want(200)
		w.call(w.admin, put, at+"/new", body, "If-Match", `"1"`).fails(409, "", "version 2")
		w.call(w.admin, put, at+"/new", body, "If-Match", `soon`).fails(400, "If-Match", "quotes")
		w.call(w.admin, put, at+"/other", body).fails(400, "name", "“other”")
		w.call(w.admin, put, at+"/new", body).want(200)
		if old := w.call(w.user, get, at+"/new/2", "").want(200); old.object()["version"] != 2.0 || old.header.Get("ETag") != `"2"` {
			t.Errorf("%s: %s", kind, old.body)
		}
		if v := w.call(w.user, get, at+"/new/versions", "").want(200).array(); len(v) != 3 || v[0]["version"] != 3.0 || v[0]["author"] != "admin" {
			t.Errorf("%s: versions %v", kind, v)
		}
		w.call(w.user, get, at+"/new/9", "").want(404)
		w.call(w.user, get, at+"/new/zero", "").fails(400, "version", "whole number")
		w.call(w.user, get, at+"/new/0", "").fails(400, "version", "whole number")
		w.call(w.foreign, get, at+"/new", "").want(404)
		w.call(w.foreign, get, at+"/new/versions", "").want(404)
		if all := w.call(w.user, get, at+"?q=new", "").want(200).array(); len(all) != 1 {
			t.Errorf("%s: %v", kind, all)
		}
		w.call(w.user, get, at+"?deprecated=perhaps", "").fails(400, "deprecated", "true")
		w.call(w.admin, del, at+"/new/3", "").want(200)
		w.call(w.admin, del, at+"/new/x", "").fails(400, "version", "whole number")
		if one := w.call(w.user, get, at+"/new", "").want(200).object(); one["version"] != 2.0 {
			t.Errorf("%s: %v is newest", kind, one["version"])
		}
		w.call(w.user, del, at+"/new", "").want(403)
		w.call(w.admin, del, at+"/new", "").want(200)
		w.call(w.admin, del, at+"/new", "").want(200) // also when nothing is there
		w.call(w.admin, del, at+"/new/1", "").want(200)
		w.call(w.user, get, at+"/new", "").want(404)
	}
	w.call(w.admin, put, "/v2/clustertemplates/t", `{"name":"t","administration":{"leaseduration":{"initial":"2d","max":"1d"}}}`).
		fails(400, "administration.leaseduration.initial", "longer")
	w.call(w.admin, put, "/v2/providers/p", `{"name":"p","providertype":"needy","provisioner":{"key":"hush-hush","n":5,"api_password":"x"}}`).want(200)
	if p := w.call(w.admin, get, "/v2/providers/p", "").want(200); strings.Contains(p.body, "hush") || !strings.Contains(p.body, `"n":5`) {
		t.Errorf("provider %s", p.body)
	}
}

// TestTokensDoNotMoveCredentials: a token that may write the catalog cannot move the
// address that a stored password goes to, in any way that REST has.
func TestTokensDoNotMoveCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.super, put, "/v2/plugins/providertypes/bound", `{"name":"bound","parameters":{"admin":{"fields":{"url":{"label":"Address","type":"text"},
		"pass":{"label":"Password","type":"password","boundTo":["url"]}},"required":[]},"user":{"fields":{},"required":[]}},"resourceTypes":{}}`).want(200)
	if got := w.call(w.user, get, "/v2/plugins/providertypes/bound", "").want(200); !strings.Contains(got.body, `"boundTo":["url"]`) {
		t.Errorf("the type is %s", got.body)
	}
	const moved = `{"name":"p","providertype":"bound","provisioner":{"url":"https://mine.example"%s}}`
	w.call(w.admin, put, "/v2/providers/p", `{"name":"p","providertype":"bound","provisioner":{"url":"https://a.example","pass":"planted"}}`).want(200)
	token := w.call(w.admin, post, "/v2/tokens", `{"name":"ci","scopes":["catalog:write","read"]}`).want(200).object()["secret"].(string)
	w.call(token, put, "/v2/providers/p", fmt.Sprintf(moved, "")).fails(400, "provisioner.pass", "Give “Password” again")
	w.call(token, put, "/v2/providers/p", fmt.Sprintf(moved, `,"pass":""`)).fails(400, "provisioner.pass", "Give “Password” again")
	w.call(token, post, "/v2/import", `{"providers":[`+fmt.Sprintf(moved, "")+`]}`).fails(400, "", "“p”")
	if got := w.call(w.user, get, "/v2/providers/p", "").want(200); !strings.Contains(got.body, "https://a.example") {
		t.Errorf("the provider is %s", got.body)
	}
	w.call(token, put, "/v2/providers/p", fmt.Sprintf(moved, `,"pass":"known"`)).want(200)
	w.call(token, del, "/v2/providers/p/2", "").want(409)
}

func TestPluginTypesAndResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if all := w.call(w.user, get, "/v2/plugins/automatortypes", "").want(200).array(); len(all) != 1 || all[0]["name"] != "shell" {
		t.Errorf("types %v", all)
	}
	shell := w.call(w.user, get, "/v2/plugins/automatortypes/shell", "").want(200).object()
	if shell["resourceTypes"].(map[string]any)["scripts"].(map[string]any)["format"] != "file" {
		t.Errorf("shell %v", shell)
	}
	w.call(w.user, get, "/v2/plugins/automatortypes/shell/1", "").want(200)
	w.call(w.user, get, "/v2/plugins/automatortypes/nothing", "").want(404)
	// The mock loader writes types as the superadmin, with a key that we drop.
	w.call(w.super, put, "/v2/plugins/providertypes/extra", `{"name":"extra","classname":"X","parameters":{"admin":{"fields":{"u":{"label":"U","type":"text"}},"required":[["u"]]}}}`).want(200)
	if extra := w.call(w.user, get, "/v2/plugins/providertypes/extra", "").want(200); strings.Contains(extra.body, "classname") {
		t.Errorf("extra %s", extra.body)
	}
	w.call(w.super, put, "/v2/plugins/providertypes/other", `{"name":"extra"}`).fails(400, "name", "other")
	w.call(w.super, put, "/v2/plugins/providertypes/extra", `{"name":"extra","parameters":{"root":{}}}`).want(400)
	w.call(w.super, del, "/v2/plugins/providertypes/extra/x", "").fails(400, "version", "whole number")
	w.call(w.super, del, "/v2/plugins/providertypes/extra", "").want(200)

	at := "/v2/plugins/automatortypes/shell/scripts"
	w.call(w.user, post, at+"/web.sh", "#!/bin/sh").want(403)
	w.call(w.user, get, at, "").want(403)
	w.call(w.admin, post, "/v2/plugins/automatortypes/shell/cookbooks/x", "x").fails(404, "", "cookbooks")
	w.call(w.admin, post, "/v2/plugins/automatortypes/nothing/scripts/x", "x").want(404)
	w.call(w.admin, post, at+"/a%20b", "x").fails(400, "name", "letters")
	for n := 1; n <= 2; n++ {
		up := w.call(w.admin, post, at+"/web.sh", fmt.Sprintf("#!/bin/sh\necho %d\n", n), "Content-Type", "application/octet-stream").want(200).object()
		if up["name"] != "web.sh" || up["version"] != float64(n) || up["status"] != "inactive" || len(up) != 3 {
			t.Errorf("upload %v", up)
		}
	}
	list := func(status string) string { return w.call(w.admin, get, at+"/?status="+status, "").want(200).body }
	states := func(want string) {
		t.Helper()
		var got []string
		for _, r := range w.call(w.admin, get, at+"/web.sh", "").want(200).array() {
			got = append(got, r["status"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("states %v, want %s", got, want)
		}
	}
	states("inactive inactive")
	version := func(v, verb string) string { return at + "/web.sh/versions/" + v + "/" + verb }
	w.call(w.admin, post, version("1", "stage"), "").want(200)
	states("staged inactive")
	w.call(w.admin, post, "/v2/plugins/sync", "").want(200)
	states("active inactive")
	w.call(w.admin, post, version("2", "stage"), "").want(200)
	states("recalled staged")
	w.call(w.admin, post, version("2", "recall"), "").want(200)
	w.call(w.admin, post, version("1", "stage"), "").want(200)
	states("active inactive")
	w.call(w.admin, post, version("2", "release"), "").want(200)
	states("inactive active")
	if up := w.call(w.admin, post, at+"/web.sh/versions?release=true", "echo 3", "Content-Type", "application/octet-stream").want(200).object(); up["status"] != "active" {
		t.Errorf("released %v", up)
	}
	states("inactive inactive active")
	w.call(w.admin, post, version("1", "release"), "").want(200)
	w.call(w.admin, del, at+"/web.sh/versions/3", "").want(200)
	states("active inactive")
	if got := list("ACTIVE"); strings.TrimSpace(got) != `{"web.sh":[{"name":"web.sh","version":1,"status":"active"}]}` {
		t.Errorf("active %s", got)
	}
	if got := list("staged"); strings.TrimSpace(got) != `{}` {
		t.Errorf("staged %s", got)
	}
	w.call(w.admin, get, at+"?status=new", "").fails(400, "status", "recalled")
	if none := w.call(w.admin, get, at+"/unknown", "").want(200); strings.TrimSpace(none.body) != "[]" {
		t.Errorf("unknown name: %s", none.body)
	}
	w.call(w.admin, post, version("9", "stage"), "").want(404)
	w.call(w.admin, post, version("x", "stage"), "").fails(400, "v", "whole number")
	w.call(w.admin, del, at+"/web.sh/versions/1", "").fails(409, "", "active")
	w.call(w.admin, del, at+"/web.sh", "").fails(409, "", "active")
	w.call(w.admin, del, at+"/web.sh/versions/2", "").want(200)
	w.call(w.admin, del, at+"/web.sh/versions/2", "").want(404)
	w.call(w.admin, del, at+"/unknown", "").want(200)
	w.call(w.foreign, get, at+"/web.sh", "").want(200)
	if other := w.call(w.foreign, get, at, "").want(200); strings.TrimSpace(other.body) != "{}" {
		t.Errorf("another tenant sees %s", other.body)
	}
	w.call(w.user, post, "/v2/plugins/sync", "").want(403)
}

func TestUploadLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.MaxUpload = 6 << 20 })
	at := "/v2/plugins/automatortypes/shell/scripts/big"
	w.call(w.admin, post, at, strings.Repeat("x", 6<<20)).want(200) // more than a body of JSON may have
	w.call(w.admin, post, at, strings.Repeat("x", 6<<20+1)).fails(400, "", "6.0 MiB")
}

func TestTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.admin, get, "/v2/tenants", "").want(403)
	w.call(w.admin, get, "/v2/tenants/acme", "").want(403)
	w.call(w.admin, post, "/v2/tenants", "nonsense").want(403)
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"new","description":"d","workers":"0","maxClusters":5},"bootstrap":true}`).want(200)
	one := w.call(w.super, get, "/v2/tenants/new", "").want(200)
	if strings.TrimSpace(one.body) != `{"name":"new","description":"d","workers":0,"maxClusters":5,"maxNodes":2147483647,"privateNetworks":false,"instanceRoles":false,"providerTypesOff":["static"]}` {
		t.Errorf("tenant %s", one.body)
	}
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"new"}}`).want(409)
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"many","workers":9}}`).want(409)
	w.call(w.super, post, "/v2/tenants", `{"name":"new"}`).fails(400, "tenant", "member")
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"a b"}}`).fails(400, "tenant.name", "letters")
	w.call(w.super, post, "/v2/tenants", ``).want(400)
	w.call(w.super, put, "/v2/tenants/new", `{"tenant":{"name":"new","maxNodes":7}}`).want(200)
	w.call(w.super, put, "/v2/tenants/made", `{"tenant":{"name":"made"}}`).want(200)
	w.call(w.super, put, "/v2/tenants/made", `{"tenant":{"name":"other"}}`).fails(400, "tenant.name", "made")
	var names []string
	for _, row := range w.call(w.super, get, "/v2/tenants", "").want(200).array() {
		names = append(names, row["name"].(string))
	}
	if strings.Join(names, " ") != "acme made new other superadmin" {
		t.Errorf("tenants %v", names)
	}
	w.call(w.super, get, "/v2/tenants/nowhere", "").fails(404, "", "nowhere")
}
