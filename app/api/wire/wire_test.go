package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

func TestPlanStages(t *testing.T) {
	t.Parallel()
	ref := loom.OperationRef{Cluster: 42, Number: 3}
	plan := loom.Plan{Action: loom.AddServices, Tasks: []loom.PlanTask{
		{Number: 1, Node: "a", Action: loom.ActionBootstrap, Level: 1},
		{Number: 2, Node: "a", Action: loom.ActionInstall, Service: "web", Level: 2},
		{Number: 3, Node: "b", Action: loom.ActionBootstrap, Level: 1},
		{Number: 4, Node: "b", Action: loom.ActionStart, Service: "web", Level: 5}, // levels may have gaps
	}}
	state := func(done ...int) map[int]loom.Task {
		tasks := map[int]loom.Task{}
		for _, p := range plan.Tasks {
			tasks[p.Number] = loom.Task{Status: loom.TaskReady}
		}
		for _, n := range done {
			tasks[n] = loom.Task{Status: loom.TaskComplete}
		}
		return tasks
	}
	for _, c := range []struct {
		done []int
		want int
	}{{nil, 0}, {[]int{1}, 0}, {[]int{1, 3}, 1}, {[]int{1, 2, 3}, 2}, {[]int{1, 2, 3, 4}, 2}, {[]int{2, 4}, 0}} {
		if got := NewPlan(ref, plan, state(c.done...)); got.CurrentStage != c.want {
			t.Errorf("done %v: stage %d, want %d", c.done, got.CurrentStage, c.want)
		}
	}
	skipped := state(1, 3)
	skipped[2] = loom.Task{Status: loom.TaskSkipped}
	if got := NewPlan(ref, plan, skipped); got.CurrentStage != 2 {
		t.Errorf("a skipped task keeps stage %d", got.CurrentStage)
	}
	body, err := json.Marshal(NewPlan(ref, plan, state()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"00000042-003","clusterId":"00000042","action":"ADD_SERVICES","currentStage":0,"stages":[` +
		`[{"id":"00000042-003-001","taskName":"BOOTSTRAP","nodeId":"a","service":""},{"id":"00000042-003-003","taskName":"BOOTSTRAP","nodeId":"b","service":""}],` +
		`[{"id":"00000042-003-002","taskName":"INSTALL","nodeId":"a","service":"web"}],[{"id":"00000042-003-004","taskName":"START","nodeId":"b","service":"web"}]]}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if empty := NewPlan(ref, loom.Plan{Action: loom.ClusterDelete}, nil); empty.CurrentStage != 0 || len(empty.Stages) != 0 {
		t.Errorf("an empty plan is %+v", empty)
	}
}

func TestNodeHistory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 3000)
	n := NewNode(loom.Node{ID: "x", Cluster: 7, Services: []string{"gone"}, Actions: []loom.NodeAction{
		{Action: loom.ActionBootstrap, Started: time.UnixMilli(5), Status: "in_progress", Stdout: "not yet"},
		{Action: loom.ActionStart, Service: "web", Started: time.UnixMilli(6), Ended: time.UnixMilli(7), Status: "failed", Stdout: "short", Stderr: long},
	}}, map[string]loom.Service{"web": {Base: loom.Base{Name: "web"}}}, nil)
	running, failed := n.Actions[0], n.Actions[1]
	if running.Action != "BOOTSTRAP" || running.Submitted != 5 || running.Changed != 0 || running.Stdout != "" {
		t.Errorf("running %+v", running)
	}
	if failed.Stdout != "short" || failed.Stderr != "[snipped]"+strings.Repeat("é", 2048) {
		t.Errorf("failed: %q and %d bytes", failed.Stdout, len(failed.Stderr))
	}
	body, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"links":[]`, `"provisionerResults":{}`, `"ipaddresses":{}`, `"sshuser":"root"`, `"automators":[]`, `"serviceStates":{}`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	if strings.Contains(string(body), "null") {
		t.Errorf("the wire has no null: %s", body)
	}
}

func TestStatusWords(t *testing.T) {
	t.Parallel()
	for status, want := range map[loom.OperationStatus]string{
		"": "not_submitted", loom.OperationNotSubmitted: "not_submitted", loom.OperationRunning: "running", loom.OperationRollingBack: "running",
		loom.OperationPaused: "paused", loom.OperationComplete: "complete", loom.OperationFailed: "failed", loom.OperationFailing: "failed",
		loom.OperationAborted: "failed", loom.OperationRolledBack: "failed",
	} {
		if got := NewProgress(loom.Progress{Status: status}).ActionStatus; got != want {
			t.Errorf("%q is %q on the wire, want %q", status, got, want)
		}
	}
	why := Actions(map[loom.ChangeKind]string{loom.ChangeDelete: "", loom.ChangeSync: "No."})
	if body, _ := json.Marshal(why); string(body) != `{"delete":null,"sync":"No."}` {
		t.Errorf("actions %s", body)
	}
}

func TestReadCreate(t *testing.T) {
	t.Parallel()
	in, err := ReadCreate([]byte(`{"name":5,"clusterTemplate":"t","numMachines":"3","services":["a","a",null],"config":{"n":1.0},"labels":{"a":true},"unknown":1,"provider":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.Name != "5" || in.Machines != 3 || len(in.Services) != 1 || in.LeaseMillis != loom.TemplateLease || in.Labels["a"] != "true" || in.Config["n"] != json.Number("1.0") {
		t.Errorf("read %+v", in)
	}
	if in, err := ReadCreate([]byte(`{"name":"x","clusterTemplate":"t","numMachines":1,"initialLeaseDuration":"0"}`)); err != nil || in.LeaseMillis != 0 {
		t.Errorf("a lease of 0 is %d, %v", in.LeaseMillis, err)
	}
	_, err = ReadCreate([]byte(`{"numMachines":"x","services":{}}`))
	var e *loom.Error
	if !errors.As(err, &e) || len(e.Fields) != 4 { // both of wrong type, name and template missing
		t.Errorf("fields %v", err)
	}
}

func TestReadExpiry(t *testing.T) {
	t.Parallel()
	if at, err := ReadExpiry([]byte(`{"expireTime":"1000"}`)); err != nil || at.UnixMilli() != 1000 {
		t.Errorf("%v, %v", at, err)
	}
	if at, err := ReadExpiry([]byte(`{"expireTime":null}`)); err != nil || !at.IsZero() {
		t.Errorf("never is %v, %v", at, err)
	}
	for _, body := range []string{``, `null`, `{}`, `{"expireTime":"soon"}`, `{"expireTime":1.5}`} {
		if _, err := ReadExpiry([]byte(body)); !errors.Is(err, loom.Invalid) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestOptionalBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "  \n", "null", "{}", `{"providerFields":null}`} {
		if fields, err := ReadOperation(loom.StopServices, []byte(body)); err != nil || fields != nil {
			t.Errorf("%q: %v, %v", body, fields, err)
		}
	}
	if fields, err := ReadOperation(loom.StopServices, []byte(`{"providerFields":{"a":5},"onFailure":"keep"}`)); err != nil || fields["a"] != "5" {
		t.Errorf("%v, %v", fields, err)
	}
}

// FuzzRequests reads anything as each request: an error is Invalid, and nothing
// panics.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `{"kind":"create","request":{"name":"x"}}`, `{"kind":"delete","clusterId":42}`, `{"tenant":{"name":1}}`,
		`{"name":"t","scopes":["read"],"expires":9e9}`, `{"expireTime":1e3}`, `{"labels":[],"protected":"true"}`, "{\"name\":\"\x00\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, create := ReadCreate(body)
		_, fields := ReadOperation("", body)
		_, preview := ReadPreview(body)
		_, apply := ReadApply(body, "id")
		_, expiry := ReadExpiry(body)
		_, edit := ReadEdit(body)
		_, token := ReadToken(body)
		_, tenant := ReadTenant(body)
		for _, err := range []error{create, fields, preview, apply, expiry, edit, token, tenant} {
			if err != nil && !errors.Is(err, loom.Invalid) {
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}
