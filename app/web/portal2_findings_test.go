package web_test

import (
	"os"
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

// importSample makes the sample catalog that of the tenant demo.
func (r *rooms) importSample() {
	r.t.Helper()
	check(r.t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{aws.Type(), digitalocean.Type(), google.Type(), joyent.Type(), openstack.Type(), rackspace.Type()},
		[]loom.PluginType{chefsolo.Type(), docker.Type()}))
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
