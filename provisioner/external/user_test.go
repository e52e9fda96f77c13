package external

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/confine"
	"loom/provisioner/provider"
	"loom/provisioner/remote/sshtest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestAnotherUser: under LOOM_PLUGIN_USER a plugin can neither read what is the
// provisioner's nor get its rights back, and finds what it is lent.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may switch users")
	}
	needSSH(t)
	user, err := confine.LookupUser("nobody")
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	for dir := base; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) { // the directories of tests are private
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := host(t)
	h.User, h.Scratch = user, filepath.Join(base, "s")
	files, private := filepath.Join(base, "private", "files"), filepath.Join(base, "private")
	for _, err := range []error{
		os.Mkdir(h.Scratch, 0o711), os.Mkdir(private, 0o700), os.MkdirAll(filepath.Join(files, "ssh_keys"), 0o755), os.MkdirAll(filepath.Join(files, "scripts", "tree"), 0o755),
		os.WriteFile(filepath.Join(private, "database"), []byte("secret"), 0o600), os.WriteFile(filepath.Join(private, "key"), []byte("a key"), 0o400),
		os.Symlink(filepath.Join(private, "key"), filepath.Join(files, "ssh_keys", "prod")), os.WriteFile(filepath.Join(files, "scripts", "tree", "go"), []byte("#!/bin/sh\necho went\n"), 0o755),
		os.Symlink("/nowhere/at/all", filepath.Join(files, "scripts", "dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	server := sshtest.Start(t, sshtest.Options{})
	dir := plantAt(t, filepath.Join(base, "plugin"), KindProvider, `#!/bin/sh
echo "I am $(id -u) $(id -g)"
cat ssh_keys/prod && scripts/tree/go
cat `+private+`/database 2>&1
echo x >>ssh_keys/prod || echo "cannot write resources"
echo x >"$LOOM_PLUGIN_DIR/x" || echo "cannot write plugin"
echo x >"$LOOM_SCRATCH/x" && echo "can write scratch"
grep -E '^(NoNewPrivs|CapEff|CapPrm|CapInh):' /proc/self/status
ssh -F "$LOOM_SSH_CONFIG" node 'echo on the machine' || exit 3
echo '{"t":"result","status":0,"ipaddresses":{"access_v4":"192.0.2.1"}}'
`, nil)
	spec := task(loom.ActionConfirm)
	c := specCall(load(t, h, dir), KindProvider, "lab-provider", spec, files)
	target := targetOf(server)
	c.target = &target
	r := &record{}
	result, err := h.run(provider.WithEnv(t.Context(), provider.Env{Files: files}), c, r)
	if err != nil || result.Status != 0 {
		t.Fatalf("%+v, %v\n%s", result, err, r.text())
	}
	text := r.text()
	for _, want := range []string{"I am " + itoa(user.UID) + " " + itoa(user.GID), "a key", "went", "Permission denied", "cannot write resources", "cannot write plugin", "can write scratch", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "on the machine"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("the plugin reads what is the provisioner's: %s", text)
	}
	nothingLeft(t, h)

	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Load(dir); err == nil || !strings.Contains(err.Error(), "may not pass "+dir) {
		t.Errorf("a plugin that the user cannot reach: %v", err)
	}
}

// TestAnotherUserIsKilled: what runs as another user ends like anything else, and
// so do the processes that left its group.
func TestAnotherUserIsKilled(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may switch users")
	}
	user, err := confine.LookupUser("nobody")
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	for dir := base; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := host(t)
	h.User, h.Scratch = user, base
	dir := plantAt(t, filepath.Join(t.TempDir(), "p"), KindProvider, "#!/bin/sh\nsetsid sleep 300 & sleep 300 & mkdir -p \"$TMPDIR/a/b\"; chmod 0 \"$TMPDIR/a\"; "+good+"\n", nil)
	for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	result, err := h.Provider(load(t, h, dir), "lab-provider").Create(t.Context(), task(loom.ActionCreate), &record{})
	if err != nil || result.Status != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	nothingLeft(t, h)
}

func TestLookupUser(t *testing.T) {
	t.Parallel()
	if _, err := confine.LookupUser("no-such-user-here"); err == nil || !strings.Contains(err.Error(), "useradd") {
		t.Errorf("an unknown user: %v", err)
	}
	if _, err := confine.LookupUser("root"); err == nil || !strings.Contains(err.Error(), "cannot run as “root”") {
		t.Errorf("root: %v", err)
	}
	if _, err := confine.LookupUser("nobody"); err != nil && os.Geteuid() == 0 {
		t.Error(err)
	}
}
