package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestLegacyBodyIsBounded makes the body of the largest notice that is stored.
func TestLegacyBodyIsBounded(t *testing.T) {
	t.Parallel()
	n := loom.Notice{Legacy: &loom.LegacyNotice{Omitted: 9000}}
	for i := range 1000 {
		n.Legacy.Nodes = append(n.Legacy.Nodes, loom.Node{ID: "n", Number: i, Results: map[string]any{"fact": strings.Repeat("x", 50_000)}})
	}
	body, err := HookBody(n, loom.Delivery{}, "")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Nodes   []json.RawMessage `json:"nodes"`
		Omitted int               `json:"nodesOmitted"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	if len(body) > maxLegacyBody+100_000 || len(v.Nodes) == 0 || len(v.Nodes)+v.Omitted != 10_000 {
		t.Errorf("%d bytes, %d nodes, %d left out", len(body), len(v.Nodes), v.Omitted)
	}
}

// TestStoredNoticesStayReadable reads a notice as it lies in databases: the names
// of the fields of domain types are a stored form.
func TestStoredNoticesStayReadable(t *testing.T) {
	t.Parallel()
	const stored = `{"TenantName":"acme","Cluster":{"ID":42,"Name":"shop","Description":"d","Owner":{"userId":"ana","tenantId":"t1"},"Status":"active",
		"Created":"2026-01-02T03:04:05Z","Expires":"2026-02-02T03:04:05Z","Nodes":3,"Provider":{"name":"lab"},"Template":{"name":"site"},"Services":["web"],
		"Progress":{"Action":"cluster_create","Status":"complete","Total":5,"Done":5}},
		"Operation":{"Ref":{"Cluster":42,"Number":1},"Tenant":"t1","Action":"cluster_create","Status":"complete","Message":"m","RequestedBy":"ana",
		"Created":"2026-01-02T03:04:05Z","Started":"2026-01-02T03:04:06Z","Ended":"2026-01-02T03:05:05Z","OnFailure":"keep","Tasks":{"complete":5}}}`
	var n loom.Notice
	if err := json.Unmarshal([]byte(stored), &n); err != nil {
		t.Fatal(err)
	}
	got, err := HookBody(n, loom.Delivery{ID: 7, Event: loom.HookSuccess, Time: n.Operation.Ended}, "https://loom.example")
	if err != nil {
		t.Fatal(err)
	}
	progress := `{"action":"cluster_create","actionstatus":"complete","stepstotal":5,"stepscompleted":5}`
	for _, part := range []string{
		`{"id":"7","schema":1,"event":"success","time":1767323105000,"tenant":"acme","cluster":{"id":"00000042","name":"shop","description":"d","ownerId":"ana","createTime":1767323045000,"expireTime":1770001445000,"numNodes":3,"status":"active",`,
		`"services":["web"],"progress":` + progress,
		`"operation":{"id":"00000042-001","clusterId":"00000042","number":1,"action":"cluster_create","status":"complete","message":"m","requestedBy":"ana","createTime":1767323045000,"startTime":1767323046000,"endTime":1767323105000,"onFailure":"keep","progress":` + progress + `,"tasks":{"complete":5}}`,
		`"links":{"cluster":"https://loom.example/v2/clusters/00000042"}}`,
	} {
		if !strings.Contains(string(got), part) {
			t.Errorf("no %s\nin %s", part, got)
		}
	}
}

// TestLegacyBodyHasLists: nothing in a list is [], as in the API.
func TestLegacyBodyHasLists(t *testing.T) {
	t.Parallel()
	n := loom.Notice{Legacy: &loom.LegacyNotice{
		Cluster: loom.Cluster{Services: map[string]loom.Service{"web": {Base: loom.Base{Name: "web"}}}},
		Nodes:   []loom.Node{{ID: "n", Services: []string{"web"}}},
	}}
	body, err := HookBody(n, loom.Delivery{}, "")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"name":"web","dependencies":{"provides":[],"conflicts":[],"install":{"requires":[],"uses":[]},"runtime":{"requires":[],"uses":[]}},"provisioner":{"actions":{}},"links":[]}`
	if !strings.Contains(string(body), want) {
		t.Errorf("no %s\nin %s", want, body)
	}
}

// TestHealthNotice: a notice about health has what changed in place of an operation.
func TestHealthNotice(t *testing.T) {
	t.Parallel()
	n := loom.Notice{TenantName: "acme", Cluster: loom.ClusterSummary{ID: 42, Name: "shop"}, Health: &loom.HealthNotice{From: loom.HealthHealthy, To: loom.HealthDegraded,
		Incidents: []loom.Incident{{ID: 3, Cluster: 42, Node: "n", Hostname: "web-1", Trouble: loom.Trouble{Kind: loom.IncidentService, Service: "nginx", Message: "exit status 7"}, Decision: loom.RepairAsked}}}}
	body, err := HookBody(n, loom.Delivery{ID: 7, Event: loom.HookHealth}, "https://loom.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"event":"health"`, `"health":{"from":"healthy","to":"degraded","incidents":[{"id":3,"clusterId":"00000042"`, `"message":"exit status 7","decision":"asked"`, `"links":{"cluster":`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	if strings.Contains(string(body), `"operation"`) {
		t.Errorf("an operation in %s", body)
	}
}
