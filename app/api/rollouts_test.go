package api

import (
	"encoding/json"
	"fmt"
	"testing"
)

type rolloutAnswer struct {
	Number, Wave  int
	Hash, Status  string
	NodesReplaced int
	Waves         []struct {
		Clusters int
		Statuses map[string]int
	}
	Settings struct {
		Concurrency, Pause int
		Changed            string
	}
}

func (a reply) rollout(t *testing.T) (r rolloutAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &r); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return r
}

// TestRolloutOverREST: an administrator makes a rollout, reads it, starts it by its hash, stops,
// resumes and aborts it. Users may do none of that.
func TestRolloutOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish(w.cluster(w.user, "shop"))
	w.finish(w.cluster(w.user, "blog"))
	const path = "/v2/rollouts"
	const body = `{"kind":"restart","settings":{"pause":0},"waves":[{"count":1},{"rest":true}]}`
	w.call(w.user, post, path, body).want(403)
	w.call(w.user, get, path, "").want(403)
	made := w.call(w.admin, post, path, body).want(200).rollout(t)
	if made.Status != "ready" || len(made.Waves) != 2 || made.Waves[0].Statuses["waiting"] != 1 || made.Settings.Concurrency != 5 || made.Settings.Pause != 0 || made.Settings.Changed != "skip" {
		t.Fatalf("%+v", made)
	}
	one := fmt.Sprintf("%s/%d", path, made.Number)
	w.call(w.user, get, one, "").want(403)
	if read := w.call(w.admin, get, one, "").want(200).rollout(t); read.Hash != made.Hash {
		t.Errorf("%+v", read)
	}
	w.call(w.admin, post, path, body).fails(409, "", "Rollout 1 has blog and shop.")
	w.call(w.admin, post, one+"/start", `{}`).fails(400, "hash", "")
	w.call(w.admin, post, one+"/start", `{"hash":"x"}`).fails(409, "", "hash")
	if r := w.call(w.admin, post, one+"/start", fmt.Sprintf(`{"hash":%q}`, made.Hash)).want(200).rollout(t); r.Status != "running" || r.Wave != 1 {
		t.Errorf("%+v", r)
	}
	for _, step := range []struct{ word, status string }{{"stop", "stopped"}, {"resume", "running"}, {"abort", "aborted"}} {
		if r := w.call(w.admin, post, one+"/"+step.word, "").want(200).rollout(t); r.Status != step.status {
			t.Errorf("after %s it is %s", step.word, r.Status)
		}
	}
	w.call(w.admin, post, one+"/continue", "").fails(409, "", "aborted")
	var clusters []struct{ ID, Name, Status, Note string }
	answer := w.call(w.admin, get, one+"/clusters?wave=1&status=skipped&effect=restart,in_place", "").want(200).body
	if err := json.Unmarshal([]byte(answer), &clusters); err != nil || len(clusters) != 1 || clusters[0].Note != "The rollout was aborted." {
		t.Errorf("%v %s", err, answer)
	}
	if list := w.call(w.admin, get, path+"?status=aborted", "").want(200).body; list[0] != '[' || len(list) < 10 {
		t.Error(list)
	}
	w.call(w.admin, get, one+"/clusters?wave=x", "").fails(400, "wave", "")
	w.call(w.admin, get, path+"?status=x", "").fails(400, "status", "")
	w.call(w.admin, get, path+"/x", "").want(404)
	w.call(w.admin, get, path+"/99", "").want(404)
	w.call(w.admin, post, path, `{"kind":"restart","waves":[{"clusters":["x"]}]}`).fails(400, "waves[0].clusters", "")
	w.call(w.admin, post, path, `{"kind":"restart","settings":{"windows":[{"from":"9","to":"10:00"}]}}`).fails(400, "settings.windows[0].from", "")
	w.call(w.admin, post, path, `{"kind":"rollback"}`).fails(400, "request.rollout", "")
}
