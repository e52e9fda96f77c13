package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFleetPreviewOverREST: an administrator asks what an entry that is not saved would do to each
// cluster, as JSON and as Markdown; users may not.
func TestFleetPreviewOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish(w.cluster(w.user, "shop"))
	const path = "/v2/fleet-previews"
	const body = `{"kind":"update","entries":[{"kind":"services","entry":{"name":"web","description":"Changed."}}]}`
	w.call(w.user, post, path, body).want(403)
	var p struct {
		Clusters int
		Entries  []struct{ Version int }
		Groups   []struct {
			Effect   string
			Clusters []struct{ ID, Name string }
		}
	}
	answer := w.call(w.admin, post, path, body).want(200).body
	if err := json.Unmarshal([]byte(answer), &p); err != nil || p.Clusters != 1 || len(p.Groups) != 1 || p.Groups[0].Clusters[0].Name != "shop" || p.Entries[0].Version != 2 {
		t.Fatalf("%v %s", err, answer)
	}
	text := w.call(w.admin, post, path, body, "Accept", "text/markdown").want(200).body
	for _, want := range []string{"### Effect on 1 cluster", "- service web v2", "1: shop"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Markdown lacks %q: %s", want, text)
		}
	}
	w.call(w.admin, post, path, `{"kind":"update","entries":[{"kind":"services","entry":{"name":"a b"}}]}`).fails(400, "entries[0].entry.name", "")
	const script = "/v2/plugins/automatortypes/shell/scripts/hello.sh"
	w.call(w.admin, post, script, "echo hello").want(200)
	w.call(w.admin, post, script+"/versions/1/stage", "").want(200)
	answer = w.call(w.admin, post, path, `{"kind":"update","resources":true}`).want(200).body
	if !strings.Contains(answer, `"resources":[{"plugin":"shell","type":"scripts","name":"hello.sh","version":1}]`) || !strings.Contains(answer, `"unaffected":1`) {
		t.Error(answer)
	}
	w.call(w.admin, post, path, `{"kind":"restart","resources":true}`).fails(400, "resources", "update")
	w.call(w.admin, post, path, `{"kind":"delete"}`).fails(400, "kind", "update")
}
