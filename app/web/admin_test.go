package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// adminPages are the pages of the area that a fresh tenant can open.
func adminPages() []string {
	pages := []string{"/admin", "/admin/resources", "/admin/users", "/admin/users/user", "/admin/hooks", "/admin/hooks/new",
		"/admin/audit", "/admin/queue", "/admin/settings", "/admin/providers/local/test"}
	for _, kind := range loom.TenantKinds {
		pages = append(pages, route.AdminKind(kind), route.AdminNew(kind))
	}
	for _, entry := range []string{"/admin/providers/local", "/admin/hardware-types/local-small", "/admin/image-types/debian12", "/admin/services/nginx", "/admin/templates/web-cluster"} {
		for _, tab := range []string{"", "/edit", "/json", "/uses", "/versions", "/versions/1", "/delete"} {
			pages = append(pages, entry+tab)
		}
	}
	return pages
}

func TestAdminPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	for _, page := range adminPages() {
		a := admin.get(page).shows(t, 200, "<html", "<h1")
		if t.Failed() {
			t.Fatalf("%s: %s", page, a.body)
		}
		a.hides(t, "style=", "onclick", "<script>")
		admin.get(page, "HX-Request", "true").shows(t, 200, "<main").hides(t, "<html")
		user.get(page).shows(t, 403, "administrator")
		r.visitor().get(page).goes(t, route.Login(page))
	}
	user.post("/admin/services", "body", `{"name":"x"}`).shows(t, 403)
	admin.get("/admin/unknown").shows(t, 404)
	admin.get("/admin/services/none").shows(t, 404, "There is no service")
	admin.get("/admin/services/nginx/versions/7").shows(t, 404)
	admin.get("/admin/services/nginx/versions/x").shows(t, 404)
}

func TestAdminList(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/services").shows(t, 200, "haproxy", "nginx", `aria-sort="ascending"`, "6 services")
	v.get("/admin/services?q=redis").shows(t, 200, "redis-primary").hides(t, "haproxy")
	v.get("/admin/services?q=none+such").shows(t, 200, "No matches.", "Clear filters")
	v.get("/admin/services?sort=-updateTime").shows(t, 200, `aria-sort="descending"`)
	v.get("/admin/services?sort=colour").shows(t, 422)
	v.get("/admin/services?show=deprecated").shows(t, 200, "No matches.")
	v.get("/admin/partials").shows(t, 200, "No partial templates yet.")
	v.get("/admin/services?as=json&q=nginx").shows(t, 200, `[{"name":`)
	for i := range 30 {
		v.post("/admin/hardware-types", "body", `{"name":"size-`+string(rune('a'+i%26))+strings.Repeat("x", i/26)+`"}`)
	}
	first := v.get("/admin/hardware-types").shows(t, 200, `rel="next"`).hides(t, `rel="prev"`)
	next := cut(first.body, `href="`, `" rel="next"`)
	v.get(strings.ReplaceAll(next, "&amp;", "&")).shows(t, 200, `rel="prev"`).hides(t, `rel="next"`)
}

// cut gives the text between the last start before end, and end.
func cut(text, start, end string) string {
	before, _, found := strings.Cut(text, end)
	if !found {
		return ""
	}
	return before[strings.LastIndex(before, start)+len(start):]
}

func TestEditor(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/services/nginx/edit?view=json").shows(t, 200, `name="expected" value="1"`, "&#34;name&#34;: &#34;nginx&#34;", "Fields of the type shell").hides(t, "&#34;version&#34;")
	v.get("/admin/services/new?from=nginx").shows(t, 200, "nginx-copy")
	v.get("/admin/services/new?from=none").shows(t, 404)

	v.post("/admin/services", "body", "{\n  \"name\": oops\n}").shows(t, 422, "line 2, column 11", `data-line="2"`, `data-column="11"`, "oops")
	v.post("/admin/services", "body", "").shows(t, 422, "The body is empty")
	v.post("/admin/services", "body", strings.Repeat(" ", 257<<10)).shows(t, 422, "larger than 256 KiB")
	v.post("/admin/templates", "body", "{\n  \"name\": \"a b\",\n  \"constraints\": {\"size\": {\"min\": 5, \"max\": 2}}\n}").
		shows(t, 422, "The template was not saved.", "constraints.size.max", "The maximum (2) is below the minimum (5).", `data-line="3"`, "Use letters without accents")
	v.post("/admin/services", "body", `{"name":"nginx"}`).shows(t, 409, "There is a service “nginx” already")

	v.post("/admin/services", "body", `{"name":"fresh","dependencies":{"runtime":{"requires":["ghost"]}}}`).goes(t, "/admin/services/fresh")
	v.get("/admin/services/fresh").shows(t, 200, "Saved the service fresh as version 1.", "ghost")
	v.get("/admin").shows(t, 200, "Needs attention", "Service ghost does not exist")

	v.post("/admin/services/fresh", "expected", "1", "body", `{"name":"other"}`).shows(t, 422, "The name cannot be changed")
	v.post("/admin/services/fresh", "body", `{"name":"fresh"}`).shows(t, 422, "which version it started from")
	v.post("/admin/services/fresh", "expected", "1", "body", `{"name":"fresh","description":"two"}`).goes(t, "/admin/services/fresh")
	v.get("/admin/services/fresh/versions").shows(t, 200, "Version 1", "Version 2", "Restore as new")
	v.get("/admin/services/fresh/versions/2").shows(t, 200, "Changed since the version before", "ghost")
	v.get("/admin/services/fresh/edit?version=1").shows(t, 200, "definition of version 1", `name="expected" value="2"`, "ghost")
}

func TestConflict(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/services/nginx", "expected", "1", "body", `{"name":"nginx","description":"theirs"}`).goes(t, "/admin/services/nginx")
	page := v.post("/admin/services/nginx", "expected", "1", "body", `{"name":"nginx","description":"mine"}`)
	page.shows(t, 409, "is at version 2", "Keep mine", "Take theirs", "Edit merged", "&#34;theirs&#34;", "&#34;mine&#34;", `name="expected" value="2"`, "where you started", "<del>")
	v.post("/admin/services/nginx", "expected", "2", "body", `{"name":"nginx","description":"mine"}`).goes(t, "/admin/services/nginx")
	v.get("/admin/services/nginx").shows(t, 200, "mine")

	check(t, r.catalog.Delete(r.ctx, v.actor("demo"), loom.KindService, "nginx", 0))
	v.post("/admin/services/nginx", "expected", "3", "body", `{"name":"nginx"}`).shows(t, 409, "was deleted", `name="expected" value="0"`)
	v.post("/admin/services/nginx", "expected", "0", "body", `{"name":"nginx"}`).goes(t, "/admin/services/nginx")
}

func TestDelete(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	// What a template needs stays; it can be deprecated.
	v.get("/admin/services/nginx/delete").shows(t, 200, "<html", "web-cluster", "is required by these entries and can&#39;t be deleted", "Deprecate nginx").hides(t, "danger-filled")
	v.get("/admin/services/nginx/delete", "HX-Request", "true", "HX-Target", "dialog").shows(t, 200, "dialog-title", "web-cluster").hides(t, "<html")
	v.post("/admin/services/nginx/delete").shows(t, 409, "is not deleted: web-cluster names it")
	v.get("/admin/providers/local/delete").shows(t, 200, "can&#39;t be deleted", ">local-small</a>", "(hardware type)")
	v.post("/admin/services/nginx/deprecate", "deprecated", "true").goes(t, "/admin/services/nginx")
	v.post("/admin/templates/web-cluster/delete").goes(t, "/admin/templates")
	v.get("/admin/services/nginx/delete").shows(t, 200, "Delete service nginx")
	v.post("/admin/services/nginx/delete").goes(t, "/admin/services")
	v.get("/admin/services").shows(t, 200, "Deleted the service nginx.")
	v.get("/admin/services/nginx").shows(t, 404)
	v.post("/admin/services/nginx/delete").shows(t, 404)
}

func TestForeignTenant(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, super := r.signedIn("demo", "admin"), r.signedIn("superadmin", "admin")
	admin.post("/admin/services", "body", `{"name":"ours","description":"planted-foreign"}`).goes(t, "/admin/services/ours")
	for _, page := range []string{"/admin/services/ours", "/admin/services/ours/edit", "/admin/services/ours/versions", "/admin/services/ours/delete"} {
		super.get(page).shows(t, 404).hides(t, "planted-foreign")
	}
	super.post("/admin/services/ours/edit", "body", `{"name":"ours"}`).shows(t, 404)
	super.get("/admin/services").shows(t, 200, "nginx").hides(t, "planted-foreign")
	super.get("/admin/users").shows(t, 200).hides(t, `>user<`)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/validate/services", "body", "{\n\"name\" 3}").shows(t, 200, "1 error:", `data-line="2"`, `data-column="8"`).hides(t, "<html")
	v.post("/validate/services", "body", `{"name":"a b"}`).shows(t, 200, "Use letters without accents")
	v.post("/validate/services", "body", `{"name":"a","colour":"red","links":[{"url":"x","size":2}],"dependencies":{"install":{"requires":["ghost"]}}}`).
		shows(t, 200, "Ready to save", "will be dropped", "colour", "links[0].size", "There is no service “ghost”")
	v.post("/validate/services", "body", `{"name":"a","label":"","provisioner":{"actions":{"start":{"type":"shell","fields":{"script":"x","data":"y"}}}}}`).
		shows(t, 200, "Ready to save").hides(t, "will be dropped")
	r.signedIn("demo", "user").post("/validate/services", "body", "{}").shows(t, 403)
}

// A planted secret is in no answer: not in the pages of the provider, not where a
// draft comes back, not in the conflict.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	const marker = "planted-secret-marker"
	body := func(extra string) string {
		return `{"name":"far","providertype":"cloudy","provisioner":{"region":"north","access":"` + marker + `","my_password":"` + marker + `"}` + extra + `}`
	}
	v.post("/admin/providers", "body", body("")+"x").shows(t, 422, "Secrets are not sent back", "access and my_password").hides(t, marker)
	v.post("/admin/providers", "body", `{"name":"far","provisioner":{"access": "`+marker).shows(t, 422).hides(t, marker)
	v.post("/validate/providers", "body", body("")).shows(t, 200).hides(t, marker)
	v.post("/admin/providers", "body", body("")).goes(t, "/admin/providers/far").hides(t, marker)
	v.post("/admin/providers/far", "expected", "1", "body", `{"name":"far","providertype":"cloudy","provisioner":{"region":"south"}}`).goes(t, "/admin/providers/far")
	v.post("/admin/providers/far", "expected", "1", "body", body("")).shows(t, 409, "Secrets are not sent back").hides(t, marker)
	v.get("/admin/providers/far").shows(t, 200, "by admin; never shown", "south")
	for _, page := range []string{"/admin", "/admin/providers", "/admin/providers?as=json", "/admin/providers/far", "/admin/providers/far?as=json", "/admin/providers/far/json",
		"/admin/providers/far/edit", "/admin/providers/far/versions/1", "/admin/providers/far/versions/2", "/admin/providers/far/uses", "/admin/providers/new?from=far"} {
		v.get(page).shows(t, 200).hides(t, marker)
	}
	v.get("/admin").hides(t, "It is incomplete")
	v.post("/admin/providers", "body", `{"name":"bare","providertype":"cloudy"}`).goes(t, "/admin/providers/bare")
	v.get("/admin").shows(t, 200, "It is incomplete: set “Access key” and “Region”")
}

// upload sends a file as the form does.
func (v *visitor) upload(name, file, content string, stage bool) answer {
	v.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	check(v.t, form.WriteField("plugin", "automatortypes/shell/scripts"))
	check(v.t, form.WriteField("name", name))
	if file != "" {
		part, err := form.CreateFormFile("file", file)
		check(v.t, err)
		_, err = part.Write([]byte(content))
		check(v.t, err)
	}
	check(v.t, form.Close())
	req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+"/admin/resources/save?do="+map[bool]string{true: "stage", false: "save"}[stage], &b)
	check(v.t, err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	return v.do(req)
}

// A script can be written in the form: with a name, ends of lines as scripts have
// them, and the text of a version as the start of the next one.
func TestScriptsAreWrittenInTheForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	send := func(do, name, text string, more ...[2]string) answer {
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		for _, field := range append(more, [][2]string{{"plugin", "automatortypes/shell/scripts"}, {"name", name}, {"text", text}}...) {
			check(t, form.WriteField(field[0], field[1]))
		}
		check(t, form.Close())
		req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+"/admin/resources/save?do="+do, &b)
		check(t, err)
		req.Header.Set("Content-Type", form.FormDataContentType())
		return v.do(req)
	}
	const at = "/admin/resources/show?kind=automatortypes&name=hello.sh&plugin=shell&type=scripts"
	send("save", "", "#!/bin/sh\r\n").shows(t, 422, "Enter a name", "#!/bin/sh")
	send("save", "big.sh", strings.Repeat("x", 256<<10+1)).shows(t, 422, "holds more than 256.0 KiB")
	send("save", "hello.sh", "#!/bin/sh\r\necho planted").goes(t, at+"&version=1")
	v.get(at).shows(t, 200, "#!/bin/sh\necho planted\n</textarea>", "23 bytes", "Saved hello.sh v1.", "Not in use", "Shell: no errors", "Script reference")
	v.get(at+"&version=7").shows(t, 404)
	v.get(strings.Replace(at, "hello.sh", "", 1)).shows(t, 404)
	of := func(version, seen string) [][2]string { return [][2]string{{"version", version}, {"seen", seen}} }
	// The same text gets no new version.
	send("release", "hello.sh", "#!/bin/sh\r\necho planted\r\n", of("1", "1")...).goes(t, at+"&version=1")
	v.get(at).shows(t, 200, "Released hello.sh v1.", "v1 in use")
	send("release", "hello.sh", "if true; then", of("1", "1")...).goes(t, at+"&version=2")
	v.get(at).shows(t, 200, "Released hello.sh v2.", "v2 in use", "must be followed by a statement list", "Differences from v1")
	send("stage", "hello.sh", "echo three", of("2", "2")...).goes(t, at+"&version=3")
	v.get(at).shows(t, 200, "v2 withdrawn", "v3 staged", "if true; then")
	// What somebody else saved in between is not passed over in silence.
	send("save", "hello.sh", "echo mine", of("2", "2")...).shows(t, 409, "admin saved v3 in the meantime.", "echo mine", `name="seen" value="3"`)
	send("save", "hello.sh", "echo mine", of("2", "3")...).goes(t, at+"&version=4")
	send("save", "hello.sh", " ", of("2", "4")...).shows(t, 422, "Write a text, or upload a file.")
	v.post("/admin/resources/check", "name", "a.sh", "text", "if\r\n(").shows(t, 200, "Shell, line ", "Go to line").hides(t, "<html")
	v.post("/admin/resources/check", "name", "a.py", "text", "if").hides(t, "Shell")
}

func TestFiles(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/resources").shows(t, 200, "No files yet")
	v.get("/admin/resources/new").shows(t, 200, "shell (automator type): scripts")
	v.get("/admin/resources/sync").shows(t, 200, "Nothing to release")
	v.upload("", "", "", true).shows(t, 422, "Write a text, or upload a file.")
	v.upload("bad name", "x.sh", "echo", true).shows(t, 422, "Use letters without accents")
	v.post("/admin/resources/save", "plugin", "x").shows(t, 422, "multipart/form-data")

	const query = "?kind=automatortypes&name=hello.sh&plugin=shell&type=scripts&version=1"
	v.upload("", "hello.sh", "#!/bin/sh\necho hello\n", false).goes(t, "/admin/resources/show"+query)
	v.get("/admin/resources/show"+query).shows(t, 200, "Saved hello.sh v1.", "Not in use", "21 bytes")
	v.post("/admin/resources/stage"+query).goes(t, "/admin/resources/show"+query)
	v.get("/admin/resources").shows(t, 200, "1 file staged.", "Preview release")
	v.post("/admin/resources/sync").goes(t, "/admin/resources/sync")
	v.get("/admin/resources").shows(t, 200, "1 file released.", ">v1<")
	tenant, err := r.accounts.Tenant(r.ctx, loom.Actor{Tenant: loom.SuperTenant, Role: loom.RoleSuperadmin}, "demo")
	check(t, err)
	live := func(want string) {
		t.Helper()
		_, live, err := r.catalog.Live(r.ctx, tenant.ID)
		check(t, err)
		var got []string
		for _, f := range live {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("live are %v, want %s", got, want)
		}
	}
	live("hello.sh")

	v.post("/admin/resources/delete"+query).shows(t, 409, "Withdraw it first")
	v.get("/admin/resources/withdraw"+query).shows(t, 200, "Withdraw hello.sh v1", "No service, provider or file.")
	v.get("/admin/resources/withdraw"+strings.Replace(query, "version=1", "version=9", 1)).shows(t, 404)
	v.post("/admin/resources/withdraw"+query).goes(t, "/admin/resources/show"+query)
	live("")
	v.post("/admin/resources/release"+query).goes(t, "/admin/resources/show"+query)
	live("hello.sh")
	v.post("/admin/resources/withdraw"+query).goes(t, "/admin/resources/show"+query)
	v.get("/admin/resources/delete"+query, "HX-Request", "true", "HX-Target", "dialog").shows(t, 200, "Delete hello.sh v1").hides(t, "<html")
	v.post("/admin/resources/delete"+query).goes(t, "/admin/resources")
	v.get("/admin/resources").shows(t, 200, "Deleted hello.sh v1.")
	r.signedIn("demo", "user").upload("", "x.sh", "echo", false).shows(t, 403)
}

func TestUsers(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/users", "id", "", "role", "user").shows(t, 422, "The user was not created.", "A user id is")
	v.post("/admin/users", "id", "user", "role", "user").shows(t, 409)
	v.post("/admin/users", "id", "eve", "role", "superadmin").shows(t, 422, "The role is")
	made := v.post("/admin/users", "id", "eve", "role", "user", "displayName", "Eve").shows(t, 200, "User eve was created", "Loom shows it only once", "Sign in at", r.server.URL+"/login?tenant=demo<", "Copy all of the sign-in")
	password := cut(made.body, `data-copy="`, `" aria-label="Copy password"`)
	if password == "" {
		t.Fatal("the password is not shown")
	}
	v.get("/admin/users").shows(t, 200, "eve", "Eve").hides(t, password)
	r.visitor().post("/login", "user", "eve", "password", password).goes(t, "/")
}

// TestVersionsOfAnEntry: a version is withdrawn, released and deprecated from its list, which says
// how many clusters are on it.
func TestVersionsOfAnEntry(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/services", "body", `{"name":"fresh"}`).goes(t, "/admin/services/fresh")
	v.post("/admin/services/fresh", "expected", "1", "body", `{"name":"fresh","description":"two"}`).goes(t, "/admin/services/fresh")
	const versions = "/admin/services/fresh/versions"
	v.get(versions).shows(t, 200, ">Released<", "Withdraw version 2", "Withdraw version 1").hides(t, ">Unreleased<")
	v.post(versions+"/2/withdraw").goes(t, versions)
	v.get(versions).shows(t, 200, "Withdrew version 2 of fresh.", ">Unreleased<", "Release version 2")
	v.get("/admin/services").shows(t, 200, "unreleased")
	v.post("/admin/services/fresh", "expected", "2", "body", `{"name":"fresh","description":"three"}`, "release", "false").goes(t, "/admin/services/fresh")
	v.get("/admin/services/fresh").shows(t, 200, "Saved the service fresh as version 3. It is not released.")
	v.post(versions+"/2/release").goes(t, versions)
	v.get(versions).shows(t, 200, "Released version 2 of fresh.")
	v.get(versions+"/1").shows(t, 200, "Deprecate this version", versions+"/1/deprecation")
	v.post(versions+"/1/deprecation", "message", "Loses data.").goes(t, versions)
	v.get(versions).shows(t, 200, "Deprecated version 1 of fresh.", "Loses data.", ">Deprecated<")
	v.post(versions+"/1/deprecation", "message", strings.Repeat("x", 501)).shows(t, 422, "501 characters")
	v.post(versions+"/9/release").shows(t, 404)
	r.signedIn("demo", "user").post(versions+"/1/withdraw").shows(t, 403)
}
