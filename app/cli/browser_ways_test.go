//go:build e2e && browser

package cli

import (
	"fmt"
	"syscall"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
)

// wantedCatalog has a service that starts only where its arguments and the config are
// right; what is wrong is final.
func wantedCatalog(admin *client) {
	admin.t.Helper()
	const scripts = "/v2/plugins/automatortypes/shell/scripts/wanted.sh"
	var stored struct{ Version int }
	admin.call("POST", scripts, "#!/bin/sh\n[ \"$1\" = start ] || { echo \"no such thing as $1\" >&2; exit 64; }\n"+
		"[ \"$(loom_lookup_key '^/config/cluster/licence$' '')\" = yours ] || { echo 'the licence is wrong' >&2; exit 78; }\n", &stored)
	admin.call("POST", fmt.Sprintf("%s/versions/%d/stage", scripts, stored.Version), nil, nil)
	admin.call("POST", "/v2/plugins/sync", nil, nil)
	admin.call("POST", "/v2/services", wantedService("strat"), nil)
	admin.call("POST", "/v2/clustertemplates", `{"name": "wanted-cluster", "defaults": {"services": ["wanted"], "provider": "local",
		"hardwaretype": "local-small", "imagetype": "debian12", "config": {"licence": "theirs"}},
		"compatibility": {"hardwaretypes": ["local-small"], "imagetypes": ["debian12"], "services": ["wanted"]},
		"constraints": {"size": {"min": 1, "max": 5}}, "administration": {"leaseduration": {"initial": 0, "max": 0, "step": 0}}}`, nil)
}

func wantedService(args string) string {
	return `{"name": "wanted", "provisioner": {"actions": {"start": {"type": "shell", "fields": {"script": "wanted.sh", "args": "` + args + `"}}}}}`
}

// typoCatalog has a service whose script has a typo, which is final.
func typoCatalog(admin *client) {
	admin.t.Helper()
	const scripts = "/v2/plugins/automatortypes/shell/scripts/typed.sh"
	var stored struct{ Version int }
	admin.call("POST", scripts, "#!/bin/sh\necoh started || exit 64\n", &stored)
	admin.call("POST", fmt.Sprintf("%s/versions/%d/stage", scripts, stored.Version), nil, nil)
	admin.call("POST", "/v2/plugins/sync", nil, nil)
	admin.call("POST", "/v2/services", `{"name": "typed", "provisioner": {"actions": {"start": {"type": "shell", "fields": {"script": "typed.sh"}}}}}`, nil)
	admin.call("POST", "/v2/clustertemplates", `{"name": "typed-cluster", "defaults": {"services": ["typed"], "provider": "local", "hardwaretype": "local-small", "imagetype": "debian12"},
		"compatibility": {"hardwaretypes": ["local-small"], "imagetypes": ["debian12"], "services": ["typed"]},
		"constraints": {"size": {"min": 1, "max": 5}}, "administration": {"leaseduration": {"initial": 0, "max": 0, "step": 0}}}`, nil)
}

// counting counts how often something is pressed.
type counting struct {
	browser.Hands
	presses *int
}

// Activate uses a link or button.
func (c counting) Activate(what, selector string) {
	*c.presses++
	c.Hands.Activate(what, selector)
}

// mendScript saves a cluster whose create failed for a typo in a script: from its page to the
// editor, which saves, releases and retries.
func (j *journey) mendScript(admin *client) {
	typoCatalog(admin)
	id := j.user().create("typed-cluster", 1, nil)
	j.user().waitStatus(id, loom.ClusterIncomplete)
	cluster, presses, hands := "/clusters/"+id, 0, j.hands
	j.hands = counting{hands, &presses}
	j.b.Open(j.url + cluster)
	j.hands.Activate("Edit typed.sh", `#cluster-operation a[href*="/admin/resources/show"]`)
	j.at("the editor", `^/admin/resources/show`)
	j.b.WaitText("Line 2: “ecoh: not found”")
	j.faultless("the editor after a failure")
	j.hands.Fill("the script", "textarea[name=text]", "#!/bin/sh\necho started || exit 64\n")
	j.hands.Activate("Save, release and retry", "button[form=file-editor][data-kind=primary]")
	j.at("the cluster", `^`+cluster+`$`)
	j.user().waitActive(id)
	if presses > 4 {
		j.t.Errorf("it took %d presses", presses)
	}
	j.hands = hands
	j.user().remove(id)
}

// TestBrowserWaysOut saves a cluster whose create failed twice, first for a typo, then
// for its config: three presses each. A machine that was killed is shrunk away. Another
// cluster is saved by mending its script.
func TestBrowserWaysOut(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{})
	admin := j.client("demo", "admin", "admin")
	wantedCatalog(admin)
	id := j.user().create("wanted-cluster", 2, nil)
	j.user().waitStatus(id, loom.ClusterIncomplete) // at once: such a failure is final
	admin.call("PUT", "/v2/services/wanted", wantedService("start"), nil)
	j.signIn("admin")
	cluster := "/clusters/" + id
	j.b.Open(j.url + cluster)
	j.hands.Activate("Retry with wanted v2", "#cluster-operation a[data-kind=primary]")
	j.at("the form", cluster+`/operations/1/retry`)
	j.b.WaitText("version 1 → 2")
	j.faultless("the form with a newer version")
	j.hands.Activate("Preview", "form[action='/previews'] button[data-kind=primary]")
	preview := j.at("the preview", `^/previews/`)
	j.hands.Activate("Retry", "form[action='"+preview+"/apply'] button[data-kind=primary]")
	j.at("the cluster", `^`+cluster+`$`)
	j.user().waitStatus(id, loom.ClusterIncomplete)
	j.b.Open(j.url + cluster)
	j.b.WaitText("the licence is wrong")
	j.hands.Activate("Change config and retry", "#cluster-operation a[data-kind=primary]")
	j.at("the form", cluster+`/operations/2/retry`)
	j.hands.Fill("the config", "textarea[name=config]", `{"licence": "yours"}`)
	j.hands.Activate("Preview", "form[action='/previews'] button[data-kind=primary]")
	preview = j.at("the preview", `^/previews/`)
	j.hands.Activate("Retry", "form[action='"+preview+"/apply'] button[data-kind=primary]")
	j.at("the cluster", `^`+cluster+`$`)
	j.user().waitActive(id)
	j.shows("Healthy")
	// One of the machines dies.
	dead := j.user().cluster(id).Nodes[0].ID
	m, there := j.machines()[loom.IdempotencyKey(dead, 1)]
	if !there {
		t.Fatalf("node %s has no machine", dead)
	}
	if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.b.Open(j.url + cluster + "/scale?leave=" + string(dead))
	j.hands.Activate("dead", "input[name=dead]")
	j.hands.Activate("Preview", "form[action='/previews'] button[data-kind=primary]")
	preview = j.at("the preview", `^/previews/`)
	j.b.WaitText("counts as dead")
	j.hands.Fill("the name", "input[name=confirm]", j.user().cluster(id).Name)
	j.hands.Activate("Shrink", "form[action='"+preview+"/apply'] button[type=submit]")
	j.at("the cluster", `^`+cluster+`$`)
	j.user().waitActive(id)
	j.user().remove(id)
	j.mendScript(admin)
	j.quiet()
}
