package web_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/views/route"
)

// sampleTypes registers what the sample catalog needs.
func (r *rooms) sampleTypes() {
	r.t.Helper()
	check(r.t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{aws.Type(), digitalocean.Type(), google.Type(), joyent.Type(), openstack.Type(), rackspace.Type()},
		[]loom.PluginType{chefsolo.Type(), docker.Type()}))
}

// importSample makes the sample catalog that of the tenant demo.
func (r *rooms) importSample() {
	r.t.Helper()
	r.sampleTypes()
	sample, err := catalog.DecodeFolder(os.DirFS(testkit.Catalog(r.t)))
	check(r.t, err)
	_, err = r.catalog.Import(r.ctx, loom.SystemActor(r.tenantID("demo"), "demo"), sample, catalog.Replace)
	check(r.t, err)
}

// TestFindingsWithoutScripts: the overview lists each cause once, and a fix shows what it
// changes before it is applied, by forms alone.
func TestFindingsWithoutScripts(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	r.importSample()
	v := r.signedIn("demo", "admin")
	page := v.get("/admin").shows(t, 200, "Provider aws-us-west-1 does not exist", "4 hardware types, 6 image types", "Services cdap-sandbox-docker and coopr-standalone-docker do not exist",
		"17 cookbooks are missing", "name=apache2&amp;plugin=automatortypes%2Fchef-solo%2Fcookbooks", `href="/admin/providers/new?name=aws-us-west-1"`).hides(t, "()")
	if n := strings.Count(page.body, `<li class="c-notice"`); n > 10 || n < 5 {
		t.Errorf("%d groups", n)
	}
	v.get("/admin/providers/new?name=aws-us-west-1").shows(t, 200, `value="aws-us-west-1"`)

	remove := route.AdminFix() + "?code=dangling&fix=remove&kind=providers&value=aws-us-west-1"
	ask := v.get(remove).shows(t, 200, "hardware type standard-large", "image type ubuntu14", "providermap.aws-us-west-1", "Remove from 10 entries")
	fields := testkit.FormValues(t, ask.body, "fix")
	v.post("/admin/hardware-types/standard-large", "expected", "1", "body", `{"name":"standard-large","label":"Large","providermap":{"aws-us-west-1":{"flavor":"m1.large"}}}`).goes(t, "/admin/hardware-types/standard-large")
	again := v.send(route.AdminFix(), fields).shows(t, 409, "The catalog changed since", "Remove from 10 entries")
	v.get("/admin").shows(t, 200, "Provider aws-us-west-1 does not exist")
	v.send(route.AdminFix(), testkit.FormValues(t, again.body, "fix")).goes(t, "/admin")
	v.get("/admin").shows(t, 200, "Changed 10 entries.").hides(t, "aws-us-west-1 does not exist")
	v.send(route.AdminFix(), fields).shows(t, 409, "The catalog changed")

	another := route.AdminFix() + "?code=dangling&fix=replace&kind=imagetypes&value=ubuntu16"
	v.get(another).shows(t, 200, "Use instead of ubuntu16", `<option value="ubuntu14"`).hides(t, "Replace in")
	v.get(another+"&to=none").shows(t, 422, "There is no image type “none”")
	v.send(route.AdminFix(), testkit.FormValues(t, v.get(another+"&to=ubuntu14").shows(t, 200, "Replace in 1 entry").body, "fix")).goes(t, "/admin")
	v.get("/admin").hides(t, "ubuntu16 does not exist")
	v.get("/admin/templates/docker-base?as=json").shows(t, 200, `"ubuntu14"`).hides(t, "ubuntu16")
	r.signedIn("demo", "user").get(remove).shows(t, 403)
}

// TestImportOfSampleOverStarter: a packed folder is read whatever folder it lies in, and what
// of the catalog it breaks is named before anything is stored.
func TestImportOfSampleOverStarter(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	r.sampleTypes()
	v := r.signedIn("demo", "admin")
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	files := tar.NewWriter(compressed)
	check(t, filepath.WalkDir(testkit.Catalog(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		check(t, err)
		name, err := filepath.Rel(testkit.Catalog(t), path)
		check(t, err)
		check(t, files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "sample-1.0/" + name, Mode: 0o644, Size: int64(len(content))}))
		_, err = files.Write(content)
		return err
	}))
	check(t, files.Close())
	check(t, compressed.Close())
	const preview = "/admin/transfer/preview"
	v.sendFile(preview, "file", "sample.tar.gz", packed.String()).goes(t, preview)
	page := v.get(preview).shows(t, 200, "Changed 2 · New 63 · Same 0 · Invalid 0", `<option value="skip" selected>Keep mine`).hides(t, `value="skip" selected>Skip`)
	breaks := cut(page.body, `<h2 id="breaks">`, `id="changed-list"`)
	for _, text := range []string{"template web-cluster", "if haproxy or nginx is overwritten", `href="/admin/templates/web-cluster"`} {
		if !strings.Contains(breaks, text) {
			t.Errorf("Breaks lacks %q: %s", text, breaks)
		}
	}
	if n := strings.Count(page.body, `<li class="c-notice"`); n > 20 {
		t.Errorf("%d causes", n)
	}
}
