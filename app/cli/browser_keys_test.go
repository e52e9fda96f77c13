//go:build e2e && browser

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/testkit/browser"
)

// person is somebody with an account and an SSH key of his own on this host.
type person struct {
	*client
	name, dir, key, public string
}

// person makes one, whose key is in no account yet.
func (w *world) person(user string) *person {
	w.t.Helper()
	dir := w.t.TempDir()
	p := &person{client: w.client("demo", user, "admin"), name: user, dir: dir, key: filepath.Join(dir, "own")}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", user+"@home", "-f", p.key).CombinedOutput(); err != nil {
		w.t.Fatalf("ssh-keygen: %v %s", err, out)
	}
	public, err := os.ReadFile(p.key + ".pub")
	if err != nil {
		w.t.Fatal(err)
	}
	p.public = strings.TrimSpace(string(public))
	return p
}

// account says which keys are in the account.
func (p *person) account(keys ...string) {
	p.t.Helper()
	p.call("PATCH", "/v2/users/"+p.name, map[string]any{"sshKeys": append([]string{}, keys...)}, nil)
}

// runs executes a command as the page shows it, in the person's own directory, with no
// identity but those that the command names or that are the person's own.
func (p *person) runs(command string) error {
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "ssh" {
		return fmt.Errorf("%q is no command", command)
	}
	args := []string{"-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=accept-new",
		"-o", "UserKnownHostsFile=" + filepath.Join(p.dir, "known_hosts"), "-o", "ConnectTimeout=20"}
	if words[1] != "-i" {
		args = append(args, "-o", "IdentityFile="+p.key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, "ssh", append(append(args, words[1:]...), "echo signed in")...)
	run.Dir = p.dir
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "signed in") {
		return fmt.Errorf("%s: %v %s", command, err, out)
	}
	return nil
}

// download stores the key of a cluster as a browser would.
func (p *person) download(id string) {
	p.t.Helper()
	status, data, err := p.try("POST", "/v2/clusters/"+id+"/reveal", nil)
	if err != nil || status != http.StatusOK {
		p.t.Fatalf("download: %d %s %v", status, data, err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "loom-"+id+".pem"), data, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// commandOf is where the overview shows the command of the n-th machine.
func commandOf(n int) string {
	return fmt.Sprintf("#connect tbody tr:nth-child(%d) .c-copytext code", n)
}

// command is what the overview shows for the n-th machine.
func (j *journey) command(n int) string {
	j.t.Helper()
	j.b.WaitFor(commandOf(n))
	return j.b.TextOf(commandOf(n))
}

// TestBrowserKeys: what the page shows as a command signs its viewer in over a real sshd,
// with the key of the cluster before and with the viewer's own key after “Add my keys”.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{}, "LOOM_MAX_ATTEMPTS=1")
	admin := j.client("demo", "admin", "admin")
	wantedCatalog(admin)
	admin.call("PUT", "/v2/services/wanted", wantedService("start"), nil)
	owner, other := j.person("user"), j.person("admin")
	id := owner.create("wanted-cluster", 1, map[string]any{"config": map[string]any{"licence": "yours"}})
	owner.waitActive(id)
	file, page := "ssh -i loom-"+id+".pem ", j.url+"/clusters/"+id
	j.signIn("user")
	in := func(p *person, what string, n int, file string) {
		t.Helper()
		command := j.command(n)
		if strings.HasPrefix(command, "ssh -i ") != (file != "") || !strings.HasPrefix(command, file) {
			t.Errorf("%s: the command is %q", what, command)
		}
		if err := p.runs(command); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	// Without a key in the account the way leads to the account, and the file opens the machine.
	j.b.Open(page)
	j.b.WaitFor("#cluster-connect a[href='/account']")
	if j.b.Has("form[action$='/authorize']") {
		t.Error("keys can be added where there are none")
	}
	owner.download(id)
	in(owner, "without a key in the account", 1, file)

	// A key in the account is on no machine yet.
	owner.account(owner.public)
	j.b.Open(page)
	j.b.WaitFor("#cluster-connect form[action$='/authorize']")
	in(owner, "with a key in the account", 1, file)
	j.hands.Activate("Add my keys", "#cluster-connect form[action$='/authorize'] button")
	// The page tells by itself that the key is there.
	j.b.Wait("the command with the own key", func() bool { return strings.HasPrefix(j.b.TextOf(commandOf(1)), "ssh root@") })
	owner.waitActive(id)
	in(owner, "after “Add my keys”", 1, "")
	j.b.WaitGone("#cluster-connect form[action$='/authorize']") // there is nothing left to add
	j.b.Open(page + "/operations")
	j.b.WaitText("Add keys")

	// Whose keys are not there sees another command, and may add his.
	other.account(other.public)
	var preview struct{ ID, Hash string }
	other.call("POST", "/v2/previews", map[string]any{"kind": "authorize", "clusterId": id, "request": map[string]any{}}, &preview)
	other.call("POST", "/v2/previews/"+preview.ID+"/apply", map[string]any{"hash": preview.Hash}, nil)
	other.waitActive(id)
	// Machines that come later have both.
	owner.call("POST", "/v2/clusters/"+id+"/expand", map[string]any{"numMachines": 2}, nil)
	owner.waitActive(id)
	j.b.Open(page)
	for n := 1; n <= 2; n++ {
		in(owner, fmt.Sprintf("the owner at machine %d", n), n, "")
		if err := other.runs(j.command(n)); err != nil {
			t.Errorf("the administrator at machine %d: %v", n, err)
		}
	}

	// A key that left the account no longer is a way in, whatever machines have.
	owner.account()
	j.b.Open(page)
	in(owner, "with the key gone from the account", 2, file)
	j.hands.Activate("Download key", "#cluster-connect form[action$='/key'] button")
	audited := 0
	j.eventually("two downloads in the audit", func() error {
		_, data, err := admin.try("GET", "/v2/audit?verb=reveal&limit=100", nil)
		if err != nil {
			return err
		}
		var entries []struct{ Verb, Kind, Result string }
		if err := json.Unmarshal(data, &entries); err != nil {
			return err
		}
		audited = 0
		for _, e := range entries {
			if e.Verb == "reveal" && e.Kind == "cluster" && e.Result == "ok" {
				audited++
			}
		}
		if audited != 2 {
			return fmt.Errorf("%d downloads in the audit: %s", audited, data)
		}
		return nil
	})

	// A machine that is dead keeps its node, and nobody off the other one.
	owner.account(owner.public)
	dead := owner.cluster(id).Nodes[0]
	if err := syscall.Kill(j.machines()[loom.IdempotencyKey(dead.ID, 1)].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	owner.call("POST", "/v2/clusters/"+id+"/authorize", nil, nil)
	owner.waitActive(id)
	for _, n := range owner.cluster(id).Nodes {
		if n.State != loom.NodeReady || n.Incarnation != 1 {
			t.Errorf("node %s is %s, incarnation %d", n.ID, n.State, n.Incarnation)
		}
	}
	owner.remove(id)
	j.quiet()
}
