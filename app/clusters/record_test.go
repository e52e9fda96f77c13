package clusters_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
)

// recordDir names the directory that recordings go to; `make recordings` sets it.
const recordDir = "LOOM_RECORD"

// How many random clusters are recorded, and how many when only the recording is tested.
const recordedClusters, triedClusters = 500, 2

// recorder writes what every kind of change would do to random clusters. Requests are
// those of the REST API, so that the recording outlives how the use cases take them.
type recorder struct {
	*bundle
	ops    *execution.Operations
	seed   uint64
	text   strings.Builder
	hashes strings.Builder
	// planned counts the previews that there are of each kind.
	planned map[string]int
}

// recordedSet is what the clusters of a group are made of.
type recordedSet struct {
	template string
	chosen   []string // services of the template's defaults
	other    []string // its other compatible services
}

// TestRecordPlans records plans twice and finds no difference; where LOOM_RECORD names a
// directory it records there, once, what many more clusters give.
func TestRecordPlans(t *testing.T) { // alone: random ids come from a seed
	if dir := os.Getenv(recordDir); dir != "" {
		planned := record(t, filepath.Join(dir, "plans"), recordedClusters)
		for _, kind := range loom.PreviewKinds {
			if planned[string(kind)] == 0 {
				t.Errorf("no preview of the kind %s was recorded", kind)
			}
		}
		return
	}
	one, two := t.TempDir(), t.TempDir()
	planned := record(t, one, triedClusters)
	record(t, two, triedClusters)
	if len(planned) < len(loom.PreviewKinds)/2 {
		t.Errorf("recorded are only %v", planned)
	}
	files, err := filepath.Glob(filepath.Join(one, "*"))
	if err != nil || len(files) != triedClusters+1 {
		t.Errorf("recorded are %v, %v", files, err)
	}
	for _, file := range files {
		a, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(two, filepath.Base(file)))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs when it is recorded again: %v", filepath.Base(file), err)
		}
	}
}

func record(t *testing.T, dir string, clusters int) map[string]int {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := setup(t)
	b.ctx = t.Context()
	b.db.MustExec(`UPDATE tenants SET max_clusters = 100000, max_nodes = 1000000, workers = 1000`)
	b.db.MustExec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 day')`)
	b.withKeys()
	for _, name := range []string{"small", "big"} {
		b.put(loom.KindHardwareType, new(loom.HardwareType), fmt.Sprintf(`{"name": %q, "providermap": {"lab": {"flavor": %[1]q, "cost": "0.5"}}}`, name))
	}
	r := &recorder{bundle: b, ops: execution.New(b.db.DB, b.ring, execution.Options{}), planned: map[string]int{}}
	var set recordedSet
	for i := range clusters {
		random := rand.New(rand.NewPCG(uint64(i), 500))
		if i%5 == 0 {
			set = r.catalog(i/5, random)
		}
		r.reseed()
		r.cluster(i, set, random)
		name := filepath.Join(dir, fmt.Sprintf("%03d.txt", i))
		if err := os.WriteFile(name, []byte(stable(r.text.String())), 0o644); err != nil {
			t.Fatal(err)
		}
		r.text.Reset()
	}
	// Apart, because they differ whenever anything does that a preview stores.
	if err := os.WriteFile(filepath.Join(dir, "hashes.txt"), []byte(r.hashes.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return r.planned
}

// put stores a catalog entry that is written as JSON.
func (b *bundle) put(kind loom.EntityKind, e loom.Entry, text string) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(text), e); err != nil {
		b.t.Fatalf("%v in %s", err, text)
	}
	b.save(b.tenant, kind, e)
}

// withKeys adds SSH keys to the account of ana, for what puts them on machines.
func (b *bundle) withKeys() {
	b.db.MustExec(`UPDATE users SET ssh_keys = '{ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqCzuPWMDNg6RlbWDFrKbFPMBdGs9LHsQzEYhlZ9QLo ana}' WHERE id = 'ana'`)
}

// reseed makes the ids that are drawn next known, however many were drawn before.
func (r *recorder) reseed() {
	r.seed++
	cryptotest.SetGlobalRandom(r.t, r.seed)
}

func quoted(names []string) string {
	text, _ := json.Marshal(append([]string{}, names...)) //nolint:errcheck // texts can be encoded
	return string(text)
}

func some(random *rand.Rand, names []string, chance float64) []string {
	var chosen []string
	for _, name := range names {
		if random.Float64() < chance {
			chosen = append(chosen, name)
		}
	}
	return chosen
}

// catalog stores services and a template. Services depend on earlier ones only.
func (r *recorder) catalog(group int, random *rand.Rand) recordedSet {
	set := recordedSet{template: fmt.Sprintf("site%d", group)}
	var all []string
	for i := range 3 + random.IntN(4) {
		name := fmt.Sprintf("s%d%c", group, 'a'+i)
		r.put(loom.KindService, new(loom.Service), recordedService(random, name, all, ""))
		all = append(all, name)
	}
	n := 2 + random.IntN(len(all)-2)
	set.chosen, set.other = all[:n], all[n:]
	r.put(loom.KindTemplate, new(loom.Template), r.template(random, set, ""))
	return set
}

func recordedService(random *rand.Rand, name string, earlier []string, version string) string {
	actions := map[string]any{}
	for _, action := range some(random, []string{"install", "configure", "initialize", "start", "stop", "remove"}, 0.8) {
		actions[action] = map[string]any{"type": "shell", "fields": map[string]string{"script": name + ".sh", "args": action + version}}
	}
	text, _ := json.Marshal(actions) //nolint:errcheck // maps of texts can be encoded
	scope := []string{"", "", "node"}[random.IntN(3)]
	var follows []string
	if random.IntN(3) == 0 {
		follows = some(random, earlier, 0.5)
	}
	return fmt.Sprintf(`{"name": %q, "dependencies": {"install": {"requires": %s, "scope": %q}, "runtime": {"requires": %s, "uses": %s}}, "follows": %s,
		"provisioner": {"actions": %s}, "defaultConfig": {%[1]q: {"port": %[8]d, "password": "secret"}}}`,
		name, quoted(some(random, earlier, 0.2)), scope, quoted(some(random, earlier, 0.3)), quoted(some(random, earlier, 0.2)), quoted(follows), text, random.IntN(9000))
}

func (r *recorder) template(random *rand.Rand, set recordedSet, more string) string {
	var apart [][]string
	if random.IntN(2) == 0 {
		apart = append(apart, set.chosen[:2])
	}
	coexist, _ := json.Marshal(apart) //nolint:errcheck // texts can be encoded
	limits := "{}"
	if random.IntN(2) == 0 {
		limits = fmt.Sprintf(`{%q: {"quantities": {"min": 1, "max": %d}}}`, set.chosen[0], 1+random.IntN(3))
	}
	return fmt.Sprintf(`{"name": %q, "description": %q, "compatibility": {"services": %s, "hardwaretypes": ["small", "big"], "imagetypes": ["deb"]},
		"constraints": {"layout": {"cantcoexist": %s}, "services": %s, "size": {"min": 1, "max": 12}},
		"defaults": {"services": %s, "provider": "lab", "hardwaretype": "small", "imagetype": "deb", "onFailure": %q, "config": {"peers": "%%host.service.%s%%", "n": %d}}}`,
		set.template, more, quoted(slices.Concat(set.chosen, set.other)), coexist, limits, quoted(set.chosen), []string{"", "undo"}[random.IntN(2)], set.chosen[0], random.IntN(9))
}

// cluster makes one and records previews of all kinds while it is active, after a change
// that may fail, and while an operation waits.
func (r *recorder) cluster(i int, set recordedSet, random *rand.Rand) {
	var id loom.ClusterID
	for _, n := range []int{1 + random.IntN(5), 3, 6} {
		create := fmt.Sprintf(`{"kind": "create", "request": {"name": "c%d", "clusterTemplate": %q, "numMachines": %d, "providerFields": {"zone": "a", "token": "t"}}}`, i, set.template, n)
		if id = r.apply(create); id != 0 {
			break
		}
	}
	if id == 0 {
		return
	}
	if i%10 == 0 {
		r.run(1 + random.IntN(4))
		r.all("after a create that failed", id, set, random)
		r.apply(fmt.Sprintf(`{"kind": "retry", "clusterId": %q, "request": {"providerFields": {"token": "t"}}}`, id))
	}
	r.run(0)
	if i%5 == 0 {
		r.put(loom.KindTemplate, new(loom.Template), r.template(random, set, "changed"))
	}
	changed := set.chosen[random.IntN(len(set.chosen))]
	r.put(loom.KindService, new(loom.Service), recordedService(random, changed, nil, fmt.Sprint(" ", i)))
	r.all("active", id, set, random)
	requests := r.requests(id, set, random)
	for try := 0; try < 5; try++ {
		if r.apply(requests[random.IntN(len(requests))]) != 0 {
			break
		}
	}
	switch random.IntN(4) {
	case 0:
		if i%4 == 0 { // nearly all is refused then
			r.all("while an operation waits", id, set, random)
		}
		return
	case 1:
		r.run(0)
	default:
		r.run(1 + random.IntN(10))
	}
	r.all("after a change", id, set, random)
	r.run(0)
}

// all records a preview of each kind, of those with several requests one.
func (r *recorder) all(when string, id loom.ClusterID, set recordedSet, random *rand.Rand) {
	fmt.Fprintf(&r.text, "\n#### %s\n", when)
	requests := r.requests(id, set, random)
	random.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	done := map[string]bool{}
	for _, request := range requests {
		kind, _, _ := strings.Cut(request, ",")
		if !done[kind] {
			done[kind] = true
			r.preview(request)
		}
	}
}

func (r *recorder) requests(id loom.ClusterID, set recordedSet, random *rand.Rand) []string {
	nodes := r.nodesOf(id)
	node := quoted(nodes[random.IntN(len(nodes)):][:1])
	service := slices.Concat(set.chosen, set.other)[random.IntN(len(set.chosen)+len(set.other))]
	kinds := []string{
		fmt.Sprintf(`"expand", "request": {"numMachines": %d}`, len(nodes)+1),
		fmt.Sprintf(`"expand", "request": {"numMachines": %d, "onFailure": "undo"}`, len(nodes)+3),
		fmt.Sprintf(`"shrink", "request": {"numMachines": %d}`, len(nodes)-1),
		fmt.Sprintf(`"shrink", "request": {"nodes": %s}`, node),
		fmt.Sprintf(`"shrink", "request": {"nodes": %s, "dead": %[1]s}`, node),
		`"configure", "request": {"config": {"a": 1}}`,
		`"configure", "request": {"configPatch": {"n": null, "b": {"c": [1, "%ip.access_v4.self%"]}}, "restart": false}`,
		`"configure", "request": {"revision": 1}`,
		fmt.Sprintf(`"add_services", "request": {"services": %s}`, quoted(set.other)),
		fmt.Sprintf(`"add_services", "request": {"services": [%q], "onFailure": "undo"}`, service),
		fmt.Sprintf(`"remove_services", "request": {"services": [%q]}`, service),
		fmt.Sprintf(`"remove_services", "request": {"services": %s}`, quoted(set.chosen[1:])),
		`"upgrade", "request": {}`,
		fmt.Sprintf(`"upgrade", "request": {"services": [%q], "batch": 2, "minHealthy": 1}`, service),
		`"resize", "request": {"hardwaretype": "big"}`,
		fmt.Sprintf(`"resize", "request": {"hardwaretype": "big", "services": [%q], "batch": 2, "minHealthy": 0}`, service),
		fmt.Sprintf(`"repair", "request": {"nodes": %s}`, node),
		fmt.Sprintf(`"repair", "request": {"nodes": %s, "dead": %[1]s}`, quoted(nodes)),
		fmt.Sprintf(`"repair", "request": {"nodes": %s, "how": "restart"}`, quoted(nodes)),
		fmt.Sprintf(`"repair", "request": {"nodes": %s, "how": "restart", "services": [%q]}`, quoted(nodes), service),
		fmt.Sprintf(`"repair", "request": {"nodes": %s, "how": "configure"}`, node),
		fmt.Sprintf(`"repair", "request": {"nodes": %s, "how": "reboot"}`, node),
		`"rollback", "request": {"operation": 1}`,
		`"rollback", "request": {"operation": 2}`,
		`"retry", "request": {}`,
		fmt.Sprintf(`"retry", "request": {"services": [%q], "configPatch": {"n": 7}}`, service),
		fmt.Sprintf(`"retry", "request": {"removeServices": [%q], "onFailure": "undo"}`, service),
		`"retry", "request": {"skip": [3], "reason": "by hand"}`,
		`"authorize", "request": {}`, `"sync", "request": {}`, `"delete", "request": {}`, `"delete", "request": {"abort": true}`,
	}
	for _, verb := range []string{"start", "stop", "restart"} {
		kinds = append(kinds, fmt.Sprintf(`%q, "request": {}`, verb), fmt.Sprintf(`%q, "service": %q, "request": {}`, verb, service))
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf(`{"kind": %s, "clusterId": %q}`, kind, id)
	}
	return append(kinds, fmt.Sprintf(`{"kind": "create", "request": {"name": "again", "clusterTemplate": %q, "numMachines": %d, "services": %s, "configPatch": {"n": 3}, "providerFields": {"zone": "b"}}}`,
		set.template, 1+random.IntN(9), quoted(some(random, slices.Concat(set.chosen, set.other), 0.7))))
}

// preview records what a request for one is answered.
func (r *recorder) preview(request string) (clusters.PreviewView, error) {
	r.t.Helper()
	r.reseed()
	in, err := wire.ReadPreview([]byte(request))
	var v clusters.PreviewView
	if err == nil {
		v, err = r.clusters.Preview(r.ctx, r.ana(), in)
	}
	fmt.Fprintf(&r.text, "\n== %s\n", request)
	if err != nil {
		e := loom.AsError(err)
		if e.Kind == loom.Internal {
			r.t.Errorf("%s: %v", request, err)
		}
		fmt.Fprintf(&r.text, "refused: %s: %s %v\n", e.Kind, e.Message, e.Fields)
		if e.Unsat != nil {
			for _, reason := range e.Unsat.Reasons {
				fmt.Fprintf(&r.text, "reason: %s\n", reason.Message)
			}
		}
		return v, err
	}
	r.planned[string(v.Kind)]++
	fmt.Fprintf(&r.hashes, "%s %s\n", v.Hash, stable(request))
	fmt.Fprintf(&r.text, "%s\n", v.Summary())
	for _, warning := range v.Warnings {
		fmt.Fprintf(&r.text, "warning: %s\n", warning)
	}
	for _, c := range v.Changes {
		fmt.Fprintf(&r.text, "%s %s %s", c.Change, c.Object, c.Name)
		if c.Node != 0 {
			fmt.Fprintf(&r.text, "@%d", c.Node)
		}
		if c.Old != nil || c.New != nil || c.Because != "" {
			fmt.Fprintf(&r.text, ": %v, was %v. %s", c.New, c.Old, c.Because)
		}
		r.text.WriteByte('\n')
	}
	for _, t := range v.Plan.Tasks {
		fmt.Fprintf(&r.text, "%d %s %s@%d level %d rank %d", t.Number, t.Action, t.Service, t.NodeNumber, t.Level, t.Rank)
		for _, mark := range []struct {
			is   bool
			word string
		}{{t.Critical, " critical"}, {t.Old, " old"}, {t.Undo, " undo"}} {
			if mark.is {
				r.text.WriteString(mark.word)
			}
		}
		r.text.WriteByte('\n')
	}
	fmt.Fprintf(&r.text, "gates %v\nedges %v\n", v.Plan.Gates, v.Plan.Edges)
	return v, nil
}

// apply does what a preview showed; 0 where it is refused.
func (r *recorder) apply(request string) loom.ClusterID {
	r.t.Helper()
	v, err := r.preview(request)
	if err != nil {
		return 0
	}
	in, err := wire.ReadApply(fmt.Appendf(nil, `{"hash": %q, "providerFields": {"token": "t"}}`, v.Hash), v.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	ref, err := r.clusters.Apply(r.ctx, r.ana(), in)
	fmt.Fprintf(&r.text, "applied: %v %v\n", ref, err)
	return ref.Cluster
}

// nodesOf are the ids of the nodes that a cluster has, by their numbers.
func (r *recorder) nodesOf(id loom.ClusterID) (ids []string) {
	r.t.Helper()
	if err := r.db.Select(&ids, `SELECT id::text FROM nodes WHERE cluster_id = $1 ORDER BY number`, int64(id)); err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// run carries out what is due, all at once; the task of the number fails is one that fails.
func (r *recorder) run(fails int) {
	r.t.Helper()
	for {
		var due []struct {
			Task    loom.TaskID `db:"task_id"`
			Attempt int         `db:"attempt"`
			Number  int         `db:"number"`
			Action  string      `db:"action"`
			Node    int         `db:"node"`
		}
		if err := r.db.Select(&due, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
			FROM tasks t JOIN nodes n ON n.id = t.node_id WHERE r.id = t.river_job_id AND r.state IN ('available', 'scheduled') AND r.kind = 'run_task'
			RETURNING t.id AS task_id, r.attempt, t.number, t.action, n.number AS node`); err != nil {
			r.t.Fatal(err)
		}
		if len(due) == 0 {
			if before := r.count(`SELECT count(*) FROM river_job WHERE kind = 'end_operation' AND state = 'available'`); before == 0 {
				return
			}
			r.endOperations()
			continue
		}
		work := map[execution.AttemptKey]loom.TaskResult{}
		number := map[execution.AttemptKey]int{}
		for _, d := range due {
			key := execution.AttemptKey{Task: d.Task, Attempt: d.Attempt}
			number[key] = d.Number
			switch d.Action {
			case "create":
				work[key] = loom.TaskResult{Result: map[string]any{"providerid": fmt.Sprint("m-", d.Node)}}
			case "delete":
				work[key] = loom.TaskResult{Result: map[string]any{"providerid": nil}}
			default:
				work[key] = loom.TaskResult{}
			}
		}
		begun, _, err := r.ops.StartTasks(r.ctx, "p1", slices.Collect(maps.Keys(work)))
		if err != nil {
			r.t.Fatal(err)
		}
		var finished []execution.Finished
		for _, key := range begun {
			if number[key] == fails {
				fails = 0 // once
				if _, err := r.ops.FailTask(r.ctx, key, loom.TaskResult{Status: 1, Message: "no", Retryable: new(false)}); err != nil {
					r.t.Fatal(err)
				}
				continue
			}
			finished = append(finished, execution.Finished{Key: key, Result: work[key]})
		}
		if _, err = r.ops.CompleteTasks(r.ctx, finished); err != nil {
			r.t.Fatal(err)
		}
	}
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// stable writes ID1, ID2 and so on for ids.
func stable(text string) string {
	known := map[string]string{}
	return uuids.ReplaceAllStringFunc(text, func(id string) string {
		if known[id] == "" {
			known[id] = fmt.Sprint("ID", len(known)+1)
		}
		return known[id]
	})
}
