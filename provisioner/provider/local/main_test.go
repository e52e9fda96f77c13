package local

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// The test program is also the first process of the machines it makes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == StageCommand {
		os.Exit(Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == probeCommand {
		os.Exit(probe(os.Args[2]))
	}
	os.Exit(m.Run())
}

// bundle is a Local with a data directory of its own, and a key for its machines.
type bundle struct {
	*Local
	ctx     context.Context
	dataDir string
	signer  ssh.Signer
	pem     string
	public  string

	mu      sync.Mutex
	clients map[string]*ssh.Client
}

// setUpLocal skips, or fails under LOOM_TEST_REQUIRE=1, where machines cannot be
// made. Everything is purged at the end, and the end checks that it was.
func setUpLocal(t testing.TB, change ...func(*Options)) *bundle {
	t.Helper()
	dir := t.TempDir()
	b := openLocal(t, dir, change...)
	if err := b.Ready(); err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err := b.Prepare(b.ctx, []string{DefaultImage}, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	b.pem = string(pem.EncodeToMemory(block))
	if b.signer, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	sshPub, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	b.public = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshPub))) + " loom test"
	t.Cleanup(func() {
		if err := b.Purge(context.Background()); err != nil {
			t.Errorf("purge: %v", err)
		}
		b.assertNothingOutside(t)
		for _, name := range []string{"machines", "addresses", "locks", "instance.json"} {
			if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
				t.Errorf("%s is left in the data directory", name)
			}
		}
	})
	return b
}

// openLocal opens a data directory as another process would.
func openLocal(t testing.TB, dir string, change ...func(*Options)) *bundle {
	t.Helper()
	baseDir := os.Getenv("LOOM_TEST_BASE_DIR")
	if baseDir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		baseDir = filepath.Join(cache, "loom-test", "base")
	}
	options := Options{DataDir: dir, BaseDir: baseDir}
	for _, f := range change {
		f(&options)
	}
	l, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if t, ok := t.(*testing.T); ok {
		if deadline, ok := t.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-15*time.Second))
			t.Cleanup(cancel)
		}
	}
	return &bundle{Local: l, ctx: ctx, dataDir: options.DataDir, clients: map[string]*ssh.Client{}}
}

// spec is a task for node n of a tenant.
func (b *bundle) spec(tenant loom.TenantID, n int) *loom.TaskSpec {
	return &loom.TaskSpec{
		Tenant: tenant, IdempotencyKey: fmt.Sprintf("%s-%d", tenant, n), Node: loom.NodeID(fmt.Sprintf("node-%s-%d", tenant, n)),
		Hostname: fmt.Sprintf("shop7-%d.example.net", 1000+n), Image: DefaultImage, ImageType: "debian", HardwareType: "small",
		PublicKey: b.public, PrivateKey: loom.NewSecret(b.pem), Results: map[string]any{},
		Provider: loom.Provider{Base: loom.Base{Name: "local"}, Type: TypeName, Fields: map[string]any{}},
	}
}

// create makes a machine and merges the result into the task, as Loom would.
func (b *bundle) create(t testing.TB, spec *loom.TaskSpec) MachineInfo {
	t.Helper()
	result, err := b.Create(b.ctx, spec, &sink{t: t})
	if err != nil || result.Status != 0 {
		t.Fatalf("create: %+v, %v", result, err)
	}
	for key, value := range result.Result {
		spec.Results[key] = value
	}
	return b.machine(t, spec)
}

func (b *bundle) delete(t testing.TB, spec *loom.TaskSpec) {
	t.Helper()
	if result, err := b.Delete(b.ctx, spec, &sink{t: t}); err != nil || result.Status != 0 {
		t.Fatalf("delete: %+v, %v", result, err)
	}
}

// machine finds the machine of a task.
func (b *bundle) machine(t testing.TB, spec *loom.TaskSpec) MachineInfo {
	t.Helper()
	machines, err := b.Machines()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		if m.Key == spec.IdempotencyKey {
			return m
		}
	}
	t.Fatalf("no machine with key %s among %+v", spec.IdempotencyKey, machines)
	return MachineInfo{}
}

// run executes a command over SSH, checking the host key, and fails the test
// when the machine cannot be reached. The exit code is 0 when err is nil.
func (b *bundle) run(t testing.TB, m MachineInfo, command string) (output string, err error) {
	t.Helper()
	return b.runAs(t, "root", m, command)
}

func (b *bundle) runAs(t testing.TB, user string, m MachineInfo, command string) (output string, err error) {
	t.Helper()
	s, err := b.readState(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	// One connection per life of the machine: each costs 43 ms.
	life := fmt.Sprint(user, m.ID, s.PID, s.StartTime)
	b.mu.Lock()
	client := b.clients[life]
	b.mu.Unlock()
	if client == nil {
		t.Cleanup(func() {
			if t.Failed() && client == nil {
				t.Log(ways(m.Address, b.linkPattern()))
			}
		})
		poll(t, 30*time.Second, "SSH at "+m.Address, func() error {
			client, err = ssh.Dial("tcp", m.Address+":22", &ssh.ClientConfig{
				User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(b.signer)}, Timeout: 5 * time.Second, HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
				HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
					if got := strings.Fields(string(ssh.MarshalAuthorizedKey(key)))[1]; got != s.HostKey {
						return fmt.Errorf("host key %s, on record is %s", got, s.HostKey)
					}
					return nil
				}})
			return err
		})
		t.Cleanup(func() { client.Close() })
		b.mu.Lock()
		b.clients[life] = client
		b.mu.Unlock()
	}
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.CombinedOutput(command)
	return strings.TrimSpace(string(out)), err
}

// ways tells how this host would reach an address.
func ways(address, pattern string) string {
	out, err := exec.Command("sh", "-c", "ip route get "+address+"; ip neigh show "+address+"; ip address | grep -A 3 "+pattern).CombinedOutput()
	return fmt.Sprintf("%s %v", out, err)
}

// must runs a command that has to succeed.
func (b *bundle) must(t testing.TB, m MachineInfo, command string) string {
	t.Helper()
	out, err := b.run(t, m, command)
	if err != nil {
		t.Fatalf("%s on %s: %v\n%s", command, m.Address, err, out)
	}
	return out
}

// assertNothingOutside checks that the host shows no trace of the instance.
func (b *bundle) assertNothingOutside(t testing.TB) {
	t.Helper()
	links, err := b.links()
	if err != nil {
		t.Error(err)
	}
	for _, link := range links {
		t.Errorf("interface %s is left", link.Attrs().Name)
	}
	for _, family := range []byte{unix.NFPROTO_INET, unix.NFPROTO_BRIDGE} {
		if b.hasTable(family) {
			t.Errorf("packet filter table %s is left in family %d", b.tableName(), family)
		}
	}
	for _, tree := range b.cgroups.trees {
		if _, err := os.Stat(filepath.Join(tree.path, b.cgroups.name)); err == nil {
			t.Errorf("control group %s is left in %s", b.cgroups.name, tree.path)
		}
	}
	b.assertNoMount(t)
}

// assertNoMount looks for the data directory in the host's mount table.
func (b *bundle) assertNoMount(t testing.TB) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), b.dataDir) || strings.Contains(string(mounts), " loom ") {
		t.Errorf("a mount of the instance is in the host's table: %v\n%s", err, mounts)
	}
}

// poll tries until f succeeds or the time is over.
func poll(t testing.TB, limit time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sink keeps what a task says.
type sink struct {
	t testing.TB
	// onFact, when set, is asked before a fact is stored.
	onFact func(map[string]any) error

	mu    sync.Mutex
	lines []string
	facts map[string]any
}

func (s *sink) Log(_, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, text)
}

func (s *sink) Fact(results map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onFact != nil {
		if err := s.onFact(results); err != nil {
			return err
		}
	}
	if s.facts == nil {
		s.facts = map[string]any{}
	}
	for key, value := range results {
		s.facts[key] = value
	}
	return nil
}

var _ provider.Provider = (*Local)(nil)

// nftList returns the instance's table as the kernel has it, without what it counts.
func (b *bundle) nftList(t testing.TB) string {
	t.Helper()
	tool, err := findTool("nft")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "list", "table", "inet", b.tableName()).CombinedOutput()
	if err != nil {
		t.Fatalf("nft list table: %v: %s", err, out)
	}
	rules, rest, _ := strings.Cut(string(out), "\tset flows {")
	_, chains, _ := strings.Cut(rest, "\tchain ")
	return rules + chains
}
