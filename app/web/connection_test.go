package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/remote/sshtest"
)

// stackAsker asks an OpenStack, with the files of a directory.
type stackAsker struct {
	*cloud.Provider
	files string
}

func (a stackAsker) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	call.Reach = loom.Anywhere()
	return a.Provider.Probe(provider.WithEnv(ctx, provider.Env{Files: a.files}), call)
}

func (stackAsker) Machines(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, bool, error) {
	return nil, false, nil
}

func (stackAsker) Remove(context.Context, *loom.ProviderCall, loom.TaggedMachine, bool) error {
	return nil
}

// withStack starts the fake cloud of an OpenStack and what a provisioner does with tests, and
// gives the address of Keystone.
func (r *rooms) withStack() string {
	r.t.Helper()
	check(r.t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{openstack.Type()}, nil))
	r.catalog.PlainHTTP = true
	files, key := r.t.TempDir(), sshtest.NewKey(r.t, "ed25519", "")
	check(r.t, os.Mkdir(filepath.Join(files, "ssh_keys"), 0o700))
	check(r.t, os.WriteFile(filepath.Join(files, "ssh_keys", "lab-key"), []byte(key.PEM), 0o600))
	dialect := stack.New()
	dialect.PublicKey = key.Authorized
	api := fakecloud.New(dialect, nil)
	r.t.Cleanup(api.Close)
	process, err := r.processes.Register(r.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1})
	check(r.t, err)
	ctx, cancel := context.WithCancel(r.ctx)
	over := make(chan struct{})
	r.t.Cleanup(func() { cancel(); <-over })
	asker := stackAsker{openstack.New(cloud.Options{Insecure: true}).Provider, files}
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			var id int64
			err := r.db.GetContext(ctx, &id, `DELETE FROM river_job WHERE id = (SELECT min(id) FROM river_job WHERE kind = 'probe_provider') RETURNING (args->>'request_id')::bigint`)
			if err == nil {
				err = r.processes.WorkRequest(ctx, process, id, asker)
			}
			if err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	}()
	return api.URL() + "/v3"
}

// TestConnectionWithoutScripts: the answer has a page of its own, which is fetched again until
// the test has ended, and the form stays as it is; nothing is stored of what was typed.
func TestConnectionWithoutScripts(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin := r.signedIn("demo", "admin")
	values := testkit.FormValues(t, admin.get("/admin/providers/new").shows(t, 200, "Test connection", "Not tested", `formtarget="_blank"`).body, "editor")
	values.Set("providertype", "openstack")
	values.Set("name", "stack")
	admin.send("/admin/tests", values).shows(t, 503, "No provisioner is running. Start one with")
	keystone := r.withStack()
	for field, value := range map[string]string{"openstack_auth_url": keystone, "api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project} {
		values.Set("provisioner."+field, value)
	}
	// As the form is once the type was chosen.
	page := admin.send("/admin/providers/new", values)
	chosen := testkit.FormValues(t, page.body, "editor")
	for field, value := range map[string]string{"openstack_auth_url": keystone, "api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project} {
		chosen.Set("provisioner."+field, value)
	}
	follow := func(values url.Values) answer {
		t.Helper()
		began := admin.send("/admin/tests", values)
		if began.status != http.StatusSeeOther {
			t.Fatalf("the test gave %d: %s", began.status, began.body)
		}
		at := began.location
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
			if got := admin.get(at); !strings.Contains(got.body, `http-equiv="refresh"`) {
				return got
			}
		}
		t.Fatal("the test does not end")
		return answer{}
	}
	follow(chosen).shows(t, 200, "Passed", "Sign in", "Keystone takes the credentials.", stack.LabNet, "network_ids").hides(t, stack.Password)
	chosen.Set("provisioner.api_password", "wrong-password")
	follow(chosen).shows(t, 200, "Failed", "refuses the credentials", "Sizes, images", "Not reached.").hides(t, "wrong-password")
	chosen.Set("provisioner.openstack_auth_url", "ftp://x")
	admin.send("/admin/tests", chosen).shows(t, 422, "Not tested", "Keystone URL:").hides(t, "wrong-password")
	admin.get("/admin/providers").shows(t, 200, "Connection", "Not tested").hides(t, ">stack<")
	user := r.signedIn("demo", "user")
	user.send("/admin/tests", chosen).shows(t, 403)
}

// TestSavedSince: pages say that a provider was saved since its test only if it was. A test of the
// form before the save is one of what was saved.
func TestSavedSince(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	keystone, admin := r.withStack(), r.signedIn("demo", "admin")
	actor := loom.Actor{Tenant: r.tenantID("demo"), TenantName: "demo", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	provider := func(label string) []byte {
		body, err := json.Marshal(map[string]any{"name": "stack", "label": label, "providertype": "openstack", "provisioner": map[string]any{"openstack_auth_url": keystone,
			"api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project}})
		check(t, err)
		return body
	}
	save := func(label string) {
		t.Helper()
		entry, err := catalog.Decode(loom.KindProvider, provider(label))
		check(t, err)
		_, _, err = r.catalog.Save(r.ctx, actor, loom.KindProvider, catalog.SaveInput{Entry: entry})
		check(t, err)
	}
	ends := func(id int64, err error) {
		t.Helper()
		check(t, err)
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
			run, err := r.processes.ProbeByID(r.ctx, actor, id)
			check(t, err)
			if run.Ended {
				return
			}
		}
		t.Fatal("the test does not end")
	}
	pages := func(since bool) {
		t.Helper()
		for _, path := range []string{"/admin/providers", "/admin/providers/stack", "/admin/providers/stack/test"} {
			if says := strings.Contains(admin.get(path).shows(t, 200, "Passed").body, "saved since"); says != since {
				t.Errorf("%s says that the provider was saved since: %t", path, says)
			}
		}
	}
	draft, err := r.catalog.ProviderDraft(r.ctx, actor, provider("One"))
	check(t, err)
	ends(r.processes.BeginDraft(r.ctx, actor, draft))
	save("One")
	pages(false)
	save("Two")
	pages(true)
	ends(r.processes.BeginProbe(r.ctx, actor, "stack"))
	pages(false)
}
