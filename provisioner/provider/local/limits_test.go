package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loom/provisioner/remote/sshtest"
)

func TestParseFlavor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want limits
		err  string
	}{
		{"", limits{}, ""},
		{"mem=512m,pids=256,cpu=100", limits{Memory: 512 << 20, Pids: 256, CPU: 100}, ""},
		{" mem = 2G , cpu=50 ", limits{Memory: 2 << 30, CPU: 50}, ""},
		{"mem=1073741824", limits{Memory: 1 << 30}, ""},
		{"mem=1tb", limits{Memory: 1 << 40}, ""},
		{"mem=64k", limits{}, "at least 16m"},
		{"mem=", limits{}, "a size such as 512m"},
		{"mem=m", limits{}, "a size such as 512m"},
		{"mem=-5g", limits{}, "a size such as 512m"},
		{"mem=99999999999t", limits{}, "a size such as 512m"},
		{"pids=1", limits{}, "from 16 to 4000000"},
		{"cpu=0", limits{}, "from 1 to 10000"},
		{"cpu=1.5", limits{}, "from 1 to 10000"},
		{"cores=1.5,disk=5g", limits{Cores: 1500, Disk: 5 << 30}, ""},
		{"cores=0.25", limits{Cores: 250}, ""},
		{"cores=0", limits{}, "from 0.01 to 4096"},
		{"cores=NaN", limits{}, "from 0.01 to 4096"},
		{"disk=1m", limits{}, "at least 16m of disk"},
		{"machines=5", limits{}, "is for tenants"},
		{"m1.small", limits{}, "mem, pids, cpu, cores and disk"},
		{"cpu=1,cpu=2", limits{}, "given twice"},
	} {
		got, err := parseFlavor(c.in)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %+v, %v", c.in, got, err)
		}
	}
}

func TestParseImage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", "bookworm"}, {"trixie", "trixie"}, {"bookworm:", "bookworm"}, {"bookworm:redis-server, nginx-light,curl,nginx-light", "bookworm:nginx-light,redis-server"},
		{"Bookworm", "!"}, {"../etc", "!"}, {"bookworm:nginx;reboot", "!"}, {"bookworm:-o", "!"}, {"bookworm --hook", "!"}, {"bookworm:a b", "!"},
	} {
		got, err := parseImage(c.in)
		if (err != nil) != (c.want == "!") || err == nil && got.String() != c.want {
			t.Errorf("%q: %v, %v", c.in, got, err)
		}
	}
	one, _ := parseImage("bookworm:b-x,a-x")
	two, _ := parseImage("bookworm: a-x, b-x, sudo")
	three, _ := parseImage("bookworm:a-x")
	if one.hash() != two.hash() || one.hash() == three.hash() {
		t.Errorf("hashes %s %s %s", one.hash(), two.hash(), three.hash())
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"mem=512m,pids=256,cpu=100", "bookworm:nginx", "mem=9999999999999999t", ":,=,", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := parseFlavor(text); err == nil && (l.Memory < 0 || l.Pids < 0 || l.CPU < 0) {
			t.Errorf("%q: %+v", text, l)
		}
		if im, err := parseImage(text); err == nil {
			again, err := parseImage(im.String())
			if err != nil || again.hash() != im.hash() || strings.ContainsAny(im.String(), " \n/\x00") {
				t.Errorf("%q: %v, again %v, %v", text, im, again, err)
			}
		}
	})
}

// fakeTree is a tree of control groups as files; the kernel's own files are
// made where it would make them.
func fakeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCgroupVersion2(t *testing.T) {
	t.Parallel()
	dir := fakeTree(t, map[string]string{
		"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "memory",
		"loom-x/cgroup.controllers": "cpu memory pids", "loom-x/cgroup.subtree_control": "",
		"loom-x/m1/memory.max": "max", "loom-x/m1/memory.swap.max": "max", "loom-x/m1/pids.max": "max", "loom-x/m1/cpu.weight": "100",
	})
	c := &cgroups{name: "loom-x", trees: []cgroupTree{{path: dir, v2: true, home: "/"}}}
	if warnings := c.prepare("m1", limits{Memory: 64 << 20, Pids: 99, CPU: 50}); len(warnings) != 0 {
		t.Errorf("warnings: %q", warnings)
	}
	c.enter("m1", 4711)
	for file, want := range map[string]string{
		"loom-x/m1/memory.max": "67108864", "loom-x/m1/memory.swap.max": "0", "loom-x/m1/pids.max": "99", "loom-x/m1/cpu.weight": "50", "loom-x/m1/cgroup.procs": "4711",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	// Controllers are handed down at both levels; files keep the last word only.
	if got, err := os.ReadFile(filepath.Join(dir, "loom-x/cgroup.subtree_control")); err != nil || !strings.HasPrefix(string(got), "+") {
		t.Errorf("subtree_control: %q, %v", got, err)
	}
	if got := c.leftovers(); len(got) != 1 || got[0] != "m1" {
		t.Errorf("leftovers: %v", got)
	}
}

// On a mixed host the tree of version 2 offers no controllers.
func TestCgroupMixed(t *testing.T) {
	t.Parallel()
	two := fakeTree(t, map[string]string{"cgroup.controllers": "", "cgroup.subtree_control": ""})
	memory := fakeTree(t, map[string]string{"loom-x/m1/memory.limit_in_bytes": "0", "loom-x/m1/memory.memsw.limit_in_bytes": "0"})
	cpu := fakeTree(t, map[string]string{"loom-x/m1/cpu.shares": "1024"})
	freezer := t.TempDir()
	c := &cgroups{name: "loom-x", trees: []cgroupTree{
		{path: two, v2: true, home: "/"}, {path: memory, controllers: []string{"memory"}, home: "/box"},
		{path: cpu, controllers: []string{"cpu", "cpuacct"}, home: "/"}, {path: freezer, controllers: []string{"freezer"}, home: "/"},
	}}
	warnings := c.prepare("m1", limits{Memory: 32 << 20, Pids: 99, CPU: 50})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "processes") {
		t.Errorf("warnings: %q", warnings)
	}
	for file, want := range map[string]string{
		memory + "/loom-x/m1/memory.limit_in_bytes": "33554432", memory + "/loom-x/m1/memory.memsw.limit_in_bytes": "33554432", cpu + "/loom-x/m1/cpu.shares": "512",
	} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(two, "loom-x/m1")); err != nil {
		t.Errorf("no group of its own in the tree of version 2: %v", err)
	}
	if _, err := os.Stat(filepath.Join(freezer, "loom-x")); err == nil {
		t.Error("a group was made in a tree where it has no use")
	}
	if none := (&cgroups{name: "loom-x"}).prepare("m1", limits{Memory: 1 << 30, Pids: 1, CPU: 1}); len(none) != 3 {
		t.Errorf("without control groups: %q", none)
	}
}

func TestParseTrees(t *testing.T) {
	t.Parallel()
	mounts := `30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 / /mnt/again rw - cgroup cgroup rw,cpu,cpuacct
35 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
36 30 0:31 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
`
	own := "5:freezer:/\n4:cpuset:/\n3:cpu,cpuacct:/user.slice\n2:name=systemd:/user.slice/a.scope\n0::/user.slice/a.scope\n"
	got := fmt.Sprint(parseTrees(mounts, own))
	want := "[{/sys/fs/cgroup/unified true [] /user.slice/a.scope} {/sys/fs/cgroup/systemd false [name=systemd] /user.slice/a.scope} " +
		"{/sys/fs/cgroup/cpu,cpuacct false [cpu cpuacct] /user.slice} {/sys/fs/cgroup/freezer false [freezer] /}]"
	if got != want {
		t.Errorf("trees\n%s, want\n%s", got, want)
	}
}

// TestLimitsHold has a real machine run into its limits.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	spec.Flavor = "mem=64m,pids=40,cpu=50"
	log := &sink{t: t}
	result, err := b.Create(b.ctx, spec, log)
	if err != nil || result.Status != 0 {
		t.Fatalf("create: %+v, %v", result, err)
	}
	m := b.machine(t, spec)
	limited := func(what string) bool { return !strings.Contains(strings.Join(log.lines, "\n"), "No limit of "+what) }
	// Everything the machine runs counts, what Loom's own group holds does not.
	record, err := b.readState(m.ID)
	if err != nil || record.Group != "t0/"+m.ID {
		t.Fatalf("the machine's group is %q, %v", record.Group, err)
	}
	for _, tree := range b.cgroups.trees {
		if tree.shared() {
			continue
		}
		own, err := os.ReadFile(filepath.Join(b.cgroups.dir(tree, record.Group), "cgroup.procs"))
		if err != nil || !strings.Contains("\n"+string(own), fmt.Sprintf("\n%d\n", m.PID)) {
			t.Errorf("the machine is not in its group of %s: %q, %v", tree.path, own, err)
		}
	}
	if !limited("memory") && !limited("processes") {
		sshtest.SkipHere(t, "this host limits neither memory nor processes")
	}
	if limited("memory") {
		if out, err := b.run(t, m, "python3 -c 'x = bytearray(200 << 20); print(len(x))'"); err == nil {
			t.Errorf("200 MiB in a machine of 64 MiB: %s", out)
		}
	}
	if limited("processes") {
		b.must(t, m, "true") // it is still there
		b.must(t, m, "setsid sh -c 'for i in $(seq 80); do sleep 1000 & done' > /dev/null 2>&1 < /dev/null &")
		poll(t, time.Minute, "as many processes as a machine may have", func() error {
			if n := len(b.cgroups.pids(record.Group)); n < 38 {
				return fmt.Errorf("%d processes", n)
			}
			return nil
		})
		if n := len(b.cgroups.pids(record.Group)); n > 40 {
			t.Errorf("%d processes in a machine of 40", n)
		}
	}
	b.delete(t, spec)
}
