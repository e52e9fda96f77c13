package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/provisioner/provider/local"
	"loom/provisioner/remote"
)

const (
	// compareWorkers is how many tasks run at once: of Loom by its workers, of Ansible
	// by its forks.
	compareWorkers = 25
	// compareSteps are the tasks of each machine, besides Loom's bootstrap.
	compareSteps = 5
)

// compareScript does one of five small things to a machine; Ansible carries out the
// same lines.
//
//go:embed benchdata/compare/compare.sh
var compareScript string

//go:embed benchdata/compare/playbook.yml
var comparePlaybook string

// compareFigures is what one of the two took.
type compareFigures struct{ took, cpu time.Duration }

// benchCompare lets Loom and Ansible do the same five small tasks on the same local
// machines, one after the other, as many at once, and measures the SSH that Loom
// does it over.
func (e *environment) benchCompare(ctx context.Context, scale benchScale) (err error) {
	machines, err := local.New(local.Options{DataDir: os.TempDir()}) // only asked, makes nothing
	if err != nil {
		return err
	}
	if err := machines.Ready(); err != nil {
		fmt.Fprintf(e.Out, "No comparison: %v\n\n", err)
		return nil
	}
	ansible, err := exec.LookPath("ansible-playbook")
	if err != nil {
		fmt.Fprint(e.Out, "No comparison with Ansible: install it with apt-get install -y --no-install-recommends ansible-core\n\n")
		ansible = ""
	}
	b, err := e.startBench(ctx, "LOOM_MOCK=true", fmt.Sprintf("LOOM_PROVISIONER_CAPACITY=%d", compareWorkers+1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	images, err := b.StarterImages(ctx)
	if err != nil {
		return err
	}
	if err := b.plugins.Local.Prepare(ctx, images, func(line string) { fmt.Fprintln(e.ErrOut, line) }); err != nil {
		return err
	}
	key, err := b.compareKey(ctx)
	if err != nil {
		return err
	}
	if err := b.compareCatalog(ctx); err != nil {
		return err
	}
	id, err := b.create(ctx, "compare", scale.machines)
	if err != nil {
		return err
	}
	if err := b.until(ctx, id, 1); err != nil {
		return err
	}
	addresses, err := b.addresses(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "\nFive small tasks on each of %d local machines, %d at once, on the same host\n\n", scale.machines, compareWorkers)
	fmt.Fprintf(e.Out, "  %-44s %8s  %16s\n", "", "took", "CPU per task")
	loomTook, err := b.compareLoom(ctx, id)
	if err != nil {
		return err
	}
	row := func(name string, f compareFigures) {
		fmt.Fprintf(e.Out, "  %-44s %8s  %13.1f ms\n", name, seconds(f.took), milliseconds(f.cpu)/float64(scale.machines*compareSteps))
	}
	row("Loom, with connect and bootstrap", loomTook)
	if ansible != "" {
		ansibleTook, err := b.compareAnsible(ctx, ansible, key, addresses)
		if err != nil {
			return err
		}
		row("ansible-core, pipelining, strategy free", ansibleTook)
		fmt.Fprintf(e.Out, "\n  Loom is %.1f times as fast and takes %.0f %% of the processor time (without that of the machines)\n",
			float64(ansibleTook.took)/float64(loomTook.took), 100*float64(loomTook.cpu)/float64(ansibleTook.cpu))
	}
	return b.measureSSH(ctx, key, addresses)
}

// compareKey makes a key that goes onto all machines of the user.
func (b *benchInstance) compareKey(ctx context.Context) (loom.Secret, error) {
	private, line, err := remote.NewKey("bench")
	if err != nil {
		return loom.Secret{}, err
	}
	_, err = b.System.DB.ExecContext(ctx, `UPDATE users SET ssh_keys = ARRAY[$3] WHERE tenant_id = $1 AND id = $2`, b.actor.Tenant, b.actor.User, line)
	return private, err
}

// compareCatalog stores the script, services and template.
func (b *benchInstance) compareCatalog(ctx context.Context) error {
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: "compare.sh"}
	stored, err := b.Catalog.Upload(ctx, b.actor, ref, strings.NewReader(compareScript), 1<<20)
	if err != nil {
		return err
	}
	if err := b.Catalog.Stage(ctx, b.actor, ref, stored.Version); err != nil {
		return err
	}
	if err := b.Catalog.Sync(ctx, b.actor); err != nil {
		return err
	}
	_, err = b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata/compare"), nil)
	return err
}

// addresses returns those of a cluster's machines.
func (b *benchInstance) addresses(ctx context.Context, id loom.ClusterID) ([]string, error) {
	view, err := b.Clusters.Cluster(ctx, b.actor, id)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, n := range view.Nodes {
		all = append(all, n.Addresses[loom.AccessV4])
	}
	return all, nil
}

// compareLoom adds the services whose actions are the five tasks: to machines that
// nobody has connected to yet.
func (b *benchInstance) compareLoom(ctx context.Context, id loom.ClusterID) (f compareFigures, err error) {
	before, err := b.processorTime(ctx)
	if err != nil {
		return f, err
	}
	began := time.Now()
	if _, err := b.request(ctx, "POST", "/v2/clusters/"+id.String()+"/services", `{"services": ["compare", "compare-check"]}`); err != nil {
		return f, err
	}
	if err := b.until(ctx, id, 2); err != nil {
		return f, err
	}
	f.took = time.Since(began)
	after, err := b.processorTime(ctx)
	f.cpu = after - before
	return f, err
}

// processorTime is that of all processes of the instance, PostgreSQL among them.
func (b *benchInstance) processorTime(ctx context.Context) (time.Duration, error) {
	own, err := cpuOf(b.processes...)
	if err != nil {
		return 0, err
	}
	server, err := b.postgresCPU(ctx)
	return own + server, err
}

// compareAnsible carries out the playbook.
func (b *benchInstance) compareAnsible(ctx context.Context, program string, key loom.Secret, addresses []string) (f compareFigures, err error) {
	dir := filepath.Join(b.dir, "ansible")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return f, err
	}
	var inventory strings.Builder
	for i, address := range addresses {
		fmt.Fprintf(&inventory, "machine%d ansible_host=%s ansible_user=root ansible_ssh_private_key_file=%s/key ansible_python_interpreter=/usr/bin/python3\n", i, address, dir)
	}
	config := fmt.Sprintf("[defaults]\nforks = %d\nstrategy = free\nhost_key_checking = False\ngathering = explicit\nlocal_tmp = %[2]s/tmp\n"+
		"[ssh_connection]\npipelining = True\nssh_args = -o ControlMaster=auto -o ControlPersist=60s\ncontrol_path_dir = %[2]s/cp\n", compareWorkers, dir)
	for name, content := range map[string]string{"key": key.Reveal(), "inventory": inventory.String(), "ansible.cfg": config, "playbook.yml": comparePlaybook} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return f, err
		}
	}
	cmd := exec.CommandContext(ctx, program, "-i", "inventory", "playbook.yml")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ANSIBLE_CONFIG="+dir+"/ansible.cfg", "HOME="+dir, "ANSIBLE_NOCOLOR=1")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	f.took = time.Since(began)
	if err != nil {
		return f, fmt.Errorf("ansible-playbook: %w: %s", err, out)
	}
	if done := strings.Count(string(out), fmt.Sprintf("ok=%d ", compareSteps)); done != len(addresses) {
		return f, fmt.Errorf("ansible-playbook did all tasks on %d of %d machines: %s", done, len(addresses), out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return f, errors.New("the processor time of ansible-playbook is not known")
	}
	f.cpu = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	// Its connections stay for a minute.
	return f, errors.Join(exec.Command("pkill", "-f", dir+"/cp").Run())
}
