//go:build e2e

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/api/wire"
	"loom/app/wiring"
)

// webCluster makes a web cluster that serves.
func (w *world) webCluster(machines int) wire.Cluster {
	w.t.Helper()
	user := w.user()
	id := user.create("web-cluster", machines, nil)
	user.waitActive(id)
	cluster := user.cluster(id)
	w.servesFromAll(cluster)
	return cluster
}

// servesAgain waits until a cluster whose machines were booted serves from all.
func (w *world) servesAgain(c wire.Cluster) {
	w.t.Helper()
	w.eventually("the cluster to serve again", func() error {
		status, body, err := fetch("http://" + address(w.t, c, "haproxy") + "/")
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		if err != nil {
			return err
		}
		for _, web := range addresses(w.t, c, "nginx") {
			if _, _, err := fetch("http://" + web + "/healthz"); err != nil {
				return err
			}
		}
		return nil
	})
	w.servesFromAll(c)
}

// TestLifeOfAnInstance goes through what `make run`, Ctrl-C, `make stop` and
// `make clean` do, on the private PostgreSQL.
func TestLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	w := newPrivateWorld(t)
	first := w.up()
	signIns, err := os.Stat(filepath.Join(w.dir, wiring.SignInFile))
	if err != nil || signIns.Mode().Perm() != 0o600 {
		t.Fatalf("sign-ins: %v, %v", signIns, err)
	}
	cluster := w.webCluster(3)
	before := w.machines()

	// A second one on the same directory is refused and harms nobody.
	_, errOut, code := w.try("up")
	if code != 1 || !strings.Contains(errOut, fmt.Sprintf("Loom runs already in %s (process %d)", w.dir, first.pid())) || !strings.Contains(errOut, "LOOM_DATA_DIR") {
		t.Errorf("a second loom up: exit status %d, %s", code, errOut)
	}

	// Ctrl-C reaches the whole group; machines and database go on.
	first.kill(t, syscall.SIGINT)
	if code := first.waitEnd(t); code != 0 {
		t.Errorf("after Ctrl-C the exit status is %d:\n%s", code, first.tail(20))
	}
	w.servesFromAll(cluster)

	began := time.Now()
	second := w.up()
	t.Logf("second start: %s", time.Since(began))
	for key, m := range w.machines() {
		if m != before[key] {
			t.Errorf("machine %+v was not adopted but is now %+v", before[key], m)
		}
	}
	w.servesFromAll(cluster)
	if again := w.user().cluster(cluster.ID); again.Status != "active" {
		t.Errorf("after a restart the cluster is %s", again.Status)
	}

	// Stop ends the running one, the machines and the database, and keeps files.
	w.loom("stop")
	if code := second.waitEnd(t); code != 0 {
		t.Errorf("loom stop ended loom up with exit status %d:\n%s", code, second.tail(20))
	}
	w.eventually("the end of all machines", func() error {
		if left := w.running(); len(left) > 0 { // until init has reaped them
			return fmt.Errorf("left:\n  %s", strings.Join(left, "\n  "))
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(w.dir, "pg", "data", "postmaster.pid")); !os.IsNotExist(err) {
		t.Errorf("PostgreSQL runs after loom stop: %v", err)
	}

	// The start waits for no machine: somebody else works on all of them.
	release := w.holdMachines()
	w.up()
	release()
	w.servesAgain(cluster)
	after := w.machines()
	if len(after) != len(before) {
		t.Errorf("%d machines after a stop, %d before", len(after), len(before))
	}
	for key, m := range after {
		if old := before[key]; m.Address != old.Address || m.HostKey != old.HostKey || m.ID != old.ID || m.PID == old.PID {
			t.Errorf("machine %+v came back as %+v", old, m)
		}
	}
	// A task still reaches the booted machines: their keys are the ones on record.
	w.user().remove(cluster.ID)
	w.noMachines()
}

// holdMachines keeps other processes from working on the machines that there are, until
// the function that it gives is called.
func (w *world) holdMachines() func() {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "local", "machines"))
	if err != nil || len(entries) == 0 {
		w.t.Fatalf("machines: %v, %v", entries, err)
	}
	var held []*os.File
	for _, e := range entries {
		f, err := os.OpenFile(filepath.Join(w.dir, "local", "locks", e.Name()), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		held = append(held, f)
	}
	return func() {
		for _, f := range held {
			f.Close()
		}
	}
}

// TestTwoInstances runs two on one host; each sees its own machines only.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	one, two := newWorld(t), newWorld(t)
	one.up()
	two.up()
	c1, c2 := one.webCluster(2), two.webCluster(2)
	if one.hash() == two.hash() {
		t.Fatal("two directories have one hash")
	}
	taken := map[string]bool{}
	for _, w := range []*world{one, two} {
		for _, m := range w.machines() {
			if taken[m.Address] {
				t.Errorf("address %s is taken twice", m.Address)
			}
			taken[m.Address] = true
		}
	}
	one.user().remove(c1.ID)
	one.noMachines()
	one.loom("clean")
	two.servesFromAll(c2)
	two.user().remove(c2.ID)
	two.noMachines()
}

// TestInterruptedCreate ends `loom up` in the middle of a create, with Ctrl-C and
// with kill -9; the next start finishes it.
func TestInterruptedCreate(t *testing.T) {
	t.Parallel()
	together(t, map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "kill -9": syscall.SIGKILL}, func(t *testing.T, signal syscall.Signal) {
		w := newWorld(t)
		first := w.up()
		p := &procfile{world: w, user: w.user()}
		id := p.user.create("web-cluster", 3, nil)
		p.inTheMiddle(id, 2)
		first.kill(t, signal)
		if code := first.waitEnd(t); code != 0 && signal == syscall.SIGINT {
			t.Errorf("exit status %d:\n%s", code, first.tail(20))
		}
		w.up()
		p.finished(id)
		p.user.remove(id)
		w.noMachines()
	})
}
