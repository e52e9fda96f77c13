package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/testkit"
)

// keyed is a type of provider whose settings name files.
func keyed() loom.PluginType {
	return loom.PluginType{Base: loom.Base{Name: "keyed", Description: "A cloud with keys."}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"key":    {Label: "SSH key", Type: "resource", ResourceType: "ssh_keys"},
		"boot":   {Label: "First boot", Type: "text", ResourceType: "user_data", Override: true},
		"secret": {Label: "Secret", Type: "password", Sensitive: true},
		"place":  {Label: "Place", Type: "text"}}, Required: [][]string{{"key", "secret"}}}},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": {Format: "file", Permissions: "0400"}, "user_data": {Format: "archive"}}}
}

// formFile is a file that was chosen in a control.
type formFile struct{ control, name, content string }

// sendFiles posts values and files, as a browser does with a form that has both.
func (v *visitor) sendFiles(path string, values url.Values, files ...formFile) answer {
	v.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, all := range values {
		for _, value := range all {
			check(v.t, w.WriteField(name, value))
		}
	}
	for _, f := range files {
		part, err := w.CreateFormFile(f.control, f.name)
		check(v.t, err)
		_, err = part.Write([]byte(f.content))
		check(v.t, err)
	}
	check(v.t, w.Close())
	req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+path, &b)
	check(v.t, err)
	req.Header.Set("Content-Type", w.FormDataContentType())
	return v.do(req)
}

// A file that a setting of a provider names is uploaded within its form, and what was
// typed stays. Without scripts, too.
func TestFileOfAProvidersForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{keyed()}, nil))
	v := r.signedIn("demo", "admin")
	const fresh = "/admin/providers/new"
	values := testkit.FormValues(t, v.get(fresh).shows(t, 200, `enctype="multipart/form-data"`).body, "editor")
	values.Set("name", "far")
	values.Set("providertype", "keyed")
	values.Set("do", "refresh:")
	page := v.sendFiles(fresh, values).shows(t, 200, `type="file"`, `name="upload.key"`, "Upload a file for SSH key", "Upload and choose it", "A .tar.gz or .zip with one folder at its top.",
		`hx-encoding="multipart/form-data"`)

	fill := func(page answer, do string) url.Values {
		values := press(t, page, do)
		values.Set("label", "Far away")
		values.Set("provisioner.place", "the moon")
		values.Set("provisioner.secret", "hush-hush")
		return values
	}
	const upload = "upload:provisioner.key"
	none := fill(page, upload)
	v.sendFiles(fresh, none, formFile{"upload.key", "", ""}).shows(t, 422, "Choose the file to upload.", `value="Far away"`, `value="the moon"`).hides(t, "hush-hush")
	v.send(fresh, none).shows(t, 422, "Choose the file to upload.")
	v.sendFiles(fresh, none, formFile{"upload.key", "empty.pem", ""}).shows(t, 422, "The file “empty.pem” is empty", `value="the moon"`)
	odd := fill(page, upload)
	odd.Set("upload.key.as", "my key")
	v.sendFiles(fresh, odd, formFile{"upload.key", "id.pem", "k"}).shows(t, 422, "The file “id.pem” was not stored.", "Use letters without accents", `value="my key"`, `href="#f-upload-key-as"`, "Name of the file of SSH key", "Far away")
	v.sendFiles(fresh, fill(page, "upload:provisioner.boot"), formFile{"upload.boot", "boot.tgz", "no archive"}).shows(t, 422, "This is not an archive", `value="the moon"`)
	v.sendFiles(fresh, none, formFile{"upload.key", "huge.pem", strings.Repeat("x", int(catalog.MaxSealedUpload)+1)}).shows(t, 422, "larger than", "Far away")
	v.sendFiles(fresh, none, formFile{"upload.key", "huge.pem", strings.Repeat("x", httpx.MaxBody)}).shows(t, 422, "Upload such a file under Files")
	list, err := r.catalog.ListResources(r.ctx, v.actor("demo"), catalog.ResourceListInput{Plugin: "keyed"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("refused files were stored: %v, %v", list.Items, err)
	}

	page = v.sendFiles(fresh, fill(page, upload), formFile{"upload.key", "id.pem", "the key itself"}).
		shows(t, 200, "Saved version 1 of id.pem and chose it here.", `<option value="id.pem" selected`, `value="Far away"`, `value="the moon"`).hides(t, "the key itself", "hush-hush", "next release")
	// One of a name that is in use waits for a release.
	v.sendFiles(fresh, fill(page, upload), formFile{"upload.key", "id.pem", "another key"}).shows(t, 200, "Saved version 2 of id.pem and chose it here. The next release puts it in use.")
	// The button of the form takes a file as well, so that none is lost.
	saved := v.sendFiles("/admin/providers", fill(page, ""), formFile{"upload.key", "", ""}, formFile{"upload.boot", "boot.tgz", string(tarOf(t, "boot/a.sh"))}).goes(t, "/admin/providers/far")
	v.get(saved.location).shows(t, 200, "Saved version", "of boot.tgz.").hides(t, "The next release puts")
	v.get("/admin/providers/far?as=json").shows(t, 200, `"key":"id.pem"`, `"boot":"boot.tgz"`, `"place":"the moon"`)
	list, err = r.catalog.ListResources(r.ctx, v.actor("demo"), catalog.ResourceListInput{Plugin: "keyed"})
	check(t, err)
	for _, item := range list.Items {
		// Of the key the newest version waits.
		if want := map[string]loom.ResourceStatus{"boot.tgz": loom.ResourceActive, "id.pem": loom.ResourceStaged}[item.Name]; item.Status() != want {
			t.Errorf("%s is %s", item.Name, item.Status())
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("stored: %v", list.Items)
	}
	// Who gives up stores nothing, and users may not.
	edit := v.get("/admin/providers/far/edit").shows(t, 200)
	v.sendFiles("/admin/providers/far/edit", press(t, edit, "cancel"), formFile{"upload.key", "more.pem", "k"}).goes(t, "/admin/providers/far")
	r.signedIn("demo", "user").sendFiles(fresh, fill(page, upload), formFile{"upload.key", "mine.pem", "k"}).shows(t, 403)
	if after, err := r.catalog.ListResources(r.ctx, v.actor("demo"), catalog.ResourceListInput{Plugin: "keyed"}); err != nil || len(after.Items) != 2 {
		t.Errorf("stored: %v, %v", after.Items, err)
	}
}
