//go:build e2e

package cli

import (
	"fmt"
	"syscall"
	"testing"

	"loom/app/loom"
)

// procfile is an instance as three processes, as the Procfile starts them.
type procfile struct {
	*world
	pages, scheduler, provisioner *process
	user                          *client
}

func newProcfile(t *testing.T) *procfile {
	t.Helper()
	w := newWorld(t)
	w.loom("migrate", "up")
	w.loom("seed")
	p := &procfile{world: w, pages: w.web(), scheduler: w.background("scheduler"), provisioner: w.background("provisioner")}
	p.user = w.user()
	return p
}

// inTheMiddle polls until the operation that makes the cluster is in the middle:
// some tasks are done, others are not.
func (p *procfile) inTheMiddle(id string, done int) {
	p.t.Helper()
	p.eventually("the middle of the create", func() error {
		progress := p.user.cluster(id).Progress
		switch {
		case progress.Completed >= progress.Total:
			p.t.Fatalf("the create of %s is over before anything was killed", id)
		case progress.Completed < done:
			return fmt.Errorf("%d of %d tasks", progress.Completed, progress.Total)
		}
		return nil
	})
}

// finished waits for the create and checks what it made: the cluster serves, each
// node has one machine, and nothing but interruptions happened to its tasks. It
// gives their number.
func (p *procfile) finished(id string) (interrupted int) {
	p.t.Helper()
	p.user.waitActive(id)
	cluster := p.user.cluster(id)
	p.servesFromAll(cluster)
	machines := p.machines()
	if len(machines) != len(cluster.Nodes) {
		p.t.Errorf("%d machines for %d nodes", len(machines), len(cluster.Nodes))
	}
	for _, node := range cluster.Nodes {
		mine := 0
		for _, m := range machines {
			if m.Node == string(node.ID) && m.Address == node.Properties.Addresses[loom.AccessV4] {
				mine++
			}
		}
		if mine != 1 {
			p.t.Errorf("node %s at %s has %d machines", node.ID, node.Properties.Addresses[loom.AccessV4], mine)
		}
	}
	for _, task := range p.user.tasks(id, 1) {
		if task.Status != loom.TaskComplete {
			p.t.Errorf("task %s is %s", task.ID, task.Status)
		}
		for i, a := range task.Attempts {
			switch {
			case a.Status == loom.AttemptInterrupted:
				interrupted++
			case a.Status != loom.AttemptComplete || i != len(task.Attempts)-1:
				p.t.Errorf("try %d of task %s is %s: %s", a.Number, task.ID, a.Status, a.Message)
			}
		}
	}
	return interrupted
}

// TestKilledProcesses kills each kind of process with kill -9 in the middle of a
// create and starts it again.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	together(t, map[string]string{"provisioner": "provisioner", "scheduler": "scheduler", "web": "web"}, func(t *testing.T, kind string) {
		p := newProcfile(t)
		id := p.user.create("web-cluster", 3, nil)
		p.inTheMiddle(id, 2)
		switch kind {
		case "provisioner":
			p.provisioner.kill(t, syscall.SIGKILL)
			p.provisioner.waitEnd(t)
			p.provisioner = p.background("provisioner")
		case "scheduler":
			p.scheduler.kill(t, syscall.SIGKILL)
			p.scheduler.waitEnd(t)
			p.scheduler = p.background("scheduler")
		case "web":
			p.pages.kill(t, syscall.SIGKILL)
			p.pages.waitEnd(t)
			if _, _, err := fetch(p.url + "/readyz"); err == nil {
				t.Error("a killed web process answers")
			}
			p.pages = p.web()
		}
		if n := p.finished(id); (n > 0) != (kind == "provisioner") {
			t.Errorf("%d tries were interrupted", n)
		}
		p.user.remove(id)
		p.noMachines()
		if status := p.user.cluster(id).Status; status != loom.ClusterTerminated {
			t.Errorf("the deleted cluster is %s", status)
		}
	})
}

// TestProvisionerKilledWhileDeleting kills the provisioner right after a delete
// began; the delete ends well all the same.
func TestProvisionerKilledWhileDeleting(t *testing.T) {
	t.Parallel()
	p := newProcfile(t)
	id := p.user.create("web-cluster", 4, nil)
	p.user.waitActive(id)
	p.user.call("DELETE", "/v2/clusters/"+id, nil, nil)
	p.provisioner.kill(t, syscall.SIGKILL)
	p.provisioner.waitEnd(t)
	p.provisioner = p.background("provisioner")
	p.user.waitStatus(id, loom.ClusterTerminated)
	p.noMachines()
	for _, task := range p.user.tasks(id, 2) {
		if task.Status != loom.TaskComplete {
			t.Errorf("task %s is %s", task.ID, task.Status)
		}
	}
}
