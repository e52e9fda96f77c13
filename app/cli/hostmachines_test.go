//go:build e2e

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/provider/local"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// hostMachines makes machines of this host that Loom did not ask for: those behind
// the servers of fake clouds, and those that somebody owns already. They live in the
// world's own data directory, so its end looks for what they leave.
type hostMachines struct {
	t     *testing.T
	w     *world
	local *local.Local
	// key opens all of them; it is of a kind that may also sign the calls of CloudAPI.
	key sshtest.Key

	mu   sync.Mutex
	made int
	live map[string]int
}

func (w *world) hostMachines() *hostMachines {
	w.t.Helper()
	l, err := local.New(local.Options{DataDir: filepath.Join(w.dir, "local"), BaseDir: baseRoots(w.t)})
	if err != nil {
		w.t.Fatal(err)
	}
	return &hostMachines{t: w.t, w: w, local: l, key: sshtest.NewKey(w.t, "ecdsa", ""), live: map[string]int{}}
}

// silent is a sink that nobody reads.
type silent struct{}

// Log does nothing.
func (silent) Log(string, string) {}

// Fact does nothing.
func (silent) Fact(map[string]any) error { return nil }

// task describes a machine of an owner. Those of one owner share a network.
func (h *hostMachines) task(owner, name, image string) *loom.TaskSpec {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made++
	node := loom.NodeID(fmt.Sprintf("host-machine-%d", h.made))
	return &loom.TaskSpec{
		Tenant: loom.TenantID("owner-" + owner), Node: node, IdempotencyKey: loom.IdempotencyKey(node, 0), Hostname: name, Image: image,
		Flavor: "mem=512m,pids=512,cpu=100", PublicKey: h.key.Authorized, Provider: loom.Provider{Base: loom.Base{Name: owner}, Fields: map[string]any{}}, Results: map[string]any{},
	}
}

// make boots a machine and waits until it answers; remove is its end.
func (h *hostMachines) make(owner, name, image string) (made machine, remove func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	spec := h.task(owner, name, image)
	result, err := h.local.Create(ctx, spec, silent{})
	if err == nil && result.Status != 0 {
		err = fmt.Errorf("%s: %s", name, result.Message)
	}
	if err != nil {
		return machine{}, nil, err
	}
	h.count(owner, 1)
	remove = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		spec.Results = result.Result
		if result, err := h.local.Delete(ctx, spec, silent{}); err != nil || result.Status != 0 {
			h.t.Errorf("the machine behind %s was not removed: %s %v", name, result.Message, err)
			return
		}
		h.count(owner, -1)
	})
	return h.w.machines()[spec.IdempotencyKey], remove, nil
}

func (h *hostMachines) count(owner string, by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[owner] += by
}

// left returns the number of machines of an owner that live.
func (h *hostMachines) left(owner string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live[owner]
}

// behind makes what answers for the servers of a fake cloud.
func (h *hostMachines) behind(cloud string) fakecloud.Maker {
	return func(_ context.Context, m fakecloud.Machine) (fakecloud.Backing, error) {
		name, _, _ := strings.Cut(m.Name, ".")
		// Whoever asked may have gone away; the server is made all the same.
		made, remove, err := h.make(cloud, name, starterImage)
		if err != nil {
			return fakecloud.Backing{}, err
		}
		return fakecloud.Backing{Public: made.Address, Private: made.Address, HostKeys: map[string]string{"ed25519": made.HostKey}, Close: remove}, nil
	}
}

// pool makes machines that are there already, and runs a script on each, with
// files of the tools that an image would bring. They go with the test.
func (h *hostMachines) pool(owner, image, setUp string, files map[string]string, n int) []machine {
	h.t.Helper()
	machines := make([]machine, n)
	problems := make([]error, n)
	gate := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i := range machines {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			var remove func()
			machines[i], remove, problems[i] = h.make(owner, fmt.Sprintf("%s%d", owner, i+1), image)
			if remove != nil {
				h.t.Cleanup(remove)
			}
			if problems[i] == nil && setUp != "" {
				problems[i] = h.equip(machines[i], setUp, files)
			}
		})
	}
	wg.Wait()
	for _, err := range problems {
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return machines
}

// equip uploads files to /opt/equipment and runs a script.
func (h *hostMachines) equip(m machine, script string, files map[string]string) error {
	conn, err := h.connect(m)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tree := remote.NewTree()
	for name, content := range files {
		tree.AddFile(name, 0o755, []byte(content))
	}
	if _, err := conn.UploadTree(ctx, tree, "/opt/equipment", remote.TreeOptions{Root: true, Owner: "root:root"}); err != nil {
		return err
	}
	_, err = conn.Run(ctx, "equipment", remote.Command{Text: script, Root: true})
	return err
}

// connect signs in to a machine, which may still be starting its SSH server.
func (h *hostMachines) connect(m machine) (conn *remote.Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	target := remote.Target{Reach: loom.Anywhere(), Address: m.Address, Keys: []loom.Secret{loom.NewSecret(h.key.PEM)}, HostKeys: map[string]string{"ed25519": m.HostKey}}
	for range 50 {
		if conn, err = remote.Dial(ctx, target); err == nil {
			return conn, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, err
}

// read runs a command on a machine and gives what it printed.
func (h *hostMachines) read(m machine, command string) string {
	h.t.Helper()
	conn, err := h.connect(m)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := conn.Run(ctx, "look", remote.Command{Text: command, Root: true, Tail: 8 << 20})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.Stdout
}

// hostLines is the field hosts of a static provider.
func hostLines(machines []machine) string {
	var lines strings.Builder
	for _, m := range machines {
		fmt.Fprintln(&lines, m.Address)
	}
	return lines.String()
}

// resource makes a plugin resource of demo live; the last one synchronises.
func (c *client) resource(kind, plugin, resourceType, name, content string) {
	c.t.Helper()
	path := "/v2/plugins/" + kind + "/" + plugin + "/" + resourceType + "/" + name
	var made struct{ Version int }
	c.call("POST", path, content, &made)
	c.call("POST", fmt.Sprintf("%s/versions/%d/stage", path, made.Version), nil, nil)
}

// sync makes staged resources live.
func (c *client) sync() {
	c.t.Helper()
	c.call("POST", "/v2/plugins/sync", nil, nil)
}

// offers says which flavor and image stand for a hardware type and an image type
// at a provider; the entries keep what they say of others.
func (c *client) offers(provider, hardware, flavor, imageType, image string) {
	c.t.Helper()
	for _, o := range [][4]string{{"hardwaretypes", hardware, "flavor", flavor}, {"imagetypes", imageType, "image", image}} {
		var entry map[string]any
		c.call("GET", "/v2/"+o[0]+"/"+o[1], nil, &entry)
		entry["providermap"].(map[string]any)[provider] = map[string]string{o[2]: o[3]}
		c.call("PUT", "/v2/"+o[0]+"/"+o[1], entry, nil)
	}
}

// taskLog reads the log of a task, as JSON.
func (c *client) taskLog(cluster string, operation, task int) string {
	c.t.Helper()
	path := fmt.Sprintf("/v2/clusters/%s/operations/%d/tasks/%d/log?limit=500", cluster, operation, task)
	status, answer, err := c.try("GET", path, nil)
	if err != nil || status != 200 {
		c.t.Fatalf("%s: %d %v %s", path, status, err, answer)
	}
	return string(answer)
}
