//go:build e2e

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/provisioner/confine"
)

// yard is an external provider plugin and the place where its machines stand: a
// directory with a file for each, which moves when a node gets the machine.
type yard struct {
	w        *world
	dir      string
	plugins  string
	machines []machine
	offer    *offer
}

// yard prepares the place; the plugin is not there yet. Call before the instance starts.
func (w *world) yard() *yard {
	dir := filepath.Dir(w.dir)
	y := &yard{w: w, dir: filepath.Join(dir, "yard"), plugins: filepath.Join(dir, "plugins")}
	w.env = append(w.env, "LOOM_PLUGIN_PATH="+y.plugins)
	for _, sub := range []string{y.plugins, filepath.Join(y.dir, "free"), filepath.Join(y.dir, "taken"), filepath.Join(y.dir, "faults")} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	// The plugin moves the files and runs as a user without rights.
	passable(w.t, y.plugins)
	passable(w.t, y.dir)
	user, err := confine.LookupUser(wiring.UsualUser)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, sub := range []string{"free", "taken", "faults"} {
		if err := os.Chown(filepath.Join(y.dir, sub), user.UID, user.GID); err != nil {
			w.t.Fatal(err)
		}
	}
	return y
}

// open installs the plugin while the instance runs, which hears of it by SIGHUP.
func (y *yard) open(h *hostMachines, running *process) *offer {
	t, admin := y.w.t, y.w.client("demo", "admin", "admin")
	t.Helper()
	if status, _, err := admin.try("GET", "/v2/plugins/providertypes/yard", nil); err != nil || status != 404 {
		t.Errorf("before the plugin is there its type gives %d, %v", status, err)
	}
	if err := os.CopyFS(filepath.Join(y.plugins, "yard"), os.DirFS("testdata/yard")); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o755, "plugin.json": 0o644, "yard.sh": 0o755} {
		if err := os.Chmod(filepath.Join(y.plugins, "yard", name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(running.pid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	y.w.eventually("the type of the new plugin", func() error {
		status, answer, err := admin.try("GET", "/v2/plugins/providertypes/yard", nil)
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d: %s", status, answer)
		}
		return err
	})
	if out := y.w.loom("plugin", "list"); !strings.Contains(out, "yard") {
		t.Errorf("loom plugin list does not name it:\n%s", out)
	}
	y.machines = h.pool("yard", starterImage, "", nil, 4)
	for _, m := range y.machines {
		if err := os.WriteFile(filepath.Join(y.dir, "free", m.Address), []byte(m.Address+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	y.offer = &offer{name: "yard", flavor: "any", image: "any", fields: map[string]any{"dir": y.dir, "token": "yard-t0ken", "ssh_key_resource": keyResource},
		before: y.harm, after: y.end, held: y.held}
	return y.offer
}

// harm makes calls fail once, before or after they were carried out.
func (y *yard) harm(phase string) {
	for _, fault := range map[string][]string{"create": {"create-busy", "create-lost"}, "delete": {"delete-lost"}}[phase] {
		if err := os.WriteFile(filepath.Join(y.dir, "faults", fault), nil, 0o644); err != nil {
			y.w.t.Error(err)
		}
	}
}

// end looks that everything struck and that all machines are back.
func (y *yard) end() {
	if left, err := os.ReadDir(filepath.Join(y.dir, "faults")); err != nil || len(left) != 0 {
		y.w.t.Errorf("yard: these faults never struck: %v %v", left, err)
	}
	if free, err := os.ReadDir(filepath.Join(y.dir, "free")); err != nil || len(free) != len(y.machines) {
		y.w.t.Errorf("yard: %d machines are free, want %d: %v", len(free), len(y.machines), err)
	}
}

// held returns the keys of the nodes that have a machine.
func (y *yard) held() (keys []string) {
	taken, err := os.ReadDir(filepath.Join(y.dir, "taken"))
	if err != nil {
		y.w.t.Error(err)
	}
	for _, file := range taken {
		key, _, _ := strings.Cut(file.Name(), "@")
		keys = append(keys, key)
	}
	return keys
}

// progressReached checks that what the plugin said on its way is in the logs of
// its tasks, without the secret that it was told.
func (y *yard) progressReached(c *client) {
	t := y.w.t
	t.Helper()
	confirmed := 0
	for _, task := range c.tasks(y.offer.cluster, 1) {
		if task.Action != loom.ActionConfirm && task.Action != loom.ActionCreate {
			continue
		}
		log := c.taskLog(y.offer.cluster, 1, task.Number)
		if strings.Contains(log, "yard-t0ken") {
			t.Errorf("the log of task %d tells the secret: %s", task.Number, log)
		}
		if task.Action == loom.ActionConfirm {
			confirmed++
			if !strings.Contains(log, "the machine is being washed with [redacted] (50 %)") {
				t.Errorf("the log of CONFIRM lacks the progress of the plugin: %s", log)
			}
		}
	}
	if confirmed != 2 {
		t.Errorf("%d nodes were confirmed by the plugin, want 2", confirmed)
	}
}
