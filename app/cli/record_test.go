//go:build e2e && browser

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web"
)

// recordDir names the directory that recordings go to; `make recordings` sets it.
const recordDir = "LOOM_RECORD"

// recorder asks an instance whose work is done and whose background processes have
// ended, so that it answers the same whenever it is asked.
type recorder struct {
	*pagesWorld
	dir    string
	course bytes.Buffer // requests of the setup with their answers
}

// role is somebody who asks: with a browser that is signed in, or with a token.
type role struct {
	name, token string
	browser     *http.Client
}

// unrecorded are streams, charts of times and of River jobs, lists in the order of random
// ids, what waits for a provisioner, and what ends the sessions that the recording needs.
var unrecorded = regexp.MustCompile(`^((GET|get) (/events|/v2/events|/metrics|.*/usage|/usage|/v2/nodes|/v2/tenants/\{name\}/nodes|/system/tenants/\{tenant\}/(nodes|delete)|/system/queues(/jobs.*)?|/v2/riverjobs.*|.*/timeline)|POST (/system/tenants/\{tenant\}/delete|/logout|/login|/account/sessions.*)|post /v2/tokens/\{id\}/rotate|delete /v2/orphans/\{id\}|post /v2/(sweeps|providers/.*(probe|sweep))|delete /v2/(sessions|profile).*)$`)

// destructive requests come last: others would only be told that nothing is there.
var destructive = regexp.MustCompile(`(?i)^delete |/(delete|remove|discard|revoke|end|abandon|apply|\{verb\}|import)$`)

// TestRecord writes what each route of the pages and of the API answers to each role
// into the directory of LOOM_RECORD.
func TestRecord(t *testing.T) {
	dir := os.Getenv(recordDir)
	if dir == "" {
		t.Skip(recordDir + " names no directory; make recordings sets it")
	}
	db := testkit.NewDatabase(t)
	w := &pagesWorld{mockWorld: newMockWorld(t, makeWorld(t, []string{"LOOM_MOCK=true", "LOOM_MAX_ATTEMPTS=1", "LOOM_PROVISIONER_CAPACITY=1", "LOOM_HOOK_NETWORKS=127.0.0.0/8", "LOOM_DATABASE_URL=" + db.DSN}), db.DSN, 0, nil)}
	w.admin = w.client("demo", "admin", "admin")
	r := &recorder{pagesWorld: w, dir: dir}
	r.hook()
	r.catalog()
	r.walk()
	r.files()
	r.office()
	stranger := r.stranger().client
	roles := []role{
		{"nobody", "", r.browser("", "")},
		{"foreign", r.token("elsewhere", "admin", "admin"), stranger},
		{"user", r.token("demo", "user", "admin"), r.browser("demo", "user")},
		{"admin", r.token("demo", "admin", "admin"), r.browser("demo", "admin")},
		{"superadmin", r.token("superadmin", "admin", "admin"), r.browser("superadmin", "admin")},
	}
	r.write("rest/course.txt", r.course.String())
	r.pages(roles, http.MethodGet)
	r.rest(roles, "get")
	r.rest(roles, "post", "put", "patch", "delete")
	r.pages(roles, http.MethodPost)
}

func (r *recorder) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(r.stable(text)), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// browser is one that is signed in, and does not follow redirects.
func (r *recorder) browser(tenant, user string) *http.Client {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if user == "" {
		return c
	}
	form := url.Values{"tenant": {tenant}, "user": {user}, "password": {r.password(tenant, user)}}
	answer, err := c.PostForm(r.url+"/login", form)
	if err != nil {
		r.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		r.t.Fatalf("sign-in of %s: %d", user, answer.StatusCode)
	}
	return c
}

// ask returns an answer with the headers that matter.
func (r *recorder) ask(c *http.Client, method, path, token, media, body string) string {
	r.t.Helper()
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" || method != http.MethodGet {
		request.Header.Set("Content-Type", media)
	}
	answer, err := c.Do(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.StatusCode >= http.StatusInternalServerError && answer.StatusCode != http.StatusServiceUnavailable {
		r.t.Errorf("%s %s: %d %.300s", method, path, answer.StatusCode, data)
	}
	text := fmt.Sprintf("%s %s\n%d\n", method, path, answer.StatusCode)
	for _, name := range []string{"Location", "Content-Type", "Content-Security-Policy", "Link", "Allow"} {
		for _, value := range answer.Header.Values(name) {
			text += name + ": " + value + "\n"
		}
	}
	if media := answer.Header.Get("Content-Type"); strings.Contains(media, "zip") || strings.Contains(media, "tar") {
		data = []byte("an archive")
	} else if strings.Contains(media, "json") {
		var indented bytes.Buffer
		if json.Indent(&indented, data, "", " ") == nil {
			data = indented.Bytes()
		}
	}
	return text + "\n" + strings.ReplaceAll(string(data), "><", ">\n<") + "\n"
}

// request is a request that stands for a route: its path is filled in.
type request struct{ method, pattern, path string }

// matrix records what each request answers to each role, the destructive ones last. Requests
// of one pattern share a file.
func (r *recorder) matrix(folder string, requests []request, roles []role, ask func(who role, rq request) string) {
	r.t.Helper()
	slices.SortStableFunc(requests, func(a, b request) int { return lastDestructive(a.pattern, b.pattern) })
	for len(requests) > 0 {
		pattern, same := requests[0].pattern, 1
		for same < len(requests) && requests[same].pattern == pattern {
			same++
		}
		for _, who := range roles {
			text := ""
			for _, rq := range requests[:same] {
				text += ask(who, rq)
			}
			r.write(fileOf(folder, pattern, who.name), text)
		}
		requests = requests[same:]
	}
}

// pages records what the routes of pages answer; forms are sent empty.
func (r *recorder) pages(roles []role, method string) {
	r.t.Helper()
	var requests []request
	for _, rt := range web.Routes() {
		if pattern := rt.Pattern(); rt.Method == method && !unrecorded.MatchString(pattern) {
			for _, sample := range r.samples(rt) {
				requests = append(requests, request{method, pattern, sample})
			}
		}
	}
	r.matrix("pages", requests, roles, func(who role, rq request) string {
		return r.ask(who.browser, rq.method, rq.path, "", "application/x-www-form-urlencoded", "")
	})
}

// rest records what the routes of the OpenAPI document answer; bodies are empty objects.
func (r *recorder) rest(roles []role, methods ...string) {
	r.t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	r.admin.call("GET", "/v2/openapi.json", nil, &document)
	var requests []request
	for path, routes := range document.Paths {
		for method := range routes {
			if pattern := method + " " + path; slices.Contains(methods, method) && !unrecorded.MatchString(pattern) {
				requests = append(requests, request{strings.ToUpper(method), pattern, r.sampleREST(path)})
			}
		}
	}
	r.matrix("rest", requests, roles, func(who role, rq request) string {
		body := "{}"
		if rq.method == http.MethodGet {
			body = ""
		}
		return r.ask(rest, rq.method, rq.path, who.token, "application/json", body)
	})
}

func lastDestructive(a, b string) int {
	rank := func(pattern string) string {
		if destructive.MatchString(pattern) {
			return "1" + pattern
		}
		return "0" + pattern
	}
	return strings.Compare(rank(a), rank(b))
}

// fileOf names the file of a route and a role.
func fileOf(folder, pattern, role string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9{}$.-]+`).ReplaceAllString(pattern, "_")
	return folder + "/" + strings.Trim(name, "_") + "." + role + ".txt"
}

// sampleREST fills the parameters of a path of the API.
func (r *recorder) sampleREST(path string) string {
	entries := map[string]string{"hardwaretypes": "mock", "imagetypes": "mock", "providers": "mock", "services": "front", "clustertemplates": "shop", "partialtemplates": "lease",
		"automatortypes": "shell", "providertypes": "mock", "tenants": "demo"}
	ids := map[string]string{"clusters": r.names["{cluster}"], "hooks": r.names["hook"], "rollouts": r.names["rollout"], "groups": r.names["group"], "identity-providers": r.names["identity provider"], "bindings": "1", "nodes": r.names["{node}"], "orphans": r.names["orphan"], "previews": r.names["{preview}"],
		"processes": r.names["worker"], "provisioners": r.names["worker"], "riverjobs": r.names["job"], "sessions": r.names["{session}"], "tokens": r.names["own token"], "users": "user"}
	parts := strings.Split(path, "/")
	room := func(i int) string { return strings.Split(path, "/")[i-1] }
	for i, part := range parts {
		value, is := strings.CutPrefix(part, "{")
		if !is {
			continue
		}
		switch value = strings.TrimSuffix(value, "}"); value {
		case "name":
			parts[i] = entries[room(i)]
		case "id":
			parts[i] = ids[room(i)]
		case "n", "r", "v":
			parts[i] = "1"
		case "t":
			parts[i] = r.names["{task}"]
		case "nodeId":
			parts[i] = r.names["{node}"]
		case "planId":
			parts[i] = r.names["{cluster}"] + "-001"
		case "d":
			parts[i] = r.names["{delivery}"]
		case "version":
			parts[i] = "1"
			if strings.Contains(path, "{resource}") {
				parts[i] = "scripts"
			}
		case "resource":
			parts[i] = "hello.sh"
		case "queue":
			parts[i] = "hook"
		case "service":
			parts[i] = "base"
		case "probe":
			parts[i] = r.names["{probe}"]
		default:
			r.t.Errorf("%s: nothing stands for {%s}", path, value)
		}
	}
	return strings.Join(parts, "/")
}

// rec sends a request of the course, records it, and reads the answer into out, if any.
func (r *recorder) rec(c *client, method, path, body string, out any) {
	r.t.Helper()
	text := r.ask(rest, method, path, c.token, "application/json", body)
	fmt.Fprintf(&r.course, "%s\n%s\n", body, text)
	if out != nil {
		_, data, _ := strings.Cut(text, "\n\n")
		if err := json.Unmarshal([]byte(data), out); err != nil {
			r.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

// walk takes clusters through what can be done to them, one thing at a time, and leaves
// an active, a failed, a terminated and a paused one.
func (r *recorder) walk() {
	r.t.Helper()
	super := r.client("superadmin", "admin", "admin")
	r.rec(super, "POST", "/v2/tenants", `{"tenant": {"name": "recorded", "description": "New.", "workers": 3, "maxClusters": 5, "maxNodes": 9}}`, nil)
	r.rec(r.admin, "POST", "/v2/users", `{"id": "ben", "displayName": "Ben", "password": "four words in a row"}`, nil)
	r.rec(r.admin, "PATCH", "/v2/users/ben", `{"displayName": "Benjamin"}`, nil)
	for _, entry := range [][2]string{
		{"providers", `"providertype": "mock", "provisioner": {}`}, {"hardwaretypes", `"providermap": {"mock": {"flavor": "f"}}`}, {"imagetypes", `"providermap": {"mock": {"image": "i"}}`},
		{"services", `"provisioner": {"actions": {}}`}, {"clustertemplates", `"defaults": {"services": ["base"], "provider": "mock"}`}, {"partialtemplates", `"administration": {}`},
	} {
		kind, body := entry[0], entry[1]
		text := r.course.String()
		path := "/v2/" + kind
		r.rec(r.admin, "POST", path, `{"name": "one", "description": "First.", `+body+`}`, nil)
		r.rec(r.admin, "PUT", path+"/one", `{"name": "one", "description": "Second.", `+body+`}`, nil)
		r.rec(r.admin, "GET", path+"/one/versions", "", nil)
		r.rec(r.admin, "DELETE", path+"/one", "", nil)
		r.write("rest/course-"+kind+".txt", strings.TrimPrefix(r.course.String(), text))
		r.course.Reset()
		r.course.WriteString(text)
	}
	begin := func(method, path, body string, status loom.ClusterStatus) string {
		r.t.Helper()
		var made struct{ ID string }
		if method == "POST" && path == "/v2/clusters" {
			r.rec(r.user, method, path, body, &made)
		} else {
			r.rec(r.user, method, path, body, nil)
			made.ID = strings.Split(path, "/")[3]
		}
		r.user.waitStatus(made.ID, status)
		for _, part := range []string{"", "/status", "/actions", "/operations", "/operations/1/tasks"} {
			r.rec(r.user, "GET", "/v2/clusters/"+made.ID+part, "", nil)
		}
		return made.ID
	}
	active := begin("POST", "/v2/clusters", `{"name": "shop", "clusterTemplate": "shop", "numMachines": 2}`, loom.ClusterActive)
	one := "/v2/clusters/" + active
	begin("POST", one+"/expand", `{"numMachines": 3}`, loom.ClusterActive)
	begin("PUT", one+"/config", `{"config": {"greeting": "good morning", "colour": "green"}}`, loom.ClusterActive)
	begin("POST", one+"/services", `{"services": ["extra"]}`, loom.ClusterActive)
	begin("POST", one+"/services/restart", ``, loom.ClusterActive)
	begin("POST", one+"/remove-services", `{"services": ["extra"]}`, loom.ClusterActive)
	begin("POST", one+"/resize", `{"hardwaretype": "mock-large"}`, loom.ClusterActive)
	begin("POST", one+"/shrink", `{"numMachines": 2}`, loom.ClusterActive)
	r.admin.call("PUT", "/v2/clustertemplates/shop", strings.Replace(fmt.Sprintf(pagesTemplate, "shop", `"base", "front", "extra"`, `"base", "front"`), "looking at", "looking at, again", 1), nil)
	gone := begin("POST", "/v2/clusters", `{"name": "gone", "clusterTemplate": "shop", "numMachines": 1}`, loom.ClusterActive)
	begin("DELETE", "/v2/clusters/"+gone, ``, loom.ClusterTerminated)
	failed := begin("POST", "/v2/clusters", `{"name": "failed", "clusterTemplate": "failing", "numMachines": 1}`, loom.ClusterIncomplete)
	// One node, so that its tasks come one by one; the first that takes its time is the last.
	r.service("lagging", 3000, 0, "")
	r.admin.call("POST", "/v2/clustertemplates", fmt.Sprintf(pagesTemplate, "lagging", `"lagging"`, `"lagging"`), nil)
	paused := r.user.create("lagging", 1, map[string]any{"name": "waiting-for-long"})
	running := func(n int) {
		r.eventually("the tasks of the service that takes its time", func() error {
			if found := r.count(`SELECT count(*) FROM tasks WHERE status = 'running'`); found != n {
				return fmt.Errorf("%d run", found)
			}
			return nil
		})
	}
	r.eventually("a task that takes its time", func() error {
		if r.count(`SELECT count(*) FROM tasks WHERE status = 'running' AND service = 'lagging'`) == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	r.user.call("POST", "/v2/clusters/"+paused+"/pause", nil, nil)
	running(0)
	node := string(r.user.cluster(active).Nodes[0].ID)
	var preview struct{ ID string }
	r.rec(r.admin, "POST", "/v2/previews", fmt.Sprintf(`{"kind": "expand", "clusterId": %q, "request": {"numMachines": 6}}`, active), &preview)
	r.names = map[string]string{"{cluster}": active, "{n}": "1", "{task}": "3", "{node}": node, "{service}": "base", "{template}": "shop", "{preview}": preview.ID,
		"paused": paused, "failed": failed, "gone": gone, "{tenant}": "demo", "{chapter}": "clusters", "{version}": "1"}
	var waiting []struct{ Number int }
	r.user.call("GET", "/v2/clusters/"+paused+"/operations/1/tasks?status=ready", nil, &waiting)
	if len(waiting) == 0 {
		r.t.Fatal("no task of the paused operation is ready")
	}
	r.names["ready"] = fmt.Sprint(waiting[0].Number)
	r.eventually("the deliveries of hooks", func() error {
		if n := r.count(`SELECT count(*) FROM river_job WHERE state IN ('available', 'running') AND kind LIKE '%deliver%'`); n > 0 {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	for _, p := range r.processes { // what does things by itself
		if p.args[0] == "scheduler" || p.args[0] == "provisioner" {
			p.kill(r.t, syscall.SIGTERM)
			p.waitEnd(r.t)
		}
	}
	r.db.MustExec(`TRUNCATE provider_requests RESTART IDENTITY`) // what was in time, of those that the scheduler makes
	r.db.MustExec(`INSERT INTO processes (id, kind, host, expires_at) VALUES
		('recorded-00000001', 'provisioner', 'recorded', now() + interval '1 day'), ('recorded-00000002', 'scheduler', 'recorded', now() + interval '1 day')`)
}

// unstable are the texts that differ each time; what they are replaced by stands for all
// of them, or with a # for the first, second … different one in an answer.
var unstable = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID#"},
	{regexp.MustCompile(`\b[0-9a-f]{16,64}\b`), "HEX#"},
	{regexp.MustCompile(`\bloom_[A-Za-z0-9_-]{4,}`), "TOKEN"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):[0-9]+`), "HOST"},
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(Z|[+-][0-9:]+)?( UTC)?`), "TIME"},
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}`), "DAY"},
	{regexp.MustCompile(`\b((Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, )?[0-9]{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*( 20[0-9]{2})?\b`), "DAY"},
	{regexp.MustCompile(`\b1[0-9]{12}\b`), "MILLIS"},
	{regexp.MustCompile(`\b[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?\b`), "CLOCK"},
	{regexp.MustCompile(`(just now|\b(about )?([0-9]+|an?) (second|minute|hour|day)s? ago|in ([0-9]+|an?) (second|minute|hour|day)s?)`), "AGE"},
	{regexp.MustCompile(`\b[0-9.]+ ?(ms|s|min|h|d)\b( [0-9]+ (ms|s|min|h)\b)*`), "DURATION"},
	{regexp.MustCompile(`/tmp/loom-e2e-[0-9]+`), "DIR"},
	{regexp.MustCompile(`\b(after|before)=[A-Za-z0-9_%=-]{6,}`), "CURSOR"},
	{regexp.MustCompile(`"(expected|duration)Ms": [0-9]+`), "MILLIS"},
	{regexp.MustCompile(`data-cursor="[^"]*"`), "data-CURSOR"},
	{regexp.MustCompile(`SHA256:[A-Za-z0-9+/]{43}`), "SHA256"},
	{regexp.MustCompile(`(?s)-----BEGIN .*?-----END`), "KEY"},
	{regexp.MustCompile(`\b[a-z0-9]{5}(-[a-z0-9]{5}){3}\b`), "PASSWORD"},
	{regexp.MustCompile(`\b[0-9.]+ [KMG]iB\b`), "SIZE"},
	{regexp.MustCompile(`\b198\.1[89]\.[0-9]+\.[0-9]+\b`), "IP#"},
	{regexp.MustCompile(`\b1[0-9]{9}\b`), "SECONDS"},
	{regexp.MustCompile(`\b[0-9]+\.[0-9]+ node-hours`), "NODE-HOURS"},
	// Only charts of what took its time have such; those of plans have whole numbers.
	{regexp.MustCompile(`\b(x|y|x1|x2|y1|y2|cx|cy|width|height|points|d|style)="[^"]*[0-9]\.[0-9][^"]*"`), "GEOMETRY"},
	{regexp.MustCompile(`/static/[0-9a-f]{12}/`), "/static/BUILD/"},
	{regexp.MustCompile(`data-(age|tick|next|session-left|left|since|elapsed|now|at|seconds)="-?[0-9.]+"`), "data-TIME"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [0-9]{1,2} [A-Z][a-z]{2}( 20[0-9]{2})?`), "DAY"},
	{regexp.MustCompile(`\b(vm|web|scheduler|provisioner)-[0-9a-f]{8}\b`), "PROCESS#"},
}

func (r *recorder) stable(text string) string {
	for _, u := range unstable {
		known := map[string]string{}
		text = u.text.ReplaceAllStringFunc(text, func(found string) string {
			if known[found] == "" {
				known[found] = strings.ReplaceAll(u.by, "#", fmt.Sprint(len(known)+1))
			}
			return known[found]
		})
	}
	return text
}
