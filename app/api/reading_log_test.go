package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTaskPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "paged")
	at := "/v2/clusters/" + id + "/operations"
	all := w.call(w.user, get, at+"/1/tasks", "").want(200).array()
	if len(all) != 15 {
		t.Fatalf("%d tasks", len(all))
	}
	for sort, first := range map[string]float64{"number": 1, "-number": 15} {
		var numbers []float64
		for next := at + "/1/tasks?limit=4&sort=" + sort; next != ""; {
			a := w.call(w.user, get, next, "").want(200)
			for _, task := range a.array() {
				numbers = append(numbers, task["number"].(float64))
			}
			next = a.link("next")
		}
		if len(numbers) != 15 || numbers[0] != first || numbers[14] != 16-first {
			t.Errorf("by %s: %v", sort, numbers)
		}
	}
	for _, task := range all { // the list says what the single task says
		one := w.call(w.user, get, fmt.Sprintf("%s/1/tasks/%v", at, task["number"]), "").want(200).object()
		if a, b := fmt.Sprint(task), fmt.Sprint(one); a != b {
			t.Errorf("in the list %s\nalone %s", a, b)
		}
	}
	node := all[0]["nodeId"].(string)
	w.exec(`UPDATE tasks SET status = 'skipped', skipped_by = 'admin', skip_reason = 'seen' WHERE number = 15`)
	for filter, want := range map[string]int{
		"?node=" + node: 5, "?action=create": 3, "?action=create,start": 6, "?service=web": 4, "?service=web,balancer&action=install": 3,
		"?status=ready": 3, "?status=skipped,ready": 4, "?node=nobody": 0, "?service=none": 0, "?limit=2": 2,
	} {
		if rows := w.call(w.user, get, at+"/1/tasks"+filter, "").want(200).array(); len(rows) != want {
			t.Errorf("%s: %d tasks, want %d", filter, len(rows), want)
		}
	}
	skipped := w.call(w.user, get, at+"/1/tasks?status=skipped", "").want(200).array()[0]["skipped"]
	if fmt.Sprint(skipped) != "map[by:admin reason:seen]" {
		t.Errorf("skipped %v", skipped)
	}
	w.call(w.user, get, at+"/1/tasks?status=done", "").fails(400, "status", "complete, skipped")
	w.call(w.user, get, at+"/1/tasks?action=fly", "").fails(400, "action", "confirm")
	w.call(w.user, get, at+"/1/tasks?sort=node", "").fails(400, "sort", "-number")
	next := w.call(w.user, get, at+"/1/tasks?limit=2&action=create", "").link("next")
	w.call(w.user, get, strings.Replace(next, "create", "start", 1), "").fails(400, "after", "filter")
	w.call(w.user, get, at+"/7/tasks", "").fails(404, "", "no operation 7")

	w.finish(id)
	w.call(w.user, del, "/v2/clusters/"+id, "").want(200)
	for filter, want := range map[string]int{"": 2, "?status=complete": 1, "?action=cluster_delete,cluster_create": 2, "?action=cluster_delete": 1, "?limit=1": 1} {
		rows := w.call(w.user, get, at+filter, "").want(200).array()
		if len(rows) != want || filter == "" && (rows[0]["number"] != 2.0 || rows[0]["progress"] == nil) {
			t.Errorf("%s: operations %v", filter, rows)
		}
	}
	last := w.call(w.user, get, at+"?limit=1", "").link("next")
	if rows := w.call(w.user, get, last, "").want(200); rows.array()[0]["number"] != 1.0 || rows.link("prev") == "" || rows.link("next") != "" {
		t.Errorf("the second page is %s", rows.body)
	}
	w.call(w.user, get, at+"?action=fly", "").fails(400, "action", "cluster_expand")
	w.call(w.user, get, at+"?status=fly", "").fails(400, "status", "rolled_back")
}

// TestLogsOfSeveralTasks reads the log of an operation and of a node.
func TestLogsOfSeveralTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "logged")
	at := "/v2/clusters/" + id + "/operations/1/log"
	tasks := w.call(w.user, get, "/v2/clusters/"+id+"/operations/1/tasks?limit=2", "").want(200).array()
	ofNode := "/v2/clusters/" + id + "/nodes/" + tasks[0]["nodeId"].(string) + "/log"
	s, n := w.follow(w.user, at), w.follow(w.user, ofNode)
	w.log(id, 1, 1, 1, 5)
	w.log(id, 2, 1, 1, 5)
	w.log(id, 1, 2, 1, 2)
	var cursor string
	text := ""
	for i := range 12 {
		e := s.next("line")
		var line struct {
			Seq, Attempt int
			Task, Text   string
		}
		w.must(json.Unmarshal([]byte(e.data), &line))
		text += fmt.Sprintf("%s/%d %s\n", line.Task, line.Attempt, line.Text)
		if i == 6 {
			cursor = e.id
		}
	}
	if !strings.HasPrefix(text, id+"-001-001/1 line 1 of try 1\n") || strings.Count(text, id+"-001-002/1 ") != 5 || !strings.HasSuffix(text, id+"-001-001/2 line 2 of try 2\n") {
		t.Errorf("followed %s", text)
	}
	if raw := w.call(w.user, get, at, "", "Accept", "text/plain").want(200); raw.body != text {
		t.Errorf("raw %q", raw.body)
	}
	paged := ""
	for next := at + "?limit=5"; next != ""; {
		a := w.call(w.user, get, next, "").want(200)
		for _, l := range a.array() {
			paged += fmt.Sprintf("%v/%v %v\n", l["task"], l["attempt"], l["text"])
		}
		if next = a.link("next"); len(a.array()) == 0 {
			break
		}
	}
	if paged != text {
		t.Errorf("by pages %q", paged)
	}
	// Going on behind a line gives exactly the rest.
	rest := w.follow(w.user, at, "Last-Event-ID", cursor)
	for range 5 {
		rest.next("line")
	}
	for query, want := range map[string]int{"?level=error": 2, "?attempt=2": 2, "?after=" + cursor: 5, "?level=warn": 0} {
		if rows := w.call(w.user, get, at+query, "").want(200).array(); len(rows) != want {
			t.Errorf("%s: %d lines, want %d", query, len(rows), want)
		}
	}
	if rows := w.call(w.user, get, ofNode, "").want(200).array(); len(rows) != 7 {
		t.Errorf("%d lines of a node", len(rows))
	}
	for query, field := range map[string]string{"?after=7": "after", "?level=loud": "level", "?limit=0": "limit", "?attempt=x": "attempt", "?x=1": "x"} {
		w.call(w.user, get, at+query, "").fails(400, field, "")
	}
	w.call(w.user, get, at+"?after=x", "", "Accept", mediaStream).fails(400, "after", "cursor")
	w.call(w.user, get, strings.Replace(at, "operations/1", "operations/9", 1), "").fails(404, "", "no operation 9")
	w.call(w.user, get, "/v2/clusters/"+id+"/nodes/nobody/log", "").fails(404, "", "no node")
	for _, token := range []string{w.second, w.foreign, w.super} {
		for _, path := range []string{at, ofNode} {
			w.call(token, get, path, "").fails(404, "", "no cluster")
			w.call(token, get, path, "", "Accept", mediaStream).want(404)
		}
	}
	// The last lines come before the end, and then nothing is left.
	w.log(id, 2, 1, 6, 6)
	s.next("line")
	rest.next("line")
	w.finish(id)
	w.exec(`INSERT INTO events (tenant_id, topic) SELECT tenant_id, 'op:' || loom_pad(id) || '/1' FROM clusters`)
	w.exec(`INSERT INTO events (tenant_id, topic) SELECT tenant_id, 'cluster:' || loom_pad(id) FROM clusters`)
	s.end("done")
	rest.end("done")
	n.end("done")
	done := w.call(w.user, get, at, "").want(200)
	if len(done.array()) != 13 || done.link("next") != "" {
		t.Errorf("in the end %d lines, next %q", len(done.array()), done.link("next"))
	}
}

func TestSeveralLogLosesRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "logged")
	s := w.follow(w.user, "/v2/clusters/"+id+"/operations/1/log")
	w.exec(`UPDATE clusters SET owner_id = 'ben'`)
	s.end("forbidden")
}
