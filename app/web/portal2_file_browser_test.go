//go:build browser

package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/adminview"
	"loom/views/route"
)

// ofScript names a script.
func ofScript(name string) loom.ResourceRef {
	return loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: name}
}

// script stores a version of a script.
func (w *clusterWorld) script(name, text string, o catalog.UploadOptions) {
	w.t.Helper()
	_, err := w.catalog.UploadAs(w.ctx, w.actor("admin"), ofScript(name), strings.NewReader(text), o)
	w.must(err)
}

// withScripts registers the shell automator.
func (w *clusterWorld) withScripts() {
	w.t.Helper()
	w.must(w.catalog.RegisterTypes(w.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}, "ssh_keys": {Format: "file"}},
		Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{"script": {Label: "Script", Type: "text"}}}}}}))
}

// status is that of each version of a script.
func (w *clusterWorld) status(name string) string {
	w.t.Helper()
	list, err := w.catalog.Resources(w.ctx, w.actor("admin"), catalog.ResourceFilter{ResourceRef: ofScript(name)})
	w.must(err)
	var all []string
	for _, r := range list {
		all = append(all, string(r.Status()))
	}
	return strings.Join(all, " ")
}

// pressing counts what is pressed.
type pressing struct {
	browser.Hands
	n *int
}

func (p pressing) Activate(what, selector string) {
	*p.n++
	p.Hands.Activate(what, selector)
}

// write puts a text in the place of what the editor holds, as a paste does.
func write(b *browser.Browser, hands browser.Hands, text string) {
	hands.Fill("the text", "textarea[name=text]", "x")
	b.Do("select all", chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.Do("paste", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// TestFailedScriptIsMended: from a failed task to the cluster that runs again it takes two
// presses on two pages, with scripts and without. Other staged files stay so.
func TestFailedScriptIsMended(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]browser.Options{"wide": {Width: 1440}, "phone": {Width: 390}, "no scripts": {Width: 1440, NoScript: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newClusterWorld(t)
			w.withScripts()
			w.script("nginx.sh", "#!/bin/sh\nset -eu\nconfigre\n", catalog.UploadOptions{Release: true})
			w.script("other.sh", "echo", catalog.UploadOptions{Stage: true})
			op := w.create("shop", 2)
			tasks, err := w.clusters.Tasks(w.ctx, w.actor("ana"), op, clusters.TaskFilter{})
			w.must(err)
			at := slices.IndexFunc(tasks, func(t loom.Task) bool { return t.Service == "nginx" })
			w.runSome(op, at, 0)
			w.log(tasks[at].Ref, "stderr", "/var/cache/loom/nginx.sh: 3: /var/cache/loom/nginx.sh: configre: not found")
			w.fail(tasks[at].Ref, "nginx.sh exited with 127")
			b, base := w.browse(t, "admin", o)
			presses, cluster := 0, base+route.Cluster(op.Cluster)
			var hands browser.Hands = pressing{b.PatientKeyboard(200), &presses}
			b.Open(cluster)
			hands.Activate("Edit nginx.sh", `#cluster-operation a[href*="/admin/resources/show"]`)
			b.WaitText("Line 3: “configre: not found”")
			if !o.NoScript {
				b.Inspect("the editor after a failure", 390, 320)
				b.Size(int64(o.Width))
			}
			write(b, hands, "#!/bin/sh\nset -eu\necho configure\n")
			hands.Activate("Save, release and retry", `button[form=file-editor][data-kind=primary]`)
			b.Wait("the cluster", func() bool { return b.URL() == cluster })
			b.WaitText("Released nginx.sh v2. Retrying.")
			if presses > 4 {
				t.Errorf("it took %d presses", presses)
			}
			if got := w.status("nginx.sh") + ", " + w.status("other.sh"); got != "inactive active, staged" {
				t.Errorf("the files are %s", got)
			}
			if v := w.cluster(op.Cluster); v.Status != loom.ClusterPending || v.LatestOperation != 2 {
				t.Errorf("the cluster is %s by operation %d", v.Status, v.LatestOperation)
			}
			w.finish(loom.OperationRef{Cluster: op.Cluster, Number: 2}, loom.ClusterActive)
		})
	}
}

// TestWaitingScriptIsMended: who mends a script before it is given up needs not wait for the next
// attempt, and the panel with what it said stays within its column.
func TestWaitingScriptIsMended(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withScripts()
	w.script("nginx.sh", "#!/bin/sh\nconfigre\n", catalog.UploadOptions{Release: true})
	op := w.create("shop", 2)
	at := w.waitingTask(op)
	w.db.MustExec(`UPDATE attempts SET stderr = '/var/cache/loom/shell/scripts/nginx.sh: 2: /var/cache/loom/shell/scripts/nginx.sh: configre: not found in any of the folders that were searched'`)
	b, base := w.browse(t, "admin", browser.Options{Width: 1440})
	for _, width := range []int64{1440, 390} {
		b.Size(width)
		b.Open(base + route.Cluster(op.Cluster))
		b.WaitLoaded()
		if outside := runOn(b, `[...document.querySelectorAll("#cluster-operation *")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > document.querySelector("#cluster-operation").getBoundingClientRect().right + 1).length`); outside != "0" {
			t.Errorf("%d wide: %s elements stick out of the panel", width, outside)
		}
	}
	b.Size(1440)
	b.Open(base + adminview.FileAct(adminview.FileShow, ofScript("nginx.sh"), 0, adminview.FieldTask, at.String()))
	b.WaitText("Failed, will be retried")
	hands := b.PatientKeyboard(200)
	write(b, hands, "#!/bin/sh\nset -eu\necho configure\n")
	hands.Activate("Save, release and retry", `button[form=file-editor][data-kind=primary]`)
	b.WaitText("Released nginx.sh v2. Retrying.")
	if state := w.nextTry(at); b.URL() != base+route.Cluster(op.Cluster) || state != "available" {
		t.Errorf("at %s the next attempt is %s", b.URL(), state)
	}
}

// TestFileEditor: keys save and indent, Tab leaves the field; the text is in colors and is
// checked as it is typed; what is released says who gets it.
func TestFileEditor(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withScripts()
	w.script("nginx.sh", "#!/bin/sh\necho one\n", catalog.UploadOptions{Release: true})
	w.script("front.sh", "#!/bin/sh\n. ./nginx.sh\n", catalog.UploadOptions{Release: true})
	id := w.active("shop", 3)
	w.setUpWith(id, "nginx", "nginx.sh")
	b, base := w.browse(t, "admin", browser.Options{Width: 1440})
	hands := b.PatientKeyboard(200)
	const area = "textarea[name=text]"
	at := base + adminview.File(ofScript("nginx.sh"), 0)
	b.Open(at)
	b.WaitFor(".c-editor-copy .hljs-built_in")
	b.WaitText("Shell: no errors")
	write(b, hands, "#!/bin/sh\nif true; then\n")
	b.WaitText("Shell, line 2: “then” must be followed by a statement list")
	if over := runOn(b, `String(Math.round(document.querySelector("#file-check").getBoundingClientRect().bottom - innerHeight))`); !strings.HasPrefix(over, "-") {
		t.Errorf("what the check says ends %s px below the window", over)
	}
	b.Inspect("the editor", 390, 320)
	b.Size(1440)
	write(b, hands, "#!/bin/sh\necho two\n")
	b.WaitText("Shell: no errors")
	pressKeys(b, kb.Tab)
	b.Wait("Tab leaves", func() bool { return !b.Has(area + ":focus") })
	b.Do("focus", chromedp.Focus(chromedp.CSS(area)))
	b.Do("Ctrl+M", chromedp.KeyEvent("m", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.WaitText("Tab indents")
	pressKeys(b, kb.Tab)
	b.Wait("Tab indents", func() bool { return strings.Contains(b.Value(area), "  ") })
	b.Do("Ctrl+S", chromedp.KeyEvent("s", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.WaitText("Saved nginx.sh v2.")
	if got := w.status("nginx.sh"); got != "active inactive" {
		t.Errorf("after Ctrl+S the versions are %s", got)
	}
	b.WaitText("This is v2. v1 is in use.")
	hands.Activate("Save and release", `button[form=file-editor][data-kind=primary]`)
	b.WaitText(fmt.Sprintf("Released nginx.sh v2. %d nodes get it with their next task.", w.nodesWith(id, "nginx")))
	if got := w.status("nginx.sh"); got != "inactive active" {
		t.Errorf("after the release the versions are %s", got)
	}
	hands.Activate("v1", "aside details summary")
	hands.Activate("Update shop", `aside a[href="`+route.ClusterVerb(id, "update")+`"]`)
	b.WaitText("newer files: nginx.sh v2")

	b.Open(base + adminview.File(ofScript("nginx.sh"), 2))
	hands.Activate("the menu", "button[popovertarget=file-menu]")
	hands.Activate("Withdraw", `.c-menu-item[href*="/withdraw"]`)
	b.WaitFor("#dialog[open]:not(.htmx-settling) form")
	for _, used := range []string{"nginx", "front.sh", "in its text"} {
		if !strings.Contains(b.TextOf("#dialog"), used) {
			t.Errorf("the question does not name %s: %s", used, b.TextOf("#dialog"))
		}
	}
	b.Inspect("the question", 390)
	b.Size(1440)
	hands.Activate("withdraw", "#dialog .c-dialog-foot button[type=submit]")
	b.WaitText("Withdrew nginx.sh v2.")
	b.Open(base + route.AdminResources())
	b.Inspect("the list", 390, 320)
	b.Open(base + adminview.FileNew(loom.ResourceRef{}))
	b.Inspect("the form of a new file", 390, 320)
}

// TestFilesWithoutScripts: a plain form writes, stages and releases a file; secrets are not shown.
func TestFilesWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withScripts()
	b, base := w.browse(t, "admin", browser.Options{Width: 390, NoScript: true})
	hands := b.PatientKeyboard(200)
	b.Open(base + route.AdminResources())
	hands.Activate("New file", ".l-page-head a[data-kind=primary]")
	hands.Fill("the name", "input[name=name]", "new.sh")
	write(b, hands, "#!/bin/sh\n(\n")
	hands.Activate("Save and release", "#file-editor button[data-kind=primary]")
	b.WaitText("Released new.sh v1.")
	b.WaitText("Shell, line 2: ")
	write(b, hands, "#!/bin/sh\necho\n")
	hands.Activate("the menu", "button[popovertarget=file-menu]")
	hands.Activate("Save and stage", `.c-menu-item[formaction*="do=stage"]`)
	b.WaitText("Staged new.sh v2.")
	if got := w.status("new.sh"); got != "recalled staged" {
		t.Errorf("the versions are %s", got)
	}
	secret := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "ssh_keys", Name: "key"}
	_, err := w.catalog.UploadAs(w.ctx, w.actor("admin"), secret, strings.NewReader("planted-marker-8"), catalog.UploadOptions{Release: true})
	w.must(err)
	b.Open(base + adminview.File(secret, 0))
	b.WaitText("A secret is sealed and never shown.")
	w.get("admin", adminview.File(secret, 0)).lacks("planted-marker-8", "textarea")
}

// setUpWith says that the nodes of a cluster with a service were set up with the version of a
// script that is in use.
func (w *clusterWorld) setUpWith(id loom.ClusterID, service, script string) {
	w.t.Helper()
	w.db.MustExec(`UPDATE nodes SET service_files = jsonb_build_object($2::text, jsonb_build_object('install', jsonb_build_object('shell/scripts/' || $3::text,
		(SELECT sha256 FROM resources WHERE name = $3 AND live)))) WHERE cluster_id = $1 AND $2 = ANY (services)`, int64(id), service, script)
}

func (w *clusterWorld) nodesWith(id loom.ClusterID, service string) int {
	n := 0
	for _, node := range w.cluster(id).Nodes {
		if slices.Contains(node.Services, service) {
			n++
		}
	}
	return n
}
