package web_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// file posts a form with a file.
func (v *visitor) file(path, field, name string, body []byte) answer {
	v.t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile(field, name)
	check(v.t, err)
	_, err = part.Write(body)
	check(v.t, err)
	check(v.t, w.Close())
	req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+path, &form)
	check(v.t, err)
	req.Header.Set("Content-Type", w.FormDataContentType())
	return v.do(req)
}

// Plugin resources leave as one archive and come back from it, chosen one by one.
func TestResourceArchive(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, super := r.signedIn("demo", "admin"), r.signedIn("superadmin", "admin")
	upload := func(v *visitor, name, content string) {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		check(t, w.WriteField("plugin", "automatortypes/shell/scripts"))
		check(t, w.WriteField("name", name))
		part, err := w.CreateFormFile("file", name)
		check(t, err)
		_, err = io.WriteString(part, content)
		check(t, err)
		check(t, w.Close())
		req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+"/admin/resources/save?do=stage", &form)
		check(t, err)
		req.Header.Set("Content-Type", w.FormDataContentType())
		if a := v.do(req); a.status != http.StatusSeeOther {
			t.Fatalf("upload: %d %s", a.status, a.body)
		}
	}
	upload(admin, "planted-one.sh", "echo one")
	upload(admin, "planted-two.sh", "echo two")
	admin.get("/admin/transfer").shows(t, 200, "Export files", "Download all (2 files", "planted-one.sh", "Import files")
	admin.post("/admin/transfer/resources/export").goes(t, "/admin/transfer")
	one := admin.post("/admin/transfer/resources/export", "resource", "automatortypes/shell/scripts/planted-one.sh")
	if names := tarNames(t, one.body); names != "automatortypes/shell/scripts/planted-one.sh" || one.header.Get("Content-Type") != "application/gzip" {
		t.Errorf("the chosen archive holds %q, %v", names, one.header)
	}
	all := admin.get("/admin/transfer/resources/export")
	if names := tarNames(t, all.body); names != "automatortypes/shell/scripts/planted-one.sh automatortypes/shell/scripts/planted-two.sh" {
		t.Errorf("the archive holds %q", names)
	}

	super.get("/admin/transfer/resources").shows(t, 200, "There is no archive to import")
	super.file("/admin/transfer/resources/upload", "archive", "x.tar.gz", []byte("nonsense")).shows(t, 422, "The archive was not taken.", "not compressed with gzip")
	super.file("/admin/transfer/resources/upload", "other", "x.tar.gz", []byte("nonsense")).shows(t, 422, "Choose an archive.")
	super.file("/admin/transfer/resources/upload", "archive", "x.tar.gz", []byte(all.body)).goes(t, "/admin/transfer/resources")
	preview := super.get("/admin/transfer/resources").shows(t, 200, "2 resources are new", "planted-one.sh", "Stage imported files")
	if i := strings.Index(preview.body, `action="/admin/transfer/resources"`); i < 0 {
		t.Fatal("the preview has no form")
	}
	post := func(v *visitor, pairs ...string) answer {
		_, seen, _ := strings.Cut(preview.body, `name="seen" value="`)
		seen, _, _ = strings.Cut(seen, `"`)
		return v.post("/admin/transfer/resources", append([]string{"seen", seen}, pairs...)...)
	}
	post(super).shows(t, 422, "Nothing was imported.", "Nothing was chosen")
	admin.post("/admin/transfer/resources", "seen", "x").goes(t, "/admin/transfer")
	post(super, "take:automatortypes/shell/scripts/planted-one.sh", "true", "stage", "true").goes(t, "/admin/resources")
	super.get("/admin/resources").shows(t, 200, "planted-one.sh", "Staged", "Imported 1 file").hides(t, "planted-two.sh")
	super.get("/admin/transfer/resources").shows(t, 200, "There is no archive to import")
}

func tarNames(t *testing.T, body string) string {
	t.Helper()
	zip, err := gzip.NewReader(strings.NewReader(body))
	check(t, err)
	files := tar.NewReader(zip)
	var names []string
	for {
		header, err := files.Next()
		if err == io.EOF {
			return strings.Join(names, " ")
		}
		check(t, err)
		names = append(names, header.Name)
	}
}
