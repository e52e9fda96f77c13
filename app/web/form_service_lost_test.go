package web_test

import (
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/automator/chefsolo"
	"loom/views/route"
)

// lonely is a service of which nobody uploaded the scripts; two actions share one.
const lonely = `{"name":"lonely","provisioner":{"actions":{"install":{"type":"shell","fields":{"script":"lonely.sh","args":"install"}},
	"start":{"type":"shell","fields":{"script":"begin.sh"}},"stop":{"type":"shell","fields":{"script":"lonely.sh"}}}}}`

func TestScriptsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	_, _, err := r.catalog.Create(r.ctx, v.actor("demo"), loom.KindService, []byte(lonely), false)
	check(t, err)
	upload := `/admin/resources/new?name=lonely.sh&amp;plugin=automatortypes%2Fshell%2Fscripts`

	// The form says it at each field, once, whether scripts run or not.
	page := v.get("/admin/services/lonely/edit").shows(t, 200, "The script lonely.sh is not there yet.", "The script begin.sh is not there yet.", upload)
	if n := strings.Count(page.body, "lonely.sh is not there"); n != 1 { // at install, not again at stop
		t.Errorf("the form says %d times that lonely.sh is not there", n)
	}
	// The check of what is typed sums up, and says it anew at the fields.
	values := press(t, page, "")
	values.Set("provisioner.actions.start.fields.script", "service")
	answer := v.send(route.AdminValidate(loom.KindService), values).shows(t, 200, "script lonely.sh is not there yet; its field leads to the upload.", `href="#f-provisioner-actions-install-fields-script"`,
		`id="f-provisioner-actions-install-fields-script-lost" hx-swap-oob="true"`, `id="f-provisioner-actions-start-fields-script-lost" hidden hx-swap-oob="true"`).hides(t, "active or staged", "begin.sh")
	if n := strings.Count(answer.body, "lonely.sh is not there"); n != 2 { // at its field, and in the list
		t.Errorf("the check says %d times that lonely.sh is not there", n)
	}
	// Its page says each once, with where it is named.
	page = v.get("/admin/services/lonely").shows(t, 200, "Incomplete:", "The script lonely.sh is neither active nor staged; install and stop name it.", upload)
	if n := strings.Count(page.body, "script lonely.sh is"); n != 1 {
		t.Errorf("the page says %d times that lonely.sh is not there", n)
	}
	v.get("/admin/resources/new?name=lonely.sh&plugin=automatortypes%2Fshell%2Fscripts").shows(t, 200, `value="lonely.sh"`, `value="automatortypes/shell/scripts" selected`)
	v.upload("lonely.sh", "lonely.sh", "echo", true).goes(t, "/admin/resources/show?kind=automatortypes&name=lonely.sh&plugin=shell&type=scripts&version=1")
	v.upload("begin.sh", "begin.sh", "echo", true).goes(t, "/admin/resources/show?kind=automatortypes&name=begin.sh&plugin=shell&type=scripts&version=1")
	v.get("/admin/services/lonely").shows(t, 200, "lonely.sh").hides(t, "Not all of it works yet")
	v.get("/admin/services/lonely/edit").shows(t, 200, "lonely.sh").hides(t, "is not there yet")
}

// A cookbook or role of a run list is missed as a script is, until it is uploaded; a service
// that names one is told before that is withdrawn.
func TestRunListsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	check(t, r.catalog.RegisterTypes(r.ctx, nil, []loom.PluginType{chefsolo.Type()}))
	_, _, err := r.catalog.Create(r.ctx, v.actor("demo"), loom.KindService,
		[]byte(`{"name":"cooked","provisioner":{"actions":{"install":{"type":"chef-solo","fields":{"run_list":"recipe[nginx::default],role[site]"}}}}}`), false)
	check(t, err)
	const book, role = `name=nginx&amp;plugin=automatortypes%2Fchef-solo%2Fcookbooks`, `name=site.json&amp;plugin=automatortypes%2Fchef-solo%2Froles`
	page := v.get("/admin/services/cooked/edit").shows(t, 200, "The cookbook nginx is not there yet.", book, "The role site.json is not there yet.", role)
	v.send(route.AdminValidate(loom.KindService), press(t, page, "")).shows(t, 200, "cookbook nginx and role site.json are not there yet", `id="f-provisioner-actions-install-fields-run_list-lost" hx-swap-oob="true"`)
	v.get("/admin/services/cooked").shows(t, 200, "The cookbook nginx is neither active nor staged; install names it.", "The role site.json is neither", book).hides(t, "()", "run_list)")
	v.get("/admin").shows(t, 200, "Cookbook nginx is missing", "install action").hides(t, "()")
	ref := loom.ResourceRef{Kind: "automatortypes", Plugin: "chef-solo", Type: "roles", Name: "site.rb"}
	_, err = r.catalog.Upload(r.ctx, v.actor("demo"), ref, strings.NewReader("run_list 'recipe[nginx]'"), 0)
	check(t, err)
	check(t, r.catalog.Stage(r.ctx, v.actor("demo"), ref, 1))
	v.get("/admin/services/cooked").shows(t, 200, "The cookbook nginx is").hides(t, "The role site")
	v.get("/admin/resources/withdraw?kind=automatortypes&plugin=chef-solo&type=roles&name=site.rb&version=1").shows(t, 200, "<p>Used by:</p>", `href="/admin/services/cooked"`)
}

func TestServiceIntoTemplate(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	_, _, err := r.catalog.Create(r.ctx, v.actor("demo"), loom.KindService, []byte(lonely), false)
	check(t, err)
	v.get("/admin/services/nginx").shows(t, 200).hides(t, "Use it in a template")
	v.get("/admin/services/lonely").shows(t, 200, "No template uses this service yet", `href="/admin/services/lonely/use"`)
	v.get("/admin/services/gone/use").shows(t, 404)
	v.get("/admin/services/nginx/use").shows(t, 200, "A new template", "new clusters have it already", "does not name it yet")

	v.get("/admin/services/lonely/use?type=web-cluster").goes(t, "/admin/templates/web-cluster/edit/defaults?service=lonely")
	v.get("/admin/services/lonely/use?type=").goes(t, "/admin/templates/new?service=lonely")
	v.get("/admin/templates/new?service=gone").shows(t, 200)

	// What is saved has it among the defaults and what is allowed.
	page := v.get("/admin/templates/web-cluster/edit/defaults?service=lonely").shows(t, 200, "New clusters have the service lonely now; save to keep that.")
	v.send("/admin/templates/web-cluster", press(t, page, "")).goes(t, "/admin/templates/web-cluster")
	entry, _, err := r.catalog.Entry(r.ctx, v.actor("demo"), loom.KindTemplate, "web-cluster", 0)
	check(t, err)
	web := entry.(*loom.Template)
	if !contains(web.Defaults.Services, "lonely") || !contains(web.Compatibility.Services, "lonely") {
		t.Errorf("the template has %v and allows %v", web.Defaults.Services, web.Compatibility.Services)
	}
	v.get("/admin/templates/web-cluster/edit/defaults?service=lonely").shows(t, 200, "has the service lonely already")
	v.get("/admin/services/lonely").shows(t, 200).hides(t, "No template uses this service yet")
	r.signedIn("demo", "user").get("/admin/services/lonely/use").shows(t, 403)
}

func contains(names []string, name string) bool {
	return strings.Contains(","+strings.Join(names, ",")+",", ","+name+",")
}
