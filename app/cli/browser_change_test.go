//go:build e2e && browser

package cli

import (
	"fmt"
	"os"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
)

// faultless demands that the page at hand has no accessibility fault in either colors.
func (j *journey) faultless(what string) {
	j.t.Helper()
	j.b.Inspect(what)
}

// TestBrowserScale adds a node to a cluster without ever pointing.
func TestBrowserScale(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{})
	j.hands = j.b.Keyboard()
	j.signIn("user")
	id := j.user().create("web-cluster", 2, nil)
	j.user().waitActive(id)
	cluster := "/clusters/" + id
	j.b.Open(j.url + cluster)
	j.hands.Activate("Scale", ".l-page-head a[href='"+cluster+"/scale']")
	j.at("the form", cluster+`/scale$`)
	j.hands.Fill("the number of nodes", "#f-numMachines", "1")
	j.b.WaitText("Cannot fit")
	j.hands.Fill("the number of nodes", "#f-numMachines", "3")
	j.b.WaitText("Adds 1 node")
	j.faultless("the form")
	j.hands.Activate("Preview", "form[action='/previews'] button[data-kind=primary]")
	preview := j.at("the preview", `^/previews/`)
	j.hands.Activate("Scale", "form[action='"+preview+"/apply'] button[data-kind=primary]")
	j.at("the cluster", `^`+cluster+`$`)
	j.shows("Healthy")
	j.user().waitActive(id)
	if n := len(j.user().cluster(id).Nodes); n != 3 {
		t.Errorf("the cluster has %d nodes, want 3", n)
	}
	j.user().call("DELETE", "/v2/clusters/"+id, nil, nil)
	j.shows("Terminated")
	j.quiet()
}

// TestBrowserRetry goes on with a create that failed, once its cause is mended.
func TestBrowserRetry(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{}, "LOOM_MAX_ATTEMPTS=1") // what fails here fails each time
	licensedCatalog(j.client("demo", "admin", "admin"))
	id := j.user().create("licensed-cluster", 1, nil)
	j.user().waitStatus(id, loom.ClusterIncomplete)
	for _, m := range j.machines() {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/root/etc/licence", m.PID), []byte("yours\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j.signIn("admin")
	cluster := "/clusters/" + id
	j.b.Open(j.url + cluster)
	j.hands.Activate("More ways out", "#cluster-operation [popovertarget=panel-menu]")
	j.hands.Activate("Retry", "#panel-menu a[href='"+cluster+"/operations/1/retry']")
	j.b.WaitFor("#dialog[open]:not(.htmx-settling) form[method=post]")
	j.faultless("the dialog")
	j.hands.Activate("Retry", "#dialog .c-dialog-foot button[type=submit]")
	j.b.Wait("the dialog to close", func() bool { return !j.b.Has("#dialog[open]") })
	j.at("the cluster", `^`+cluster+`$`)
	j.user().waitActive(id)
	j.shows("Healthy")
	j.user().remove(id)
	j.quiet()
}
