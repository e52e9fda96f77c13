package web_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"html"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"loom/app/archive/archivetest"
	"loom/app/catalog"
	"loom/app/loom"
)

// The list of resources has a row for each name, can be narrowed by plugin, type and
// state, sorted, and turned page by page.
func TestResourceList(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	actor := v.actor("demo")
	script := func(name string) loom.ResourceRef {
		return loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: name}
	}
	store := func(name, content string, stage bool) {
		t.Helper()
		got, err := r.catalog.Upload(r.ctx, actor, script(name), strings.NewReader(content), 0)
		check(t, err)
		if stage {
			check(t, r.catalog.Stage(r.ctx, actor, script(name), got.Version))
		}
	}
	store("web.sh", "echo 1", true)
	store("gone.sh", "echo 1", true)
	store("front.sh", "#!/bin/sh\n. ./web.sh\n", true)
	store("other.sh", "#!/bin/sh\n. ./old-web.sh\n", true)
	check(t, r.catalog.Sync(r.ctx, actor))
	store("web.sh", "echo 2", true)
	check(t, r.catalog.Recall(r.ctx, actor, script("gone.sh"), 1))
	for n := range 30 {
		store(fmt.Sprintf("more-%02d.sh", n), "echo", false)
	}
	const list = "/admin/resources"
	v.get(list).shows(t, 200, "1 file staged, 1 file withdrawn.", "gone.sh", "more-00.sh", "All plugins", "New file").hides(t, ">web.sh<")
	v.get(list+"?q=web").shows(t, 200, ">web.sh<", "shell script", ">v1<", ">v2<", ">front.sh<", "Clear filters").hides(t, "gone.sh")
	v.get(list+"?status=recalled&plugin=shell&type=scripts").shows(t, 200, "gone.sh", "withdrawn").hides(t, ">web.sh<", "more-")
	v.get(list+"?status=inactive&sort=-name").shows(t, 200, "more-29.sh").hides(t, "gone.sh", "more-00.sh")
	v.get(list+"?plugin=chef-solo").shows(t, 200, "No matches.")
	v.get(list+"?status=odd").shows(t, 422)
	next := nextPage(t, v.get(list))
	v.get(next).shows(t, 200, ">web.sh<").hides(t, "gone.sh")

	v.post("/admin/services", "body", `{"name":"site","provisioner":{"actions":{"install":{"type":"shell","fields":{"script":"web.sh"}}}}}`).goes(t, "/admin/services/site")
	const query = "?kind=automatortypes&name=web.sh&plugin=shell&type=scripts"
	users := []string{`href="/admin/services/site"`, "– install</span>", `href="/admin/resources/show?kind=automatortypes&amp;name=front.sh&amp;plugin=shell&amp;type=scripts&amp;version=1"`}
	v.get("/admin/resources/show"+query+"&version=1").shows(t, 200, append(users, "v1 withdrawn", "v2 staged", "Withdraw v1…")...).hides(t, "Withdraw v2…", `href="/admin/resources/delete`)
	v.get("/admin/resources/withdraw"+query+"&version=1").shows(t, 200, append(users, "<p>Used by:</p>", "Tasks that need it will fail.")...).hides(t, "other.sh")
	v.post("/admin/resources/stage"+query+"&version=1").goes(t, "/admin/resources/show"+query+"&version=1")
	v.get("/admin/resources/show"+query+"&version=2").shows(t, 200, "This is v2. v1 is in use.", "Delete v2…")
	v.post("/admin/resources/delete"+query+"&version=2").goes(t, list)
	r.signedIn("superadmin", "admin").get(list).shows(t, 200).hides(t, "more-00.sh")
}

// An archive that provisioners could not use is refused, with what is wrong with it.
func TestArchivesAreChecked(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	check(t, r.catalog.RegisterTypes(r.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{
		"scripts": {Format: "file", Permissions: "755"}, "archives": {Format: "archive"}}}}))
	v.get("/admin/resources/new").shows(t, 200, "shell (automator type): archives, an archive", "At most 1.0 GiB", "one folder at its top")
	send := func(content []byte) answer {
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		for _, field := range [][2]string{{"plugin", "automatortypes/shell/archives"}, {"name", "site"}} {
			check(t, form.WriteField(field[0], field[1]))
		}
		part, err := form.CreateFormFile("file", "site.tar.gz")
		check(t, err)
		_, err = part.Write(content)
		check(t, err)
		check(t, form.Close())
		req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+"/admin/resources/save", &b)
		check(t, err)
		req.Header.Set("Content-Type", form.FormDataContentType())
		return v.do(req)
	}
	send([]byte("echo no archive")).shows(t, 422, "File not saved.", "This is not an archive", "aria-invalid")
	for _, pack := range archivetest.Both {
		send(pack(t, archivetest.Escape("site", "/etc/shadow", 9)...)).shows(t, 422, "File not saved.", "“top/d0/d1/d2/d3/b”, a link to", "aria-invalid")
	}
	send(tarOf(t, "a.txt", "b.txt")).shows(t, 422, "should hold one folder at its top; this one holds “a.txt”, “b.txt” there.", "tar -czf")
	list, err := r.catalog.ListResources(r.ctx, v.actor("demo"), catalog.ResourceListInput{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("refused archives were stored: %v, %v", list.Items, err)
	}
	send(tarOf(t, "site/a.txt", "site/b/c.txt")).goes(t, "/admin/resources/show?kind=automatortypes&name=site&plugin=shell&type=archives&version=5")
	v.get("/admin/resources/show?kind=automatortypes&name=site&plugin=shell&type=archives&version=5").shows(t, 200, "site/a.txt", "site/b/c.txt", "Files of the archive")
}

var nextHref = regexp.MustCompile(`href="([^"]*[?&;]after=[^"]*)"`)

// nextPage is the address of the next page of a list.
func nextPage(t *testing.T, page answer) string {
	t.Helper()
	found := nextHref.FindStringSubmatch(page.body)
	if found == nil {
		t.Fatalf("the page leads to no next one:\n%s", page.body)
	}
	return html.UnescapeString(found[1])
}

// tarOf is a gzipped tar of files of these names.
func tarOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for _, name := range names {
		check(t, files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 2, Mode: 0o644}))
		_, err := files.Write([]byte("x\n"))
		check(t, err)
	}
	check(t, errors.Join(files.Close(), zip.Close()))
	return out.Bytes()
}
