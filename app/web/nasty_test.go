package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/web"
)

// TestNothingNastyIsAnInternalErrorOfAPage reads every page with numbers and days in its address
// that are too large for the database, and with what is no text: none fails inside, none panics.
func TestNothingNastyIsAnInternalErrorOfAPage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	values := w.documentValues()
	root := w.superCookie()
	numbers, days := []string{"after", "attempt", "before", "from", "lines", "revision", "to", "version"}, []string{"from", "since", "to", "until"}
	survives := func(user loom.UserID, path string) {
		if a := w.get(user, path); a.Code >= 500 {
			t.Errorf("%s answers %d", path, a.Code)
		}
	}
	for _, rt := range web.Routes() {
		if rt.Method != http.MethodGet || rt.Path == "/events" {
			continue
		}
		user := root
		if !strings.HasPrefix(rt.Path, "/system/") {
			user = "admin"
		}
		for _, at := range part.FindAllString(rt.Path, -1) {
			path, _ := fill(strings.Replace(rt.Path, at, "\x01", 1), values)
			for _, nasty := range []string{"2147483648", "9223372036854775807", "99999999999999999999", "-1", "%00", "%ff"} {
				survives(user, strings.Replace(path, "\x01", nasty, 1))
			}
		}
		path, _ := fill(strings.TrimSuffix(rt.Path, "{$}"), values)
		for _, name := range numbers {
			survives(user, path+"?"+name+"=9223372036854775807")
		}
		for _, name := range days {
			survives(user, path+"?"+name+"=9999-12-31")
		}
	}
	for _, line := range w.troubles.all() {
		t.Error(line)
	}
}

// TestMessagesOfASessionAreBounded: what is said after a form waits for the next page; programs that
// never ask for one do not fill the database with it.
func TestMessagesOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	kept := func() (bytes int) {
		for range 20 {
			if a := w.post("ana", "/account", url.Values{"displayName": {"Ana"}}); a.Code != http.StatusSeeOther {
				t.Fatalf("%d %.300s", a.Code, a.Body)
			}
		}
		w.must(w.db.Get(&bytes, `SELECT max(octet_length(data::text)) FROM sessions`))
		return bytes
	}
	if first, then := kept(), kept(); first < 50 || then != first {
		t.Errorf("%d bytes wait after 20 forms, %d after 40", first, then)
	}
}
