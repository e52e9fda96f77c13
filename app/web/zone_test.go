package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/web"
	"loom/views/route"
)

// noTimes are answers that are read by programs, or say themselves in which zone
// their times are.
var noTimes = regexp.MustCompile(`^GET /(docs/|account/preferences|events|.*\.svg$|.*/log/raw$|.*/export$|.*/ssh-config$)`)

// attributes and code hold times for programs.
var forPrograms = regexp.MustCompile(`(?s)datetime="[^"]*"|<input type="hidden"[^>]*>|<(code|pre|textarea)[^>]*>.*?</(code|pre|textarea)>|value="[^"]*"`)

var timeLeft = regexp.MustCompile(`\bUTC\b|\d{4}-\d\d-\d\dT\d\d:\d\d|[^<>]{0,40}\d\d:\d\d Z`)

// TestTimesAreThoseOfTheViewer opens each page for people whose clocks differ from UTC
// by hours and minutes: no time is left in UTC.
func TestTimesAreThoseOfTheViewer(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	super := w.superCookie()
	values := w.documentValues()
	live := w.create("alive", 2)
	w.finish(live, loom.ClusterActive)
	w.log(loom.TaskRef{Operation: live, Number: 1}, "stdout", "hello")
	w.db.MustExec(`UPDATE task_logs SET at = '2026-06-09 20:00:00.5+00'`)
	w.db.MustExec(`UPDATE clusters SET expires_at = date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '1 day 20 hours' WHERE id = $1`, int64(live.Cluster))
	w.post("admin", route.ClusterLease(live.Cluster), url.Values{"end": {"6d"}})
	zone := loom.ViewPreferences{Zone: "Asia/Kathmandu"}
	for _, user := range []loom.UserID{"admin", "ana", super} {
		w.must(w.accounts.SetPreferences(w.ctx, w.actor(user), zone))
	}
	look := func(user loom.UserID, path string) string {
		t.Helper()
		a := w.get(user, path)
		if a.Code >= http.StatusInternalServerError {
			t.Errorf("%s: status %d", path, a.Code)
		}
		text := forPrograms.ReplaceAllString(a.main(), " ")
		for _, left := range timeLeft.FindAllStringIndex(text, 3) {
			t.Errorf("%s for %s: %q", path, user, text[max(0, left[0]-120):min(len(text), left[1]+40)])
		}
		return a.Body
	}
	opened := 0
	for _, pattern := range web.Patterns() {
		path, isGet := strings.CutPrefix(pattern, "GET ")
		if !isGet || noTimes.MatchString(pattern) {
			continue
		}
		path, _ = fill(strings.TrimSuffix(path, "{$}"), values)
		user := loom.UserID("admin")
		if strings.HasPrefix(path, "/system") {
			user = super
		}
		look(user, path)
		opened++
	}
	if opened < 150 {
		t.Errorf("only %d pages were opened", opened)
	}
	at := route.Cluster(live.Cluster)
	end := time.Now().Add(6 * 24 * time.Hour).In(zone.Location())
	for path, wanted := range map[string]string{
		at:                                     "+0545",
		at + "/lease":                          "Asia/Kathmandu",
		at + "/operations/1/tasks/1?attempt=1": "01:45:00.500",
		at + "/operations/1/log":               "01:45:00.500",
		at + "/operations":                     end.Format("2 January 2006, 15:04")[:len("2 January 2006")],
		"/usage?period=24h":                    ":00 +0545",
		"/clusters/bulk/lease?id=" + live.Cluster.String(): "+0545",
	} {
		if body := look("ana", path); !strings.Contains(body, wanted) {
			t.Errorf("%s does not say %q", path, wanted)
		}
	}
	// What is written is understood in the same zone.
	day := time.Now().In(zone.Location()).AddDate(0, 0, 5).Format(time.DateOnly)
	w.post("ana", at+"/lease", url.Values{"end": {day + " 14:00"}, "sure": {"1"}})
	var stored time.Time
	w.must(w.db.Get(&stored, `SELECT expires_at FROM clusters WHERE id = $1`, int64(live.Cluster)))
	if got := stored.In(zone.Location()).Format("2006-01-02 15:04"); got != day+" 14:00" {
		t.Errorf("the lease ends %s, want %s 14:00", got, day)
	}
}

// TestZoneOfTheBrowser: times are in the zone that loom.js found unless another is preferred.
func TestZoneOfTheBrowser(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := route.ClusterLease(w.active("shop", 2))
	see := func(zone string) clusterAnswer {
		return w.send("ana", http.MethodGet, at, nil, "Cookie", "loom-dev="+w.cookies["ana"]+"; loom-zone="+zone)
	}
	see("Asia/Kathmandu").is(200, "Time zone: Asia/Kathmandu", "+0545")
	see("../../etc/passwd").is(200, "Time zone: UTC")
	see("Local").is(200, "Time zone: UTC")
	w.must(w.accounts.SetPreferences(w.ctx, w.actor("ana"), loom.ViewPreferences{Zone: "UTC"}))
	see("Asia/Kathmandu").is(200, "Time zone: UTC")
}
