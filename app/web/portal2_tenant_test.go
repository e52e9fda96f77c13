package web_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// TestTenantTabs: no link on the pages of a tenant leads to pages of one's own tenant, and a
// cluster is opened as its administrator, with a reason that both tenants keep.
func TestTenantTabs(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	cluster := loom.ClusterID(r.past(r.tenantID("demo"), "ana", "web", "small", 1, time.Hour, 0)).String()
	v := r.signedIn("superadmin", "admin")
	const at = "/system/tenants/demo"
	link := regexp.MustCompile(`href="(/[^"]*)"`)
	for _, tab := range []string{"", "/clusters", "/users", "/edit", "/activity"} {
		body := v.get(at+tab).shows(t, 200, `aria-current="page"`, "Overview", "Clusters", "Users", "Quotas", "Activity").body
		for _, found := range link.FindAllStringSubmatch(cut(body, "<main", "</main>"), -1) {
			if !regexp.MustCompile(`^/(system|static|docs)\b`).MatchString(found[1]) {
				t.Errorf("%s leads to %s", at+tab, found[1])
			}
		}
		if button := regexp.MustCompile(`<a\s+class="c-button"[^>]*href="` + at + `/delete"`); button.MatchString(body) || !strings.Contains(body, at+"/delete") {
			t.Errorf("%s: Delete is not in the menu", at+tab)
		}
		r.signedIn("demo", "admin").get(at+tab).shows(t, 403)
		v.get("/system/tenants/nowhere"+tab).shows(t, 404)
	}
	v.get(at+"/users").shows(t, 200, ">user<", ">admin<")
	ask := at + "/act-as?cluster=" + cluster
	v.get(at+"/clusters").shows(t, 200, "Open as administrator", `href="`+ask+`"`)
	v.get(ask).shows(t, 200, `name="reason"`, `value="`+cluster+`"`)
	v.post(at+"/act-as", "cluster", cluster, "reason", " ").shows(t, 422, "Enter a reason")
	v.post(at+"/act-as", "cluster", cluster, "reason", "ticket 7").goes(t, "/clusters/"+cluster)
	v.post("/act/end").goes(t, at)
	r.signedIn("demo", "admin").get("/admin/audit?verb=act_as").shows(t, 200, "ticket 7")
}
