package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// exampleProblem is a problem with a layout; edit changes its JSON.
func exampleProblem(t testing.TB, edit func(p map[string]any)) string {
	t.Helper()
	p := map[string]any{}
	if err := json.Unmarshal([]byte(`{
		"template": {"name": "shop", "unknown": 1, "defaults": {"services": ["db", "lb", "web"], "hardwaretype": ""},
			"constraints": {"size": {"max": "9"}, "layout": {"cantcoexist": [["db", "web"]]},
				"services": {"db": {"hardwaretypes": ["large"], "quantities": {"min": 1, "max": "1"}}, "lb": {"quantities": {"max": 1}}}}},
		"services": [{"name": "db"}, {"name": "lb"}, {"name": "web"}, {"name": "cache"}, {"name": "base"}],
		"hardwaretypes": [{"name": "large"}, {"name": "small", "providermap": {"lab": {"flavor": "s"}}}, {"name": "huge", "providermap": {"other": {"flavor": "h"}}}],
		"imagetypes": [{"name": "deb", "providermap": {}}],
		"provider": {"name": "lab", "providertype": "local"},
		"request": {"numMachines": 4}, "limit_ms": 20000}`), &p); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(p)
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func at(p map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		p = p[k].(map[string]any)
	}
	return p
}

func node(id string, services ...string) map[string]any {
	return map[string]any{"id": id, "hardwaretype": "large", "imagetype": "deb", "services": services}
}

// clusterOfA is the answer to example A.
func clusterOfA(p map[string]any) {
	p["nodes"] = []any{node("n10", "web"), node("n9", "db", "lb"), node("n11", "web"), node("n12", "web")}
	delete(p, "request")
}

// solveText runs the command on a text and gives answer and exit status.
func solveText(t *testing.T, input string, args ...string) (string, int, string) {
	t.Helper()
	return answerOf(input, append([]string{"solve"}, args...)...)
}

func TestSolveYes(t *testing.T) {
	t.Parallel()
	got, code, _ := solveText(t, exampleProblem(t, nil))
	want := `{"solvable":true,"layouts":[{"count":1,"hardwaretype":"large","imagetype":"deb","services":["db","lb"]},{"count":3,"hardwaretype":"large","imagetype":"deb","services":["web"]}],` +
		`"nodes":[{"id":"1000","hardwaretype":"large","imagetype":"deb","services":["db","lb"]},{"id":"1001","hardwaretype":"large","imagetype":"deb","services":["web"]},` +
		`{"id":"1002","hardwaretype":"large","imagetype":"deb","services":["web"]},{"id":"1003","hardwaretype":"large","imagetype":"deb","services":["web"]}],"range":{"min":2,"max":null}}` + "\n"
	if code != 0 || got != want {
		t.Errorf("exit status %d\ngot  %s\nwant %s", code, got, want)
	}
	file := filepath.Join(t.TempDir(), "problem.json")
	if err := os.WriteFile(file, []byte(exampleProblem(t, nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, code, _ := solveText(t, "", file); code != 0 || again != want {
		t.Errorf("from a file: exit status %d, %s", code, again)
	}
	// Nodes keep the order of the question; cache goes to the lowest free number.
	got, code, _ = solveText(t, exampleProblem(t, func(p map[string]any) {
		clusterOfA(p)
		p["add"] = []string{"cache"}
		at(p, "template", "constraints", "services")["cache"] = map[string]any{"quantities": map[string]any{"max": 2}}
	}))
	var yes solveYes
	if err := json.Unmarshal([]byte(got), &yes); err != nil || code != 0 {
		t.Fatal(got, err)
	}
	var nodes []string
	for _, n := range yes.Nodes {
		nodes = append(nodes, n.ID+"="+strings.Join(n.Services, ","))
	}
	if text := strings.Join(nodes, " "); text != "n10=cache,web n9=cache,db,lb n11=web n12=web" || len(yes.Layouts) != 3 {
		t.Errorf("got %s in %d layouts", text, len(yes.Layouts))
	}
}

func TestSolveNo(t *testing.T) {
	t.Parallel()
	set := func(keys string, value any) func(map[string]any) {
		return func(p map[string]any) {
			path := strings.Split(keys, ".")
			last := len(path) - 1
			at(p, path[:last]...)[path[last]] = value
		}
	}
	both := func(edits ...func(map[string]any)) func(map[string]any) {
		return func(p map[string]any) {
			for _, e := range edits {
				e(p)
			}
		}
	}
	for _, c := range []struct {
		name        string
		edit        func(map[string]any)
		code        string
		constraints string
		sizes       string
		suggests    string // the first
	}{
		{"too few", set("request.numMachines", 1), "UNSATISFIABLE", "cant#0 M", "2..", "Use 2 nodes"},
		{"size, range without it", set("request.numMachines", 12), "SIZE", "size.max", "2..", "Use 9 nodes"},
		{"no machines", set("request.numMachines", "0"), "BAD_REQUEST", "M", "2..", "Use 2 nodes"},
		{"machines missing", set("request", map[string]any{}), "BAD_REQUEST", "M", "2..", "Use 2 nodes"},
		{"provider", set("request.hardwaretype", "huge"), "NO_HARDWARETYPE", "provider.hardwaretypes", "none", "Choose large instead of huge"},
		{"unknown and not allowed", both(set("request.services", []string{"db", "lb", "gone"}), set("template.compatibility", map[string]any{"services": []string{"db", "lb"}})),
			"SERVICE_INCOMPATIBLE", "compat.services(gone) service(gone)", "none", "Remove gone and use 2 nodes"},
		{"size and unknown", both(set("request.numMachines", 12), set("request.services", []string{"web", "gone"})), "SIZE", "size.max service(gone)", "none", "Remove gone and use 9 nodes"},
		{"one-sided", both(set("request.services", []string{"lb"}), set("template.constraints.size", map[string]any{"min": 3})),
			"UNSATISFIABLE", "quantity(lb).max M", "1..1", "Add web"},
		{"minimum above maximum", both(set("request.services", []string{"lb"}), set("template.constraints.services.lb", map[string]any{"quantities": map[string]any{"min": 3, "max": 2}})),
			"UNSATISFIABLE", "quantity(lb).min quantity(lb).max", "none", "Change the template: raise the maximum of lb to 4"},
		{"present", both(clusterOfA, set("add", []string{"lb", "base"})), "ALREADY_PRESENT", "present(lb)", "2..", "Do not add lb"},
		{"not present", both(clusterOfA, set("remove", []string{"cache"})), "NOT_PRESENT", "present(cache)", "2..", "Do not remove cache"},
		{"empty node", both(clusterOfA, set("remove", []string{"web"})), "EMPTY_NODE", "empty", "1..2", "Do not remove web"},
		{"other number", both(clusterOfA, set("request", map[string]any{"numMachines": 5})), "BAD_REQUEST", "M", "none", "Use 4 nodes, as there are"},
		{"broken layout", func(p map[string]any) { clusterOfA(p); p["nodes"].([]any)[1] = node("n9", "db", "lb", "web") },
			"UNSATISFIABLE", "cant#0", "2..", "Remove db"},
		{"no room", both(clusterOfA, set("add", []string{"cache"}), set("template.constraints.layout", map[string]any{"cantcoexist": [][]string{{"db", "web"}, {"cache", "web"}, {"cache", "lb"}}})),
			"UNSATISFIABLE", "cant#1 cant#2", "2..", "Do not add cache"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, code, _ := solveText(t, exampleProblem(t, c.edit))
			var no solveNo
			if err := json.Unmarshal([]byte(got), &no); err != nil || code != exitNo {
				t.Fatalf("exit status %d: %s %v", code, got, err)
			}
			var ids []string
			for _, r := range no.Reasons {
				if r.Code == "" || !strings.HasSuffix(r.Message, ".") || r.Services == nil {
					t.Errorf("reason %+v", r)
				}
				ids = append(ids, r.Constraints...)
			}
			sizes := "none"
			if no.Range != nil {
				sizes = fmt.Sprint(no.Range.Min, "..")
				if no.Range.Max != nil {
					sizes += fmt.Sprint(*no.Range.Max)
				}
			}
			if no.Solvable || no.Error != c.code || no.Reasons[0].Code != c.code || strings.Join(ids, " ") != c.constraints || sizes != c.sizes {
				t.Errorf("got %s %v %s", no.Error, ids, sizes)
			}
			if len(no.Suggestions) == 0 || no.Suggestions[0].Label != c.suggests {
				t.Errorf("suggestions %+v", no.Suggestions)
			}
		})
	}
}

// Too little time is no wrong no: the answer says that it is not known, and what is.
func TestSolveTimeIsUp(t *testing.T) {
	t.Parallel()
	var sets [][]string
	var services []map[string]any
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("s%02d", i))
		services = append(services, map[string]any{"name": names[i]})
		for j := range i {
			if (i*j+i+j)%3 == 0 {
				sets = append(sets, []string{names[j], names[i]})
			}
		}
	}
	q, err := readQuestion([]byte(exampleProblem(t, func(p map[string]any) {
		p["services"], at(p, "template", "defaults")["services"] = services, names
		at(p, "template")["constraints"] = map[string]any{"layout": map[string]any{"cantcoexist": sets}}
		at(p, "request")["numMachines"] = 1
	})))
	if err != nil {
		t.Fatal(err)
	}
	q.limit = -1 // over before it begins
	answer, err := q.answer(context.Background())
	no, ok := answer.(*solveNo)
	if err != nil || !ok || no.Error != codeTimeout || !strings.Contains(no.Reasons[0].Message, "nodes are needed") {
		t.Errorf("%+v %v", answer, err)
	}
}

func TestSolveUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ input, says string }{
		{"", "line 1, column 1: The body is empty"},
		{"[]", "line 1, column 1"},
		{"{\n \"template\" 1}", "line 2, column 13"},
		{`{"template": {}}{}`, "line 1, column 17"},
		{"{}", "template: line 1, column 1"},
		{"{\"template\": {},\n\"services\": [{\"name\": \"a\"}, {}]}", "services[1].name: line 2, column 29"},
		{"{\"template\": {\"constraints\":\n {\"services\": {\"a.b\": {\"quantities\":\n  {\"min\": -1}}}}}}", "line 3, column 11: A quantity cannot be negative."},
		{"{\"template\": {},\n \"request\": {\"numMachines\": \"many\"}}", "request.numMachines: line 2, column 29"},
		{`{"template": {}, "nodes": [{"id": "a"}, {"id": "a"}]}`, "given twice"},
		{`{"template": {}, "add": ["a"]}`, "There are no nodes"},
		{`{"template": {}, "limit_ms": -1}`, "limit_ms"},
		{`{"template": {}, "request": {"numMachines": 2000000000}}`, "request.numMachines: line 1, column 45: 2000000000 nodes are too many"},
		{`{"template": [1]}`, "template: line 1, column 14"},
		{`{"template": {},` + "\n" + `"services": ` + strings.Repeat("[", 500_000), "services: line 2, column 13: Arrays and objects are nested more than 100 levels deep"},
		{`{"template": {}, "services": [` + strings.Repeat("{},", 999) + `{}]}`, "900 more fields are wrong"},
	} {
		out, code, says := solveText(t, c.input)
		if code != exitUsage || out != "" || !strings.Contains(says, c.says) {
			t.Errorf("%s: exit status %d, %q, want %q", c.input, code, says, c.says)
		}
	}
	if _, code, _ := solveText(t, "", filepath.Join(t.TempDir(), "none")); code != exitUsage {
		t.Errorf("a missing file: exit status %d", code)
	}
}

func TestSolveBatch(t *testing.T) {
	t.Parallel()
	lines := []string{exampleProblem(t, nil), "", "{", exampleProblem(t, func(p map[string]any) { at(p, "request")["numMachines"] = 1 }), exampleProblem(t, clusterOfA)}
	for _, end := range []string{"", "\n"} {
		got, code, _ := solveText(t, strings.Join(lines, "\n")+end, "--batch")
		var codes []string
		for _, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			var no solveNo
			if err := json.Unmarshal([]byte(line), &no); err != nil {
				t.Fatal(err)
			}
			codes = append(codes, fmt.Sprint(no.Solvable, no.Error))
		}
		if want := []string{"true", "falseBAD_REQUEST", "falseBAD_REQUEST", "falseUNSATISFIABLE", "true"}; code != 0 || !reflect.DeepEqual(codes, want) {
			t.Errorf("exit status %d, %q", code, codes)
		}
	}
}

func TestNaturalOrderOfIDs(t *testing.T) {
	t.Parallel()
	order := []string{"", "1", "01", "2", "10", "a", "a2", "a10", "a10b", "b"}
	for i, a := range order {
		for j, b := range order {
			if got := compareNatural(a, b); a != "01" && b != "01" && (got < 0) != (i < j) {
				t.Errorf("%q, %q: %d", a, b, got)
			}
		}
	}
}

// FuzzSolve: whatever is read, there is an answer or an error that names a place.
func FuzzSolve(f *testing.F) {
	f.Add([]byte(exampleProblem(f, nil)))
	f.Add([]byte(exampleProblem(f, clusterOfA)))
	f.Add([]byte(`{"template":{"constraints":{"layout":{"mustcoexist":[["a",""],[]]}}},"nodes":[{"id":1,"services":[]}],"add":["a"],"remove":["b"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := readQuestion(body)
		if err != nil {
			if text := forPeople(err); !strings.Contains(text, "line ") {
				t.Fatalf("%q: %s", body, text)
			}
			return
		}
		q.limit = min(q.limit, time.Second)
		q.input.Machines = min(q.input.Machines, 1000)
		answer, err := q.answer(context.Background())
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if no, ok := answer.(*solveNo); ok && (no.Error == "" || len(no.Reasons) == 0) {
			t.Fatalf("%q: a no without reasons: %+v", body, no)
		}
	})
}
