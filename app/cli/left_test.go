//go:build e2e

package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// machine is what the local provider has on record of one.
type machine struct {
	ID      string `json:"id"`
	Key     string `json:"idempotency_key"`
	Node    string `json:"node"`
	Address string `json:"address"`
	HostKey string `json:"host_key"`
	// PID and StartTime tell the first process from any other.
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"`
}

// machines lists what is on record, by idempotency key; two with one key are a
// doubled machine.
func (w *world) machines() map[string]machine {
	w.t.Helper()
	found := map[string]machine{}
	files, err := filepath.Glob(filepath.Join(w.dir, "local", "machines", "*", "state.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted just now
		}
		var m machine
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		if other, double := found[m.Key]; double {
			w.t.Errorf("machines %s and %s are of one node", other.ID, m.ID)
		}
		found[m.Key] = m
	}
	return found
}

// hash is what the local provider puts into every name outside the directory.
func (w *world) hash() string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(w.dir))
	if err != nil {
		dir = filepath.Dir(w.dir)
	}
	sum := sha256.Sum256([]byte(filepath.Join(dir, filepath.Base(w.dir), "local")))
	return hex.EncodeToString(sum[:])[:6]
}

// traces lists what of the instance's machines is on the host: cables, control
// groups of machines, processes, mounts, files.
func (w *world) traces() []string {
	w.t.Helper()
	var found []string
	links, err := net.Interfaces()
	if err != nil {
		w.t.Fatal(err)
	}
	prefix := "lm" + w.hash()
	for _, link := range links {
		if strings.HasPrefix(link.Name, prefix) && !strings.HasPrefix(link.Name, prefix+"b") {
			found = append(found, "interface "+link.Name)
		}
	}
	for _, group := range controlGroups("loom-" + w.hash()) {
		entries, err := os.ReadDir(group)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				found = append(found, "control group "+filepath.Join(group, e.Name()))
			}
		}
	}
	found = append(found, w.running()...)
	for _, dir := range []string{"machines", "addresses", "locks"} {
		entries, err := os.ReadDir(filepath.Join(w.dir, "local", dir))
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			found = append(found, "file "+filepath.Join(dir, e.Name()))
		}
	}
	return found
}

// running lists processes of machines: those in the control groups of the
// instance, first processes of machines that were seen, and what has a mount below
// the data directory, the host's own view included. A machine's namespaces live by
// its first process, with which the kernel ends all others in them. (The numbers of
// namespaces are of no use here: the kernel gives them out again.)
func (w *world) running() []string {
	w.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, e := range entries {
		dir := filepath.Join("/proc", e.Name())
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		mounts, _ := os.ReadFile(filepath.Join(dir, "mountinfo"))
		why := ""
		switch {
		case strings.Contains(string(groups), "/loom-"+w.hash()+"/"):
			why = "in a control group of the instance"
		case strings.Contains(string(mounts), w.dir+"/"):
			why = "with a mount of the instance"
		case w.firsts[e.Name()] != 0 && w.firsts[e.Name()] == startTime(e.Name()):
			why = "the first of a machine"
		default:
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, fmt.Sprintf("process %s (%q), %s", e.Name(), line, why))
	}
	return found
}

// startTime returns when a process began, in clock ticks since boot; 0 when there
// is none.
func startTime(pid string) uint64 {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0
	}
	// The name, in brackets, may hold anything; the 20th word behind it is wanted.
	words := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(words) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(words[19], 10, 64)
	return n
}

// note remembers the machines that run now and checks that none shares a
// namespace with the host.
func (w *world) note() {
	w.t.Helper()
	machines := w.machines()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range machines {
		pid := strconv.Itoa(m.PID)
		if m.PID == 0 || startTime(pid) != m.StartTime {
			continue // it is being made, or ended just now
		}
		w.firsts[pid] = m.StartTime
		for _, kind := range []string{"pid", "net", "mnt", "uts", "ipc", "user"} {
			own, err := os.Readlink("/proc/self/ns/" + kind)
			if err != nil {
				w.t.Fatal(err)
			}
			if space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", m.PID, kind)); space == own {
				w.t.Errorf("machine %s shares the namespace %s with the host", m.ID, space)
			}
		}
	}
}

// controlGroups finds the groups of a name in all trees.
func controlGroups(name string) []string {
	var found []string
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error { //nolint:errcheck // groups come and go meanwhile
		if err == nil && d.IsDir() && d.Name() == name {
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// noMachines waits until no machine has left a trace; what the instance keeps
// between machines (bridge, packet filter) may stay.
func (w *world) noMachines() {
	w.t.Helper()
	w.eventually("no trace of a machine", func() error {
		if left := w.traces(); len(left) > 0 {
			return fmt.Errorf("left:\n  %s", strings.Join(left, "\n  "))
		}
		return nil
	})
}

// nothingLeft checks, after `loom clean`, that the host shows no trace of the
// instance. Processes may still wait for init to reap them.
func (w *world) nothingLeft() {
	w.t.Helper()
	poll(w.t, 15*time.Second, "after loom clean", func() error {
		if left := w.remains(); len(left) > 0 {
			return fmt.Errorf("left:\n  %s", strings.Join(left, "\n  "))
		}
		return nil
	})
}

// remains lists what is left of the instance.
func (w *world) remains() []string {
	w.t.Helper()
	left := w.traces()
	links, err := net.Interfaces()
	if err != nil {
		w.t.Error(err)
	}
	for _, link := range links {
		if strings.HasPrefix(link.Name, "lm"+w.hash()) {
			left = append(left, "bridge "+link.Name)
		}
	}
	if exec.Command("nft", "list", "table", "inet", "loom_"+w.hash()).Run() == nil {
		left = append(left, "packet filter table loom_"+w.hash())
	}
	left = append(left, controlGroups("loom-"+w.hash())...)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(line), w.dir) {
			left = append(left, fmt.Sprintf("process %s (%q)", e.Name(), line))
		}
	}
	filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error { //nolint:errcheck // it should not be there
		if err == nil {
			left = append(left, "file "+path)
		}
		return nil
	})
	return left
}
