package static_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/static"
	"loom/provisioner/remote/sshtest"
)

// farm is a provider with real SSH servers.
type farm struct {
	t       *testing.T
	servers []*sshtest.Server
	ctx     context.Context
	fields  map[string]any
}

// newFarm starts machines; entry i of options stands behind the address of machine i.
func newFarm(t *testing.T, options ...string) *farm {
	t.Helper()
	f := &farm{t: t, fields: map[string]any{"ssh_user": "root", "ssh_password": sshtest.Password}}
	files := t.TempDir()
	if err := os.MkdirAll(filepath.Join(files, "ssh_keys"), 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, o := range options {
		s := sshtest.Start(t, sshtest.Options{Isolated: true})
		f.servers = append(f.servers, s)
		user := fmt.Sprintf("key%d", i)
		if err := os.WriteFile(filepath.Join(files, "ssh_keys", user), []byte(s.Key.PEM), 0o600); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s:%d user=%s %s", s.Address, s.Port, sshtest.SudoUser, o))
	}
	f.fields["hosts"] = "# of the laboratory\n" + strings.Join(lines, "\n") + "\n"
	f.ctx = provider.WithEnv(t.Context(), provider.Env{Files: files})
	return f
}

func (f *farm) id(i int) string {
	return fmt.Sprintf("%s:%d", f.servers[i].Address, f.servers[i].Port)
}

// held returns the key of the reservation on machine i, "" for none.
func (f *farm) held(i int) string {
	data, _ := os.ReadFile(filepath.Join(f.servers[i].Dir, "lib", "loom-node", "key"))
	return strings.TrimSpace(string(data))
}

func (f *farm) spec(node string, results map[string]any) *loom.TaskSpec {
	if results == nil {
		results = map[string]any{}
	}
	return &loom.TaskSpec{
		Reach:  loom.Anywhere(),
		Tenant: "lab", Node: loom.NodeID(node), Hostname: node + ".lab.example", IdempotencyKey: "key-of-" + node,
		Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 7, Number: 1}, Number: 1}, Flavor: "small", Image: "bookworm",
		Provider: loom.Provider{Base: loom.Base{Name: "lab"}, Type: static.TypeName, Fields: f.fields}, Results: results,
	}
}

func (f *farm) create(node string) (loom.TaskResult, *sshtest.Record) {
	f.t.Helper()
	s := &sshtest.Record{}
	r, err := static.New().Create(f.ctx, f.spec(node, nil), s)
	if err != nil {
		f.t.Fatal(err)
	}
	return r, s
}

func (f *farm) delete(node string, results map[string]any) (loom.TaskResult, *sshtest.Record) {
	f.t.Helper()
	s := &sshtest.Record{}
	r, err := static.New().Delete(f.ctx, f.spec(node, results), s)
	if err != nil {
		f.t.Fatal(err)
	}
	return r, s
}

func TestLifeOfAReservation(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "flavor=large", "flavor=small bind=192.0.2.9", "")
	r, s := f.create("n1")
	if r.Status != 0 || r.Result["providerid"] != f.id(1) || f.held(1) != "key-of-n1" {
		t.Fatalf("create gave %+v, held %q\n%s", r, f.held(1), s.Text())
	}
	if len(s.Facts()) != 1 || s.Facts()[0]["providerid"] != f.id(1) {
		t.Errorf("facts are %v", s.Facts())
	}
	if again, s := f.create("n1"); again.Result["providerid"] != f.id(1) || !strings.Contains(s.Text(), "already") {
		t.Errorf("the second create gave %+v\n%s", again, s.Text())
	}
	if second, _ := f.create("n2"); second.Result["providerid"] != f.id(2) {
		t.Errorf("the machine that fits all was not taken: %+v", second)
	}
	if third, _ := f.create("n3"); third.Status != 202 || !strings.Contains(third.Message, "all 2 are in use") {
		t.Errorf("a third node got %+v", third)
	}

	spec := f.spec("n1", r.Result)
	spec.OwnerKeys = []string{sshtest.NewKey(t, "ed25519", "").Authorized}
	confirmed, err := static.New().Confirm(f.ctx, spec, &sshtest.Record{})
	if err != nil || confirmed.Status != 0 || confirmed.Addresses[loom.AccessV4] != "127.0.0.1" || confirmed.Addresses[loom.BindV4] != "192.0.2.9" {
		t.Fatalf("confirm gave %+v, %v", confirmed, err)
	}
	keys := filepath.Join(f.servers[1].Dir, "home", sshtest.SudoUser, ".ssh/authorized_keys")
	if data, _ := os.ReadFile(keys); !strings.Contains(string(data), spec.OwnerKeys[0]) {
		t.Fatalf("the owner’s key is not on the machine: %q", data)
	}

	gone, s := f.delete("n1", r.Result)
	if gone.Status != 0 || f.held(1) != "" {
		t.Fatalf("delete gave %+v, held %q\n%s", gone, f.held(1), s.Text())
	}
	if id, there := gone.Result["providerid"]; !there || id != nil {
		t.Errorf("delete does not clear the facts: %v", gone.Result)
	}
	if data, _ := os.ReadFile(keys); strings.Contains(string(data), spec.OwnerKeys[0]) {
		t.Errorf("the owner keeps his way in: %q", data)
	}
	if again, _ := f.delete("n1", r.Result); again.Status != 0 || f.held(2) != "key-of-n2" {
		t.Errorf("the second delete gave %+v; machine 2 holds %q", again, f.held(2))
	}
	if other, _ := f.delete("n9", nil); other.Status != 0 || f.held(2) != "key-of-n2" {
		t.Errorf("delete without an id gave %+v; machine 2 holds %q", other, f.held(2))
	}
	if found, _ := f.delete("n2", nil); found.Status != 0 || f.held(2) != "" {
		t.Errorf("delete by key gave %+v; machine 2 holds %q", found, f.held(2))
	}
}

// TestResultsHoldNoPasswordOfTheProvider: whoever owns a node may see its sign-in, and the
// provider's opens all hosts.
func TestResultsHoldNoPasswordOfTheProvider(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "")
	created, s := f.create("n1")
	confirmed, err := static.New().Confirm(f.ctx, f.spec("n1", created.Result), s)
	if err != nil || created.Status != 0 || confirmed.Status != 0 { // by the password nevertheless
		t.Fatalf("create %+v, confirm %+v, %v", created, confirmed, err)
	}
	if shown := fmt.Sprint(created, confirmed, s.Facts()); strings.Contains(shown, sshtest.Password) {
		t.Errorf("the provider's password is in %s", shown)
	}
}

func TestManyNodesAtOnceNeverShareAMachine(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "", "", "")
	var wg sync.WaitGroup
	ids := make([]string, 5)
	for i := range ids {
		wg.Go(func() {
			r, err := static.New().Create(f.ctx, f.spec(fmt.Sprintf("n%d", i), nil), &sshtest.Record{})
			if err == nil && r.Status == 0 {
				ids[i] = r.Result["providerid"].(string)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, id := range ids {
		if id != "" && seen[id] {
			t.Errorf("%s was given twice: %v", id, ids)
		}
		seen[id] = true
	}
	for i := range f.servers {
		if f.held(i) == "" {
			t.Errorf("machine %d stayed free although 5 nodes wanted 3: %v", i, ids)
		}
	}
}

func TestUnreachableMachines(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "", "")
	f.servers[0].Refuse(1000)
	r, s := f.create("n1")
	if r.Status != 0 || r.Result["providerid"] != f.id(1) || !strings.Contains(s.Text(), "passed over") {
		t.Fatalf("create gave %+v\n%s", r, s.Text())
	}
	if second, _ := f.create("n2"); second.Status != 202 || !strings.Contains(second.Message, "do not answer") {
		t.Errorf("with one silent machine create gave %+v", second)
	}
	f.servers[1].Refuse(1000)
	if gone, _ := f.delete("n1", r.Result); gone.Status == 0 {
		t.Error("a machine that does not answer counts as given back")
	}
	if gone, _ := f.delete("n1", nil); gone.Status == 0 {
		t.Error("a delete without an id succeeded though no machine could be asked")
	}
}

// TestDeleteAtADeadMachine: the last try lets go of it and says that it was not cleaned;
// when it answers again, it is listed, and removing it cleans it.
func TestDeleteAtADeadMachine(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "")
	made, _ := f.create("n1")
	last := func() (loom.TaskResult, *sshtest.Record) {
		t.Helper()
		spec, s := f.spec("n1", made.Result), &sshtest.Record{}
		spec.LastTry = true
		r, err := static.New().Delete(f.ctx, spec, s)
		if err != nil {
			t.Fatal(err)
		}
		return r, s
	}
	f.fields["ssh_password"] = "wrong"
	if r, _ := last(); r.Status == 0 {
		t.Errorf("a machine that answers and refuses the sign-in was let go: %+v", r)
	}
	f.fields["ssh_password"] = sshtest.Password
	f.servers[0].Refuse(1000)
	if r, _ := f.delete("n1", made.Result); r.Status == 0 || r.Retryable != nil && !*r.Retryable {
		t.Errorf("a try before the last: %+v", r)
	}
	r, s := last()
	if cleared, there := r.Result["providerid"]; r.Status != 0 || !there || cleared != nil || !strings.Contains(r.Message, f.id(0)+" does not answer and was not cleaned") || !strings.Contains(s.Text(), "was not cleaned") {
		t.Errorf("the last try: %+v\n%s", r, s.Text())
	}
	f.servers[0].Refuse(0)
	call := &loom.ProviderCall{Tenant: "lab", Reach: loom.Anywhere(), Provider: f.spec("n", nil).Provider}
	list, err := static.New().List(f.ctx, call)
	if err != nil || len(list) != 1 || list[0].Key != "key-of-n1" {
		t.Fatalf("when it answers again: %+v, %v", list, err)
	}
	if r, s := f.delete("n1", map[string]any{"providerid": list[0].ID}); r.Status != 0 || f.held(0) != "" {
		t.Errorf("its removal: %+v, held %q\n%s", r, f.held(0), s.Text())
	}
}

func TestCleanUpScript(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "")
	files := provider.EnvOf(f.ctx).Files
	f.fields["cleanup_script"] = "wipe.sh"
	r, _ := f.create("n1")
	if gone, _ := f.delete("n1", r.Result); gone.Status == 0 || !strings.Contains(gone.Message, "wipe.sh") || f.held(0) == "" {
		t.Fatalf("without the script delete gave %+v, held %q", gone, f.held(0))
	}
	if err := os.MkdirAll(filepath.Join(files, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(body string) {
		if err := os.WriteFile(filepath.Join(files, "scripts", "wipe.sh"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("echo cannot >&2; exit 3")
	if gone, s := f.delete("n1", r.Result); gone.Status == 0 || !strings.Contains(gone.Message, "exited with 3: cannot") || f.held(0) == "" {
		t.Fatalf("a failing script gave %+v, held %q\n%s", gone, f.held(0), s.Text())
	}
	write("#!/bin/sh\n[ \"$(id -u)\" = 0 ] && echo wiped of $LOOM_HOSTNAME >/var/lib/loom-wiped\n")
	if gone, s := f.delete("n1", r.Result); gone.Status != 0 || f.held(0) != "" {
		t.Fatalf("delete gave %+v, held %q\n%s", gone, f.held(0), s.Text())
	}
	if data, _ := os.ReadFile(filepath.Join(f.servers[0].Dir, "lib", "loom-wiped")); string(data) != "wiped of n1.lab.example\n" {
		t.Errorf("the script left %q", data)
	}
}

func TestProbeAndList(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "flavor=large", "image=bookworm")
	f.create("n1")
	call := &loom.ProviderCall{Tenant: "lab", Reach: loom.Anywhere(), Provider: f.spec("n", nil).Provider}
	probe, err := static.New().Probe(f.ctx, call)
	if err != nil || !probe.OK || len(probe.Flavors) != 1 || len(probe.Images) != 1 || !strings.Contains(fmt.Sprint(probe.Checks), "used by cluster 00000007 (n1.lab.example)") {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	list, err := static.New().List(f.ctx, call)
	if err != nil || len(list) != 1 || list[0].ID != f.id(1) || list[0].Key != "key-of-n1" || list[0].Tenant != "lab" || list[0].Cluster != "00000007" {
		t.Errorf("list gave %+v, %v", list, err)
	}
	f.servers[0].Refuse(1000)
	if probe, err := static.New().Probe(f.ctx, call); err != nil || probe.OK {
		t.Errorf("a silent machine: %+v, %v", probe, err)
	}
	// The other one is free: what nobody has is not listed.
	want := []loom.TaggedMachine{
		{ID: f.id(0), Flavor: "large", Addresses: []string{"127.0.0.1"}},
		{ID: f.id(1), Name: "n1.lab.example", Node: "n1", Key: "key-of-n1", Cluster: "00000007", Tenant: "lab",
			State: loom.StateRunning, Image: "bookworm", Addresses: []string{"127.0.0.1"}},
	}
	if list, err := static.New().List(f.ctx, call); err != nil || !reflect.DeepEqual(list, want) || !list[0].OwnerUnknown() {
		t.Errorf("with a silent machine the list is %+v, %v", list, err)
	}
	f.servers[1].Refuse(1000)
	want[1] = loom.TaggedMachine{ID: f.id(1), Image: "bookworm", Addresses: []string{"127.0.0.1"}}
	if list, err := static.New().List(f.ctx, call); err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("when its machine is silent the list is %+v, %v", list, err)
	}
	f.fields["ssh_key_resource"] = "absent"
	if list, err := static.New().List(f.ctx, call); err == nil {
		t.Errorf("settings that cannot be used give the list %+v", list)
	}
}

func TestWrongCredentialsNameThemselves(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "")
	f.fields["ssh_password"] = "wrong password"
	r, s := f.create("n1")
	if r.Status != 202 || !strings.Contains(s.Text(), "authentication failed") {
		t.Errorf("create gave %+v\n%s", r, s.Text())
	}
	if strings.Contains(s.Text()+r.Message, "wrong password") {
		t.Error("the password is in the output")
	}
}
