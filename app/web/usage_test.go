package web_test

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
	"time"
)

const hours = time.Hour

// TestUsagePages: each sees his own, an administrator his tenant, a superadmin all;
// what is summed up in the picture is what the file says.
func TestUsagePages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin, user := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	demo := r.tenantID("demo")
	for _, v := range []*visitor{user, admin} {
		v.get("/usage").shows(t, 200, "No node time in this range.").hides(t, "<svg class=\"plot\"", "style=")
	}
	mine := r.past(demo, "user", "web-cluster", "small", 2, 30*hours, 10*hours)
	r.past(demo, "admin", "redis", "large", 1, 5*hours, 0)
	r.past("superadmin", "admin", "hidden-template", "large", 1, 3*hours, 0)

	page := user.get("/usage").shows(t, 200, "20.0 node-hours", "web-cluster", `class="plot"`, "none in the ", "Data").hides(t, "redis", "hidden-template", "style=", "onclick")
	if strings.Count(page.body, "<rect class=\"bar") == 0 {
		t.Error("there are no bars")
	}
	user.get("/usage?split=cluster").shows(t, 200, `href="/clusters/0000000`+strconv.Itoa(mine)+`">web-cluster</a>`, ">0000000"+strconv.Itoa(mine)+"<")
	user.get("/usage?unit=days").shows(t, 200, "0.8 node-days")
	user.get("/usage?period=24h").shows(t, 200, "08", "By") // hours
	// A user asks for no one else, whatever the address says.
	user.get("/usage?user=admin&tenant=superadmin").shows(t, 200, "20.0 node-hours").hides(t, "redis")
	user.get("/admin/usage").shows(t, 403, "tenant administrator")
	admin.get("/system/usage").shows(t, 403, "superadmin")
	r.visitor().get("/usage").goes(t, "/login?next=%2Fusage")

	admin.get("/admin/usage").shows(t, 200, "25.0 node-hours", "By user", ">admin<", ">user<").hides(t, "hidden-template")
	admin.get("/admin/usage?user=user&split=clustertemplate").shows(t, 200, "20.0 node-hours", "web-cluster", "User: user</a>").hides(t, ">redis<")
	admin.get("/admin/usage?template=redis&split=hardwaretype").shows(t, 200, "5.0 node-hours", "large")
	// Low enough to be near the bars at every hour, as midnight may part what was used.
	r.exec(`UPDATE tenants SET max_nodes = 1 WHERE id = $1`, demo)
	admin.get("/admin/usage").shows(t, 200, "quota 24")
	r.exec(`UPDATE tenants SET max_nodes = 2000 WHERE id = $1`, demo)
	admin.get("/admin/usage").shows(t, 200, "The quota of 2000 nodes allows").hides(t, `class="limit"`)

	super.get("/system/usage").shows(t, 200, "28.0 node-hours", ">demo<", ">superadmin<")
	super.get("/system/usage?tenant=demo&split=user").shows(t, 200, "25.0 node-hours", ">user<")
	super.get("/admin/usage").shows(t, 200, "3.0 node-hours").hides(t, "redis") // his own tenant

	a := admin.get("/admin/usage?as=csv")
	if got := a.header.Get("Content-Type"); got != "text/csv; charset=utf-8" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment;") {
		t.Errorf("the file is %q, %q", got, a.header.Get("Content-Disposition"))
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	check(t, err)
	sum := 0.0
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[3], 64)
		check(t, err)
		sum += v
	}
	if len(rows) != 15 || sum < 24.9 || sum > 25.1 { // 7 days of 2 users
		t.Errorf("%d rows with %v hours", len(rows), sum)
	}
}

// TestUsageComparedAndBad: the time before is compared with; what makes no sense is
// refused with the field and what to do.
func TestUsageComparedAndBad(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	user := r.signedIn("demo", "user")
	now := time.Now().UTC()
	// 10 hours eight days ago, 5 hours two days ago.
	r.past(r.tenantID("demo"), "user", "web", "small", 1, 8*24*hours, 10*hours)
	r.past(r.tenantID("demo"), "user", "web", "small", 1, 2*24*hours, 5*hours)
	day := func(ago int) string { return now.AddDate(0, 0, -ago).Format(time.DateOnly) }
	user.get("/usage?period=custom&from="+day(5)+"&to="+day(1)+"&group=day").shows(t, 200, "5.0 node-hours", "% less than the 10.0 in the ")
	user.get("/usage?period=30d&group=week").shows(t, 200, "15.0 node-hours", "Week from")
	user.get("/usage?period=30d&group=month").shows(t, 200, "15.0 node-hours", now.Format("January 2006"))
	for query, says := range map[string]string{
		"period=never":                 "The period is 24h, 7d, 30d or custom.",
		"unit=years":                   "The unit is hours or days.",
		"group=decade":                 "is none of hour, day, week, month",
		"split=password":               "is none of user,",
		"split=tenant":                 "is none of user,",
		"period=custom&from=yesterday": "Give a day as year-month-day",
		"period=custom&from=" + day(1) + "&to=" + day(3): "The first day is after the last",
		"period=custom&from=1900-01-01":                  "between 1970",
		"period=custom&from=2001-01-01&group=hour":       "more than 200 bars",
		"period=custom&from=9998-12-30&to=9998-12-30":    "has not come yet",
		"period=custom&from=9999-12-31&to=9999-12-31":    "Give a day as year-month-day", // the day after has no date
	} {
		user.get("/usage?"+query).shows(t, 422, says)
		if t.Failed() {
			t.Fatal(query)
		}
	}
}
