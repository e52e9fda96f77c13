package web_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/adminview"
	"loom/views/route"
)

// TestFileWhileBucketFails: a file that cannot be stored is refused with the cause and the remedy,
// what was written is still in the form, and the version in use stays so, with whatever button.
func TestFileWhileBucketFails(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}},
		Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{"script": {Label: "Script", Type: "text"}}}}}}))
	v := r.signedIn("demo", "admin")
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: "own.sh"}
	_, err := r.catalog.UploadAs(r.ctx, v.actor("demo"), ref, strings.NewReader("echo one\n"), catalog.UploadOptions{Release: true})
	check(t, err)
	versions := func() string {
		t.Helper()
		list, err := r.catalog.Resources(r.ctx, v.actor("demo"), catalog.ResourceFilter{ResourceRef: ref})
		check(t, err)
		var all []string
		for _, r := range list {
			all = append(all, string(r.Status()))
		}
		return strings.Join(all, " ")
	}
	fields := testkit.FormValues(t, v.get(adminview.File(ref, 1)).shows(t, http.StatusOK, "echo one").body, "file-editor")
	fields.Set(adminview.FieldText, "echo two\n")
	fresh := testkit.FormValues(t, v.get(adminview.FileNew(loom.ResourceRef{})).body, "file-editor")
	fresh.Set(adminview.FieldName, "new.sh")
	fresh.Set(adminview.FieldText, "echo new\n")

	away := r.bucket + "-away"
	check(t, os.Rename(r.bucket, away))
	check(t, os.WriteFile(r.bucket, nil, 0o600))
	const cause = "File not saved. The file store does not work: "
	for _, do := range []string{adminview.DoSave, adminview.DoStage, adminview.DoRelease} {
		v.sendFiles(adminview.FileSave(do, ""), fields).shows(t, http.StatusServiceUnavailable, cause, "echo two")
		v.sendFiles(adminview.FileSave(do, ""), fresh).shows(t, http.StatusServiceUnavailable, cause, "echo new", `value="new.sh"`)
		if got := versions(); got != "active" {
			t.Errorf("after %q the versions are %s", do, got)
		}
	}
	v.get(adminview.File(ref, 1)).shows(t, http.StatusServiceUnavailable, "The file store does not work: ")
	v.get(route.AdminResources()).shows(t, http.StatusOK, "own.sh").hides(t, "new.sh")

	check(t, os.Remove(r.bucket))
	check(t, os.Rename(away, r.bucket))
	kept := testkit.FormValues(t, v.get(adminview.File(ref, 1)).shows(t, http.StatusOK, "echo one").body, "file-editor")
	kept.Set(adminview.FieldText, "echo two\n")
	v.sendFiles(adminview.FileSave(adminview.DoRelease, ""), kept)
	if got := versions(); got != "inactive active" && got != "active inactive" {
		t.Errorf("in the end the versions are %s", got)
	}
}
