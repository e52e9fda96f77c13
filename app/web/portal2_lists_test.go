package web_test

import (
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

// TestListsWithoutScripts finds entries by facets and changes several of them, by forms alone.
func TestListsWithoutScripts(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	r.importSample()
	v := r.signedIn("demo", "admin")
	v.post("/admin/hardware-types", "body", `{"name":"spare","label":"Spare","labels":{"team":"web"},"providermap":{"google":{"flavor":"n1"}}}`).goes(t, "/admin/hardware-types/spare")
	v.get("/admin/hardware-types").shows(t, 200, "team=web", "team=web (1)", "aws-us-west-1 (4)", "Unused (1)", "Warnings (4)", "Apply")
	v.get("/admin/hardware-types?label=team%3Dweb").shows(t, 200, `href="/admin/hardware-types/spare"`, "1 hardware type", "Clear filters").hides(t, `href="/admin/hardware-types/standard-large"`)
	v.get("/admin/hardware-types?findings=warning&provider=aws-us-west-1").shows(t, 200, "4 hardware types").hides(t, `href="/admin/hardware-types/spare"`)
	v.get("/admin/hardware-types?use=unused").shows(t, 200, "1 hardware type")
	v.get("/admin/hardware-types?label=none").shows(t, 200, "No matches.", "Clear filters")
	v.get("/admin/services?findings=unchecked").shows(t, 200, "29 services")
	v.post(route.AdminBulk(loom.KindService, "deprecate"), "id", "1.apache-httpd").shows(t, 200, "Done: 1 service.")
	v.get("/admin/services?findings=unchecked").shows(t, 200, "28 services") // deprecated ones are on their way out
	v.get("/admin/services?automator=docker").shows(t, 200, "cassandra-docker").hides(t, `href="/admin/services/apache-httpd"`)
	v.get("/admin/hardware-types/spare").shows(t, 200, "team=web")
	v.get("/admin/hardware-types/spare/edit").shows(t, 200, "team=web</textarea>")

	const large, small = "id=1.standard-large", "id=1.standard-small"
	label := v.get("/admin/bulk/hardware-types/label?"+large+"&"+small).shows(t, 200, "standard-large", "Labels to add")
	fields := testkit.FormValues(t, label.body, "bulk-form")
	fields.Set("add", "nonsense")
	v.send("/admin/bulk/hardware-types/label", fields).shows(t, 422, "Line 1 is “nonsense”", "Nothing was changed.")
	fields.Set("add", "team=db\nsize=big")
	v.send("/admin/bulk/hardware-types/label", fields).shows(t, 200, "Done: 2 hardware types.", "Labeled.")
	v.get("/admin/hardware-types/standard-large?as=json").shows(t, 200, `"team":"db"`, `"version":2`)
	v.send("/admin/bulk/hardware-types/label", fields).shows(t, 200, "It has changed since it was shown")
	fields = testkit.FormValues(t, v.get("/admin/bulk/hardware-types/label?all=1&label=team%3Ddb").body, "bulk-form")
	fields.Set("remove", "size, team")
	v.send("/admin/bulk/hardware-types/label", fields).shows(t, 200, "Done: 2 hardware types.")
	v.get("/admin/hardware-types?label=team%3Ddb").shows(t, 200, "No matches.")

	v.send("/admin/bulk/hardware-types/deprecate", testkit.FormValues(t, v.get("/admin/bulk/hardware-types/deprecate?all=1").shows(t, 200, "Deprecate 6 hardware types").body, "bulk-form")).
		shows(t, 200, "Done: 6 hardware types.")
	v.get("/admin/hardware-types?show=deprecated").shows(t, 200, "6 hardware types")

	bundle := v.get("/admin/bulk/hardware-types/export?"+"id=2.spare").shows(t, 200, `"spare"`).hides(t, "standard-large")
	if got := bundle.header.Get("Content-Disposition"); !strings.Contains(got, "hardwaretypes.json") {
		t.Errorf("the bundle is %q", got)
	}
	v.get("/admin/bulk/hardware-types/export").goes(t, "/admin/hardware-types")

	ask := v.get("/admin/bulk/hardware-types/delete?all=1").shows(t, 200, "name it.", "delete 1 hardware type")
	fields = testkit.FormValues(t, ask.body, "bulk-form")
	v.send("/admin/bulk/hardware-types/delete", fields).shows(t, 422, "Type the text exactly.")
	fields["id"] = append(fields["id"], "4.standard-large") // a template came to need it since
	fields.Set("confirm", "delete 2 hardware types")
	v.send("/admin/bulk/hardware-types/delete", fields).shows(t, 200, "Done: 1 hardware type.", "Not done: 1.", "is not deleted")
	v.get("/admin/hardware-types/spare").shows(t, 404)

	replace := v.get("/admin/bulk/image-types/provider?id=1.ubuntu14&id=1.centos6").shows(t, 200, "Provider to replace", `<option value="aws-us-west-1"`)
	if entries := testkit.FormValues(t, replace.body, "")["entry"]; len(entries) != 2 {
		t.Errorf("entries are %v", entries)
	}
	fix := v.get("/admin/fix?code=dangling&fix=replace&kind=providers&value=aws-us-west-1&to=aws-us-east-1&entry=imagetypes%2Fubuntu14&entry=imagetypes%2Fcentos6").shows(t, 200, "Replace in 2 entries")
	v.send("/admin/fix", testkit.FormValues(t, fix.body, "fix")).goes(t, "/admin")
	v.get("/admin/image-types/ubuntu14?as=json").hides(t, "aws-us-west-1")
	v.get("/admin/image-types/debian6?as=json").shows(t, 200, "aws-us-west-1")
	r.signedIn("demo", "user").get("/admin/bulk/hardware-types/delete?all=1").shows(t, 403)
}

// TestBulkOfEachKind labels, deprecates and deletes an entry of each kind.
func TestBulkOfEachKind(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	for _, kind := range loom.TenantKinds {
		body := `{"name":"bulky"}`
		if kind == loom.KindProvider {
			body = `{"name":"bulky","providertype":"local"}`
		}
		v.post(route.AdminKind(kind), "body", body).goes(t, route.AdminEntry(kind, "bulky"))
		v.post(route.AdminBulk(kind, "label"), "id", "1.bulky", "add", "team=web").shows(t, 200, "Labeled.")
		v.get(route.AdminKind(kind)+"?label=team%3Dweb").shows(t, 200, route.AdminEntry(kind, "bulky"))
		v.post(route.AdminBulk(kind, "deprecate"), "id", "2.bulky").shows(t, 200, "Deprecated.")
		v.post(route.AdminBulk(kind, "delete"), "id", "3.bulky", "confirm", "delete 1 "+kind.Word()).shows(t, 200, "Deleted.")
		v.get(route.AdminEntry(kind, "bulky")).shows(t, 404)
	}
}
