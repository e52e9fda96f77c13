package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
)

func TestTypeIsValid(t *testing.T) {
	t.Parallel()
	b := openLocal(t, t.TempDir())
	registry, err := provider.NewRegistry(b.Local)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := registry.Get("local"); !ok {
		t.Error("the type is not called local")
	}
	admin := b.Type().Parameters["admin"]
	for _, name := range []string{"ssh_user", "ssh_key_resource", "internet"} {
		if f := admin.Fields[name]; f.Label == "" || f.Tip == "" || f.Override {
			t.Errorf("field %s: %+v", name, f)
		}
	}
	if missing := admin.Missing(nil); missing != nil {
		t.Errorf("required: %v", missing)
	}
}

// TestBadInput: what is wrong with the request is told with the remedy, counts
// as "nothing was made", and makes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	for name, c := range map[string]struct {
		change func(*loom.TaskSpec)
		want   string
	}{
		"flavor":           {func(s *loom.TaskSpec) { s.Flavor = "m1.small" }, "mem=512m,pids=256,cpu=100"},
		"image":            {func(s *loom.TaskSpec) { s.Image = "ami-123:" + strings.Repeat("x", 200) }, "bookworm:nginx-light,haproxy"},
		"user":             {func(s *loom.TaskSpec) { s.SSHUser = "../root" }, "small letters"},
		"user field":       {func(s *loom.TaskSpec) { s.Provider.Fields["ssh_user"] = "a:b" }, "small letters"},
		"internet":         {func(s *loom.TaskSpec) { s.Provider.Fields["internet"] = "maybe" }, "internet"},
		"host name":        {func(s *loom.TaskSpec) { s.Hostname = "a\nb" }, "host name"},
		"no host name":     {func(s *loom.TaskSpec) { s.Hostname = "" }, "host name"},
		"no key":           {func(s *loom.TaskSpec) { s.PublicKey = "" }, "ssh_key_resource"},
		"bad key":          {func(s *loom.TaskSpec) { s.PublicKey = "ssh-rsa nonsense" }, "authorized_keys"},
		"missing key":      {func(s *loom.TaskSpec) { s.Provider.Fields["ssh_key_resource"] = "ssh_keys/prod" }, "“prod”"},
		"no idempotency":   {func(s *loom.TaskSpec) { s.IdempotencyKey = "" }, "idempotency key"},
		"two lines of key": {func(s *loom.TaskSpec) { s.PublicKey = "\n# x\n" }, "authorized_keys"},
	} {
		spec := b.spec("acme", 0)
		c.change(spec)
		log := &sink{t: t}
		result, err := b.Create(b.ctx, spec, log)
		if err != nil || result.Status != 200 || !strings.Contains(result.Message, c.want) || result.Retryable == nil || *result.Retryable || len(log.facts) != 0 {
			t.Errorf("%s: %+v, %v, facts %v", name, result, err, log.facts)
		}
	}
	for _, id := range []string{"../../etc", "..", ".", "", "nosuch", "/etc"} {
		spec := b.spec("acme", 0)
		spec.Results["providerid"] = id
		if result, err := b.Confirm(b.ctx, spec, &sink{t: t}); err != nil || result.Status != 1 {
			t.Errorf("confirm %q: %+v, %v", id, result, err)
		}
		b.delete(t, spec)
		spec.IdempotencyKey = ""
		b.delete(t, spec)
	}
	if machines, err := b.Machines(); err != nil || len(machines) != 0 {
		t.Errorf("machines: %+v, %v", machines, err)
	}
	if _, err := New(Options{}); !errors.Is(err, loom.Invalid) {
		t.Errorf("without a data directory: %v", err)
	}
}

// TestKeyResource: the machine opens for the key that the provider names.
func TestKeyResource(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	files := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(files, "ssh_keys"), 0o700), os.WriteFile(filepath.Join(files, "ssh_keys", "prod"), []byte(b.pem), 0o400)); err != nil {
		t.Fatal(err)
	}
	spec := b.spec("acme", 0)
	spec.PublicKey = ""
	spec.Provider.Fields["ssh_key_resource"] = "prod"
	b.ctx = provider.WithEnv(b.ctx, provider.Env{Files: files})
	m := b.create(t, spec)
	if auth := spec.Results["ssh-auth"].(map[string]any); auth["identityfile"] != "ssh_keys/prod" || auth["user"] != "root" {
		t.Errorf("ssh-auth: %v", auth)
	}
	b.must(t, m, "true")
	b.delete(t, spec)
}

// TestWithoutRoot runs this program as an ordinary user.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		tryWithoutRoot(t, t.TempDir())
		return
	}
	program, err := os.Open("/proc/self/exe") // its path may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("loom-ordinary-%d", os.Getpid()))
	cmd := &exec.Cmd{Path: "/proc/self/fd/3", Args: []string{"test", "-test.run=^TestOrdinaryUser$", "-test.v"}, ExtraFiles: []*os.File{program}, Dir: "/",
		Env:         []string{"LOOM_TEST_ORDINARY=" + dir, "PATH=/usr/bin:/bin", "HOME=/nonexistent"},
		SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "--- PASS: TestOrdinaryUser") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a data directory was made for nothing: %v", err)
	}
}

// TestOrdinaryUser is the process that TestWithoutRoot starts.
func TestOrdinaryUser(t *testing.T) {
	dir := os.Getenv("LOOM_TEST_ORDINARY")
	if dir == "" {
		t.Skip("only run by TestWithoutRoot")
	}
	tryWithoutRoot(t, dir)
}

func tryWithoutRoot(t *testing.T, dir string) {
	l, err := New(Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{Local: l, ctx: t.Context()}
	check := func(what, message string) {
		if !strings.Contains(message, "root") || !strings.Contains(message, "static-hosts provider") {
			t.Errorf("%s: %q does not name root and the way out", what, message)
		}
	}
	if err := l.Ready(); !errors.Is(err, loom.Unavailable) {
		t.Errorf("ready: %v", err)
	}
	check("ready", fmt.Sprint(l.Ready()))
	check("prepare", fmt.Sprint(l.Prepare(b.ctx, []string{DefaultImage}, nil)))
	result, err := l.Create(b.ctx, b.spec("acme", 0), &sink{t: t})
	if err != nil || result.Status != 200 {
		t.Errorf("create: %+v, %v", result, err)
	}
	check("create", result.Message)
	probe, err := l.Probe(b.ctx, &loom.ProviderCall{Tenant: "acme"})
	if err != nil || probe.OK || len(probe.Checks) == 0 || probe.Checks[0].OK {
		t.Fatalf("probe: %+v, %v", probe, err)
	}
	check("probe", probe.Checks[0].Message)
	if err := errors.Join(l.Adopt(b.ctx), l.StopAll(b.ctx), l.Purge(b.ctx)); err != nil {
		t.Errorf("with no machines there is nothing to do: %v", err)
	}
	if result, err := l.Delete(b.ctx, b.spec("acme", 0), &sink{t: t}); err != nil || result.Status != 0 {
		t.Errorf("delete of what was never made: %+v, %v", result, err)
	}
}

// TestOneDirectoryOneInstance: however it is spelled and whether it exists yet.
func TestOneDirectoryOneInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	before := openLocal(t, filepath.Join(link, "var", "local"))
	if err := os.MkdirAll(before.dataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	after := openLocal(t, filepath.Join(link, "var", "..", "var", "local"))
	other := openLocal(t, filepath.Join(dir, "real", "var", "local2"))
	if before.hash != after.hash || before.Local.dataDir != after.Local.dataDir || before.hash == other.hash {
		t.Errorf("%s %s %s", before.Local.dataDir, after.Local.dataDir, other.Local.dataDir)
	}
	for _, name := range []string{before.bridgeName(maxTenants - 1), before.cableName("10.250.255.254")} {
		if len(name) > 15 {
			t.Errorf("interface name %s is too long for the kernel", name)
		}
	}
}
