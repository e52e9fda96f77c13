package api

import (
	"net/http"
	"strings"
	"testing"
)

// TestBodiesThatAreTooDeep: whatever takes JSON refuses what is nested more than 100
// levels deep and says where and what to do, before it looks at anything else.
func TestBodiesThatAreTooDeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "deep")
	w.finish(id)
	deep := strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000)
	tried := 0
	for _, rt := range w.api.routes() {
		if rt.body == "" || rt.body == "bytes" {
			continue
		}
		path := fill(rt.path, id)
		body := `{"name":"deep","config":` + deep + `}`
		a := w.call(w.admin, rt.method, path, body)
		if a.status == http.StatusForbidden {
			a = w.call(w.super, rt.method, path, body)
		}
		if a.status == http.StatusNotFound && strings.HasPrefix(rt.path, "/v2/hooks/") {
			continue // there is no such hook
		}
		tried++
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "more than 100 levels deep at line 1") || !strings.Contains(a.body, "fewer levels") {
			t.Errorf("%s %s: %d %.200s", rt.method, path, a.status, a.body)
		}
	}
	if tried < 40 {
		t.Errorf("only %d routes", tried)
	}
}

// TestErrorsOfABodyAreBounded: a body of a thousand mistakes gets a hundred of them, and
// how many more there are.
func TestErrorsOfABodyAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.call(w.admin, put, "/v2/services/broken", `{"name":"broken","dependencies":{"provides":[`+strings.Repeat("{},", 999)+`{}]}}`).want(400)
	errs := a.object()["errors"].([]any)
	if last := errs[len(errs)-1].(map[string]any)["message"].(string); len(errs) != 101 || !strings.HasPrefix(last, "900 more fields are wrong.") {
		t.Errorf("%d errors, the last %q", len(errs), last)
	}
}

// TestRawLogsObeyNobody: a plain text has no characters that a terminal obeys, unless
// one asks for them.
func TestRawLogsObeyNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "colored")
	w.log(id, 1, 1, 1, 1)
	const wild = "\x1b[31mred\x1b[0m \x1b]0;title\x07\ttab\u009b2J\r\x08"
	w.exec(`UPDATE task_logs SET text = $1`, wild)
	operation := "/v2/clusters/" + id + "/operations/1"
	node := w.call(w.user, get, operation+"/tasks?limit=1", "").want(200).array()[0]["nodeId"].(string)
	for path, before := range map[string]string{
		operation + "/tasks/1/log": "", operation + "/log": id + "-001-001/1 ", "/v2/clusters/" + id + "/nodes/" + node + "/log": id + "-001-001/1 ",
	} {
		for query, want := range map[string]string{"": "red \ttab\n", "?ansi=0": "red \ttab\n", "?ansi=1": wild + "\n"} {
			if got := w.call(w.user, get, path+query, "", "Accept", mediaText).want(200).body; got != before+want {
				t.Errorf("%s%s: %q, want %q", path, query, got, before+want)
			}
		}
		w.call(w.user, get, path+"?ansi=x", "", "Accept", mediaText).fails(400, "ansi", "1, or left out")
	}
}
