//go:build e2e && browser

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/app/wiring"
)

// journey is the way of a person through the pages, from the sign-in to the end
// of a cluster.
type journey struct {
	*world
	b     *browser.Browser
	hands browser.Hands
	// scripts tells whether pages change by themselves; else they are reloaded.
	scripts bool
}

// signIn signs a user of demo in, with the password made up at the first start.
func (j *journey) signIn(user string) {
	j.t.Helper()
	j.b.Open(j.url + "/")
	j.at("the sign-in page", `^/login`)
	j.hands.Fill("the user name", "input[name=user]", user)
	j.hands.Fill("the password", "input[name=password]", j.password("demo", user))
	j.hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	j.at("the home page", `^/$`)
}

// password reads the file of sign-ins, which forgets those that were used.
func (w *world) password(tenant, user string) string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.passwords[tenant+"/"+user]; known != "" {
		return known
	}
	text, err := os.ReadFile(filepath.Join(w.dir, wiring.SignInFile))
	if err != nil {
		w.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + tenant + ` ` + user + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		w.t.Fatalf("no sign-in of %s in %s", user, tenant)
	}
	if w.passwords == nil {
		w.passwords = map[string]string{}
	}
	w.passwords[tenant+"/"+user] = string(m[1])
	return string(m[1])
}

// at waits until the browser is at a path.
func (j *journey) at(what, pattern string) string {
	j.t.Helper()
	r, path := regexp.MustCompile(pattern), ""
	j.b.Wait(what, func() bool {
		path = strings.TrimPrefix(j.b.URL(), j.url)
		return r.MatchString(path)
	})
	if j.scripts { // what is typed before they are there is not noticed
		j.b.WaitLoaded()
	}
	return path
}

// shows waits until the page shows a text; without scripts it is loaded again
// and again.
func (j *journey) shows(text string) {
	j.t.Helper()
	if j.scripts {
		j.b.WaitText(text)
	} else {
		j.b.ReloadUntil(text)
	}
}

// create makes a web cluster through form and preview and gives its id.
func (j *journey) create(name string) string {
	j.t.Helper()
	j.hands.Activate("New cluster", "a[href='/clusters/new']")
	j.at("the form", `^/clusters/new`)
	j.b.WaitLoaded()
	j.hands.Choose("the template", "input[name=clusterTemplate][value=web-cluster]")
	if !j.scripts {
		j.hands.Activate("Use this template", "noscript button[value=check], button[value=check]")
	}
	j.b.WaitFor("input[name=for][value=web-cluster]")
	j.hands.Fill("the number of nodes", "#f-numMachines", "1")
	if j.scripts {
		j.b.WaitText("Enter 2–500 nodes.") // why not, as one types
	}
	j.hands.Fill("the number of nodes", "#f-numMachines", "3")
	j.hands.Fill("the name", "#f-name", name)
	if j.scripts {
		j.b.WaitText("3 nodes, 2 services")
	}
	j.hands.Activate("Preview", "form[action='/previews'] button[data-kind=primary]")
	preview := j.at("the preview", `^/previews/`)
	j.b.WaitText("Creates 3 nodes, installs 2 services.")
	j.hands.Activate("Create", "form[action='"+preview+"/apply'] button[data-kind=primary]")
	return strings.TrimPrefix(j.at("the cluster", `^/clusters/[0-9]+$`), "/clusters/")
}

// look watches the cluster become active, sees its plan and a log, and uses it.
func (j *journey) look(id string) {
	j.t.Helper()
	j.shows("Healthy")
	cluster := j.user().cluster(id)
	if cluster.Status != loom.ClusterActive {
		j.t.Errorf("the page says Active, the API %s", cluster.Status)
	}
	j.servesFromAll(cluster)
	for _, link := range cluster.Links {
		j.b.WaitFor("a[href='" + link.URL + "']")
	}
	j.hands.Activate("History", "a[href='/clusters/"+id+"/operations']")
	j.at("the history", `/operations$`)
	operation := "/clusters/" + id + "/operations/1"
	j.hands.Activate("the operation", "main a[href^='"+operation+"']")
	j.at("the plan", `/operations/1`)
	j.b.WaitFor("svg a[href*='" + operation + "/tasks/']")
	task := operation + "/tasks/1"
	j.hands.Activate("a task in the graph", "a[href^='"+task+"']")
	j.at("the task", task)
	j.b.WaitText("Complete")
	j.b.WaitText("gets the address") // a line of the log
	j.b.Open(j.url + "/clusters/" + id)
	j.at("the cluster", `^/clusters/[0-9]+$`)
}

// remove deletes the cluster by typing its name.
func (j *journey) remove(id, name string) {
	j.t.Helper()
	j.hands.Activate("the menu", "button[popovertarget=cluster-menu]")
	j.hands.Activate("Delete", "a[href='/clusters/"+id+"/delete']")
	j.b.WaitFor("input[name=confirm]")
	j.hands.Fill("the name to confirm", "input[name=confirm]", name)
	j.hands.Activate("Delete the cluster", "form[action='/clusters/"+id+"/delete'] button[data-confirm]")
	j.at("the cluster", `^/clusters/[0-9]+$`)
	j.shows("Terminated")
	j.noMachines()
}

// quiet checks that the browser had nothing to complain about, and that it told
// the server of no content that the policy refused.
func (j *journey) quiet() {
	j.t.Helper()
	for _, c := range j.b.Complaints() {
		j.t.Errorf("the browser complains: %s", c)
	}
	for _, p := range j.processes {
		for _, line := range strings.Split(p.output(), "\n") {
			if strings.Contains(line, "csp") && strings.Contains(line, "level=WARN") {
				j.t.Errorf("refused content: %s", line)
			}
		}
	}
}

// newJourney starts an instance with some settings, and a browser beside it.
func newJourney(t *testing.T, o browser.Options, settings ...string) *journey {
	t.Helper()
	w := newWorld(t, settings...)
	w.up()
	b := browser.New(t, o)
	return &journey{world: w, b: b, hands: b.Mouse(), scripts: !o.NoScript}
}

func (j *journey) whole() {
	j.t.Helper()
	j.signIn("user")
	id := j.create("shop")
	j.look(id)
	j.remove(id, "shop")
	j.quiet()
}

// TestBrowserMouse goes the whole way with mouse and scripts.
func TestBrowserMouse(t *testing.T) {
	t.Parallel()
	newJourney(t, browser.Options{}).whole()
}

// TestBrowserKeyboard goes the whole way without ever pointing.
func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{})
	j.hands = j.b.Keyboard()
	j.whole()
}

// TestBrowserNoScript goes the whole way with JavaScript off.
func TestBrowserNoScript(t *testing.T) {
	t.Parallel()
	newJourney(t, browser.Options{NoScript: true}).whole()
}

// TestBrowserAfterRestart leaves a page open while the process that serves it is killed
// in the middle of an operation and another takes its place: the page goes on by itself,
// to the end of that operation and through the next one.
func TestBrowserAfterRestart(t *testing.T) {
	t.Parallel()
	p := newProcfile(t)
	b := browser.New(t, browser.Options{})
	j := &journey{world: p.world, b: b, hands: b.Mouse(), scripts: true}
	j.signIn("user")
	id := j.create("shop")
	p.inTheMiddle(id, 2)
	p.pages.kill(t, syscall.SIGKILL)
	p.pages.waitEnd(t)
	p.pages = p.web()
	p.user.waitActive(id)
	began := time.Now()
	j.b.WaitText("Healthy")
	t.Logf("the open page knew that the cluster is active after %s", time.Since(began))
	p.user.call("DELETE", "/v2/clusters/"+id, nil, nil)
	began = time.Now()
	j.b.WaitText("Terminated")
	t.Logf("the open page knew that it is terminated after %s", time.Since(began))
	p.noMachines()
}

// TestBrowserFaults scans what TestEveryPage does not see: pages of somebody who is not
// signed in, an operation at work, and what the starter catalog and its machines fill
// pages with, in light and dark colors.
func TestBrowserFaults(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{})
	scan := func(paths ...string) {
		for _, path := range paths {
			j.b.Open(j.url + path)
			j.b.Inspect(path)
		}
	}
	scan("/login", "/login?other=1")
	j.signIn("admin")
	id := j.user().create("web-cluster", 2, nil)
	preview := j.client("demo", "admin", "clusters:write")
	var made struct{ ID string }
	preview.call("POST", "/v2/previews", map[string]any{"kind": "create", "request": map[string]any{
		"name": "later", "clusterTemplate": "visit-counter", "numMachines": 3}}, &made)
	cluster := "/clusters/" + id
	scan("/", cluster, cluster+"/operations/1")
	j.user().waitActive(id)
	scan("/clusters/new?template=web-cluster", "/previews/"+made.ID, cluster, cluster+"/nodes", cluster+"/operations/1/tasks/1",
		"/catalog", "/catalog/web-cluster", "/admin/services/nginx/edit", "/admin/providers", "/no-such-page")
	for _, c := range j.b.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
	j.user().remove(id)
	j.noMachines()
}
