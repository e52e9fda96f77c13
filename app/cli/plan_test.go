package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// serviceBody is a catalog body with shell actions.
func serviceBody(name, actions string, more map[string]any) map[string]any {
	all := map[string]any{}
	for _, a := range strings.Fields(actions) {
		all[a] = map[string]any{"type": "shell", "fields": map[string]any{}}
	}
	b := map[string]any{"name": name, "provisioner": map[string]any{"actions": all}, "unknown": true}
	for key, v := range more {
		b[key] = v
	}
	return b
}

func needs(install, runtime string) map[string]any {
	return map[string]any{"dependencies": map[string]any{
		"install": map[string]any{"requires": strings.Fields(install)}, "runtime": map[string]any{"requires": strings.Fields(runtime)}}}
}

// exampleOfPlanner is a cluster of three services on two nodes.
func exampleOfPlanner(action string, more map[string]any) string {
	q := map[string]any{
		"action": action, "unknown": []any{},
		"services": []any{
			serviceBody("base", "install configure", nil),
			serviceBody("db", "install configure start stop", needs("base", "")),
			serviceBody("app", "install initialize start", needs("base", "db"))},
		"nodes":            []any{map[string]any{"id": "n1", "services": []any{"base", "db"}}, map[string]any{"id": "n2", "services": []any{"base", "app"}}},
		"planned_services": nil, "planned_nodes": nil,
	}
	for key, v := range more {
		q[key] = v
	}
	text, err := json.Marshal(q)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// planText runs the command on a text and gives answer, exit status and message.
func planText(t *testing.T, input string, args ...string) (string, int, string) {
	t.Helper()
	return answerOf(input, append([]string{"plan"}, args...)...)
}

// answerOf runs a subcommand on a text and returns answer, exit status and messages.
func answerOf(input string, args ...string) (string, int, string) {
	var out, errOut bytes.Buffer
	code := run(args, nil, strings.NewReader(input), &out, &errOut)
	return out.String(), code, errOut.String()
}

func planned(t *testing.T, input string, args ...string) planYes {
	t.Helper()
	text, code, message := planText(t, input, args...)
	if code != 0 {
		t.Fatalf("exit status %d: %s%s", code, text, message)
	}
	var answer planYes
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// named returns the edges of a contracted answer as texts.
func (a *planYes) named() []string {
	name := func(id int) string {
		task := a.Tasks[id-1]
		return strings.TrimSpace(strings.Join([]string{task.Node, task.Action, task.Service}, " "))
	}
	var all []string
	for _, e := range a.Edges {
		all = append(all, name(e[0])+" > "+name(e[1]))
	}
	slices.Sort(all)
	return all
}

func TestPlanExample(t *testing.T) {
	t.Parallel()
	answer := planned(t, exampleOfPlanner("CLUSTER_CREATE", nil), "--contract")
	var want []string
	for _, n := range []string{"n1", "n2"} {
		want = append(want, n+" CREATE > "+n+" CONFIRM", n+" CONFIRM > "+n+" BOOTSTRAP", n+" BOOTSTRAP > "+n+" INSTALL base", n+" INSTALL base > "+n+" CONFIGURE base",
			n+" INSTALL base > n1 INSTALL db", n+" INSTALL base > n2 INSTALL app")
	}
	want = append(want, "n1 BOOTSTRAP > n1 INSTALL db", "n1 INSTALL db > n1 CONFIGURE db", "n1 CONFIGURE db > n1 START db",
		"n2 BOOTSTRAP > n2 INSTALL app", "n2 INSTALL app > n2 INITIALIZE app", "n2 INITIALIZE app > n2 START app",
		"n1 START db > n2 INITIALIZE app", "n1 START db > n2 START app")
	slices.Sort(want)
	if got := answer.named(); !slices.Equal(got, want) {
		t.Errorf("got edges\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	levels := map[string]int{}
	for _, task := range answer.Tasks {
		levels[task.Action+" "+task.Service] = task.Level
	}
	if got := fmt.Sprint(levels); got != "map[BOOTSTRAP :3 CONFIGURE base:5 CONFIGURE db:6 CONFIRM :2 CREATE :1 INITIALIZE app:8 INSTALL app:5 INSTALL base:4 INSTALL db:5 START app:9 START db:7]" {
		t.Errorf("levels are %s", got)
	}
	if len(answer.Gates) != 0 || len(answer.Critical) != 9 {
		t.Errorf("gates %v, critical path %v", answer.Gates, answer.Critical)
	}
	gated := planned(t, exampleOfPlanner("cluster_create", nil))
	if len(gated.Gates) != 3 || gated.Gates[0].ID != 17 || !gated.Gates[2].End {
		t.Errorf("gates are %v", gated.Gates)
	}
	waiting := planned(t, exampleOfPlanner("cluster_create", map[string]any{"addresses": true}), "--contract")
	if extra := len(waiting.Edges) - len(answer.Edges); extra != 8 {
		t.Errorf("waiting for addresses adds %d edges, want 8: 2 CONFIRM before 4 services", extra)
	}
}

func TestPlanScopes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action   string
		services any
		nodes    any
		want     string
	}{
		{"stop_services", []string{"db"}, nil, "n1 STOP db"},
		{"RESTART_SERVICES", []string{"db"}, nil, "n1 STOP db, n1 START db, n2 START app"},
		{"start_services", []string{"app"}, nil, "n1 START db, n2 START app"},
		{"start_services", []string{}, nil, ""},
		{"cluster_delete", nil, []string{"n2"}, "n2 DELETE"},
		{"cluster_configure", []string{"db"}, []string{"n1"}, "n1 BOOTSTRAP, n1 CONFIGURE db"},
		{"add_services", []string{"app"}, []string{"n2"}, "n1 START db, n2 BOOTSTRAP, n2 INSTALL app, n2 INITIALIZE app, n2 START app"},
	} {
		answer := planned(t, exampleOfPlanner(test.action, map[string]any{"planned_services": test.services, "planned_nodes": test.nodes}))
		var got []string
		for _, task := range answer.Tasks {
			got = append(got, strings.TrimSpace(task.Node+" "+task.Action+" "+task.Service))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s of %v: got %q, want %q", test.action, test.services, strings.Join(got, ", "), test.want)
		}
	}
}

func changeInput(t *testing.T, more map[string]any) string {
	t.Helper()
	q := map[string]any{
		"services": []any{
			serviceBody("web", "install configure start stop", nil),
			serviceBody("lb", "install configure start stop", map[string]any{"follows": []string{"web"}})},
		"before": map[string]any{"nodes": []any{map[string]any{"id": "n1", "services": []any{"lb"}}, map[string]any{"id": "n2", "services": []any{"web"}}, map[string]any{"id": "n3", "services": []any{"web"}}}},
		"after":  map[string]any{"nodes": []any{map[string]any{"id": "n1", "services": []any{"lb"}}, map[string]any{"id": "n2", "services": []any{"web"}}, map[string]any{"id": "n3", "services": []any{"web"}}}},
	}
	for key, v := range more {
		q[key] = v
	}
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPlanChange(t *testing.T) {
	t.Parallel()
	list := func(ids ...string) map[string]any {
		var nodes []any
		for _, id := range ids {
			service := "web"
			if id == "n1" {
				service = "lb"
			}
			nodes = append(nodes, map[string]any{"id": id, "services": []any{service}})
		}
		return map[string]any{"nodes": nodes}
	}
	newer := list("n1", "n2", "n3")
	newer["services"] = []any{serviceBody("web", "install configure start stop", map[string]any{"version": 2})}
	for _, test := range []struct {
		name   string
		more   map[string]any
		action loom.ClusterAction
		want   string
	}{
		{"expand", map[string]any{"after": list("n1", "n2", "n3", "n4")}, loom.ClusterExpand,
			"n4 CREATE, n4 CONFIRM, n4 BOOTSTRAP, n4 INSTALL web, n4 CONFIGURE web, n4 START web, n1 CONFIGURE lb"},
		{"shrink", map[string]any{"after": list("n1", "n2")}, loom.ClusterShrink, "n1 CONFIGURE lb, n3 STOP web, n3 DELETE"},
		{"upgrade", map[string]any{"after": newer}, loom.ClusterUpgrade,
			"n2 STOP web, n2 INSTALL web, n2 CONFIGURE web, n2 START web, n3 STOP web, n3 INSTALL web, n3 CONFIGURE web, n3 START web"},
		{"create", map[string]any{"before": list(), "after": list("n2")}, loom.ClusterCreate, "n2 CREATE, n2 CONFIRM, n2 BOOTSTRAP, n2 INSTALL web, n2 CONFIGURE web, n2 START web"},
		{"delete", map[string]any{"after": list()}, loom.ClusterDelete, "n1 DELETE, n2 DELETE, n3 DELETE"},
		{"nothing", map[string]any{"action": "ROLLBACK"}, loom.Rollback, ""},
	} {
		answer := planned(t, changeInput(t, test.more))
		var got []string
		for _, task := range answer.Tasks {
			got = append(got, strings.TrimSpace(task.Node+" "+task.Action+" "+task.Service))
		}
		if strings.Join(got, ", ") != test.want || answer.Action != test.action {
			t.Errorf("%s: got %s: %q, want %q", test.name, answer.Action, strings.Join(got, ", "), test.want)
		}
	}
	text, code, _ := planText(t, changeInput(t, map[string]any{"after": newer, "batch": 2}))
	if code != exitNo || !strings.Contains(text, `"error":"REFUSED"`) || !strings.Contains(text, "takes down 2 of the 2 nodes with “web”") {
		t.Errorf("a batch of all gives %d, %s", code, text)
	}
}

func TestPlanRefusals(t *testing.T) {
	t.Parallel()
	circle := map[string]any{"services": []any{serviceBody("base", "install", needs("app", "")), serviceBody("db", "install", needs("base", "")), serviceBody("app", "install", needs("db", ""))}}
	text, code, _ := planText(t, exampleOfPlanner("cluster_create", circle))
	var no planNo
	if err := json.Unmarshal([]byte(text), &no); err != nil || code != exitNo || no.Error != "CYCLE" {
		t.Fatalf("a circle gives %d, %s, %v", code, text, err)
	}
	slices.Sort(no.Services)
	if !slices.Equal(no.Services, []string{"app", "base", "db"}) {
		t.Errorf("the circle is %v", no.Services)
	}
	if text, code, _ := planText(t, exampleOfPlanner("start_services", map[string]any{"planned_services": []string{"ghost"}})); code != exitNo || !strings.Contains(text, "“ghost”") {
		t.Errorf("an unknown service gives %d, %s", code, text)
	}
	for _, test := range []struct {
		input string
		says  []string
	}{
		{"", []string{"line 1, column 1"}},
		{"[1]", []string{"line 1, column 1"}},
		{"{\"action\": \"cluster_create\",\n \"nodes\": [}", []string{"line 2, column 12"}},
		{"{\"action\":\n \"dance\"}", []string{"action: line 2, column 2", "dance", "cluster_create"}},
		{`{}`, []string{"action: line 1, column 1"}},
		{`{"action": "cluster_expand"}`, []string{"line 1, column 12", "before and after"}},
		{"{\"action\": \"cluster_create\",\n\"nodes\": [{\"services\": []}]}", []string{"nodes[0].id: line 2, column 11"}},
		{`{"action": "cluster_create", "nodes": [{"id": "a", "services": ["x"]}]}`, []string{"nodes: line 1, column 39", "“x”"}},
		{`{"action": "cluster_create", "nodes": [{"id": "a"}, {"id": "a"}]}`, []string{"nodes[1].id: line 1, column 60", "twice"}},
		{`{"action": "cluster_create", "services": [{"name": "a", "provisioner": 7}]}`, []string{"services[0].provisioner: line 1, column 72"}},
		{`{"before": {"nodes": 7}, "after": {}}`, []string{"before.nodes: line 1, column 22"}},
	} {
		text, code, message := planText(t, test.input)
		for _, says := range test.says {
			if code != exitUsage || text != "" || !strings.Contains(message, says) {
				t.Errorf("%s: exit status %d, answer %q, message %q; want 2 and %q", test.input, code, text, message, says)
			}
		}
	}
	if _, code, message := planText(t, "{}", "--format", "png"); code != exitUsage || !strings.Contains(message, `must be one of "json","dot","text"`) {
		t.Errorf("an unknown format: exit status %d, %s", code, message)
	}
}

func TestPlanFormatsAndDurations(t *testing.T) {
	t.Parallel()
	input := exampleOfPlanner("cluster_create", map[string]any{"workers": 9, "durations": []any{map[string]any{"action": "CREATE", "seconds": 60}, map[string]any{"service": "db", "action": "start", "seconds": "2.5"}}})
	if answer := planned(t, input); answer.Expected == nil || *answer.Expected != 62.5 {
		t.Errorf("expected are %v seconds, want 62.5", answer.Expected)
	}
	if text, _, _ := planText(t, input, "--format", "dot"); !strings.HasPrefix(text, "digraph plan {") {
		t.Errorf("dot is %q", text)
	}
	if text, _, _ := planText(t, input, "--format=text"); !strings.HasPrefix(text, "cluster_create: 16 tasks, 9 levels") {
		t.Errorf("text is %q", text)
	}
	file := filepath.Join(t.TempDir(), "q.json")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile, _, _ := planText(t, "", file)
	if fromInput, _, _ := planText(t, input); fromFile != fromInput || fromFile == "" {
		t.Error("a file gives another answer than standard input")
	}
}

// FuzzPlanCommand passes anything to the command: it answers, says no or says where
// the mistake is.
func FuzzPlanCommand(f *testing.F) {
	f.Add(exampleOfPlanner("cluster_create", nil))
	f.Add(exampleOfPlanner("restart_services", map[string]any{"planned_services": []string{"db"}}))
	f.Add(`{"before":{"nodes":[{"id":"a","services":["s"],"nodenum":1000}]},"after":{"nodes":[{"id":"a","incarnation":2,"services":["s"]}]},"services":[{"name":"s","follows":["s"],"provisioner":{"actions":{"start":{"type":"x"}}}}],"batch":-1,"minHealthy":"2"}`)
	f.Add(`{"action": 7, "nodes": [null, {"id": null}]}`)
	f.Fuzz(func(t *testing.T, input string) {
		for _, args := range [][]string{nil, {"--contract"}, {"--format=text"}} {
			text, code, message := planText(t, input, args...)
			switch {
			case code == exitUsage && text == "" && strings.Contains(message, "line "):
			case (code == 0 || code == exitNo) && args == nil && json.Valid([]byte(text)):
			case (code == 0 || code == exitNo) && args != nil && text != "":
			default:
				t.Errorf("%q %v: exit status %d, answer %q, message %q", input, args, code, text, message)
			}
		}
	})
}
