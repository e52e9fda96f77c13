package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/config"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
	"loom/app/wiring"
)

// plantPlugin writes a plugin with one type.
func plantPlugin(t *testing.T, dir, name, kind, script string) string {
	t.Helper()
	place := filepath.Join(dir, name)
	manifest := `{"protocol": [1], "name": "` + name + `", "version": "7", "command": ["./run"], "types": {"` + name + `-type": {"kind": "` + kind + `",
		"parameters": {"admin": {"fields": {"api_token": {"label": "Token", "type": "password"}}}}}}}`
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	passable(t, place)
	for file, content := range map[string]string{"plugin.json": manifest, "run": "#!/bin/sh\n" + script + "\n"} {
		if err := os.WriteFile(filepath.Join(place, file), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return place
}

// passable lets the user that plugins run as reach a directory of a test, as those of
// tests are private.
func passable(t *testing.T, dir string) {
	t.Helper()
	for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// loomPlugin runs loom plugin with a plugin path.
func loomPlugin(t *testing.T, path string, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	dir := filepath.Join(t.TempDir(), "var")
	code = run(append([]string{"plugin"}, args...), []string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir, "LOOM_PLUGIN_PATH=" + path, "LOOM_LOG_LEVEL=error"}, strings.NewReader(""), &o, &e)
	if len(args) > 0 && args[0] != "run-task" {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("loom plugin %s made the data directory", args[0])
		}
	}
	return o.String(), e.String(), code
}

const creates = `cat >/dev/null; echo "working with t0ken-of-the-test"; echo '{"t":"result","status":0,"result":{"providerid":"m-1","ssh-auth":{"user":"root","password":"made-up-pass"}}}'`

func TestPluginCommands(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	place := plantPlugin(t, path, "acme", "provider", creates)
	broken := t.TempDir()
	plantPlugin(t, broken, "acme", "provider", creates)
	plantPlugin(t, broken, "bad", "cloud", creates)
	files := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(files, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	request := write("request", `{"input": {"fields": {"api_token": "t0ken-of-the-test"}}}`)
	task := write("task", `{"taskId": "00000012-001-003", "taskName": "CREATE", "config": {"provider": {"providertype": "acme-type", "provisioner": {"api_token": "t0ken-of-the-test"}}}}`)
	failing := plantPlugin(t, t.TempDir(), "failing", "provider", "exit 75")
	for _, c := range []struct {
		name, path string
		args       []string
		code       int
		out, says  string
	}{
		{"nothing", "", nil, 2, "", `expected one of "list", "check"`},
		{"a slip", "", []string{"lst"}, 2, "", `did you mean one of "list"`},
		{"list", path, []string{"list"}, 0, "acme-type", ""},
		{"list with what cannot be used", broken, []string{"list"}, 1, "acme-type", "types.bad-type.kind"},
		{"list of nothing", "", []string{"list"}, 0, "shell", ""},
		{"list too much", "", []string{"list", "all"}, 2, "", "unexpected argument all"},
		{"check", "", []string{"check", place}, 0, "acme 7 can be used", ""},
		{"check what is wrong", "", []string{"check", filepath.Join(broken, "bad")}, 1, "", "types.bad-type.kind"},
		{"check nowhere", "", []string{"check", "/nowhere"}, 1, "", "There is no plugin in /nowhere"},
		{"schema", "", []string{"schema"}, 0, `"$schema"`, ""},
		{"run", "", []string{"run", place, "provider", "create", request}, 0, `"providerid": "m-1"`, "working with [redacted]"},
		{"run what fails", "", []string{"run", failing, "provider", "create", request}, 1, `"retryable": true`, ""},
		{"run as something else", "", []string{"run", place, "cloud", "create", request}, 2, "", `must be one of "provider","automator" but got "cloud"`},
		{"run the other kind", "", []string{"run", place, "automator", "start", request}, 2, "", "declares no automator type"},
		{"run nonsense", "", []string{"run", place, "provider", "create", write("nonsense", "{")}, 2, "", "no JSON"},
		{"run without a file", "", []string{"run", place, "provider", "create", "/nowhere"}, 2, "", "/nowhere"},
		{"run with half a machine", "", []string{"run", place, "provider", "create", "--ssh", "root@h", request}, 2, "", "--ssh and --ssh-key must be used together"},
		{"run-task", path, []string{"run-task", task}, 0, `"providerid": "m-1"`, "working with [redacted]"},
		{"run-task of nobody", "", []string{"run-task", task}, 1, "no provider of type", ""},
		{"run-task nonsense", "", []string{"run-task", write("t2", `{"taskName": "DANCE"}`)}, 2, "", "taskName"},
		{"run-task without service", "", []string{"run-task", write("t3", `{"taskName": "START"}`)}, 2, "", "config.service"},
		{"test without a plugin", "", []string{"test"}, 2, "", `expected "<plugin>"`},
		{"test shell without a machine", "", []string{"test", "shell"}, 2, "", "--ssh USER@HOST"},
		{"test with a missing file", "", []string{"test", place, "--with", "/nowhere"}, 2, "", "--with"},
		{"test of another type", "", []string{"test", place, "--type", "none"}, 1, "", "has no type “none”"},
		{"register without an instance", "", []string{"register"}, 1, "", "There is no instance of Loom"},
	} {
		out, errOut, code := loomPlugin(t, c.path, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errOut, c.says) {
			t.Errorf("%s: exit status %d\n%s\n%s", c.name, code, out, errOut)
		}
		if strings.Contains(out+errOut, "t0ken-of-the-test") || strings.Contains(out+errOut, "made-up-pass") {
			t.Errorf("%s prints a secret:\n%s\n%s", c.name, out, errOut)
		}
	}
}

// TestPluginTest: what the checks find is printed and makes the exit status 1.
func TestPluginTest(t *testing.T) {
	t.Parallel()
	place := plantPlugin(t, t.TempDir(), "acme", "provider", creates)
	out, errOut, code := loomPlugin(t, "", "test", place)
	if code != 1 || !strings.Contains(out, "FAIL  acme-type: protocol: an unknown action exits with 64\n      it exits with 0") || !strings.Contains(out, "skip  acme-type: create") || !strings.Contains(errOut, "found something") {
		t.Errorf("exit status %d\n%s\n%s", code, out, errOut)
	}
	out, errOut, code = loomPlugin(t, "", "test", "mock")
	if code != 0 || !strings.Contains(out, " 0 findings") {
		t.Errorf("mock: exit status %d\n%s\n%s", code, out, errOut)
	}
}

// TestRegisterPlugins: the types get to the database with what they declare, and a
// plugin that is another one elsewhere is told of.
func TestRegisterPlugins(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t).DSN
	path := t.TempDir()
	plantPlugin(t, path, "acme", "provider", creates)
	var log bytes.Buffer
	ctx := t.Context()
	register := func() *wiring.Plugins {
		values, err := config.Load(nil, []string{"LOOM_DATA_DIR=" + t.TempDir(), "LOOM_DATABASE_URL=" + db, "LOOM_PLUGIN_PATH=" + path})
		if err != nil {
			t.Fatal(err)
		}
		e := &wiring.Environment{Values: values, Log: slog.New(slog.NewTextHandler(&log, nil)), Out: io.Discard, ErrOut: io.Discard}
		defer e.Close()
		s, err := e.System(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Plugins()
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Register(ctx, s, p); err != nil {
			t.Fatal(err)
		}
		stored, _, err := s.Catalog.Entry(ctx, wiring.CliActor(), loom.KindProviderType, "acme-type", 0)
		if err != nil || !stored.(*loom.PluginType).Parameters["admin"].Fields["api_token"].Sensitive {
			t.Fatalf("the type in the database: %+v, %v", stored, err)
		}
		text, err := store.InstanceValue(ctx, s.DB, "plugin acme")
		var record wiring.PluginRecord
		if err != nil || json.Unmarshal([]byte(text), &record) != nil || record.Version != "7" || len(record.Program) != 64 {
			t.Fatalf("the record: %q, %v", text, err)
		}
		// As if another host had registered it.
		elsewhere := strings.Replace(text, record.Host, "another-host", 1)
		if err := storeValue(ctx, s, "plugin acme", elsewhere); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := register()
	if names := strings.Join(p.Names(), " "); !strings.Contains(names, "acme-type") || !strings.Contains(names, "shell") {
		t.Errorf("carried: %s", names)
	}
	if register(); strings.Contains(log.String(), "differs between provisioners") {
		t.Errorf("the same plugin is said to differ: %s", log.String())
	}
	plantPlugin(t, path, "acme", "provider", "exit 1")
	if register(); !strings.Contains(log.String(), "differs between provisioners") {
		t.Errorf("a plugin that differs is not told of: %s", log.String())
	}
}

// TestPluginsAreReadAgain on SIGHUP: new ones are carried, those that are gone are not.
func TestPluginsAreReadAgain(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	first := plantPlugin(t, path, "acme", "provider", creates)
	values, err := config.Load(nil, []string{"LOOM_DATA_DIR=" + t.TempDir(), "LOOM_DATABASE_URL=" + testkit.NewDatabase(t).DSN, "LOOM_PLUGIN_PATH=" + path})
	if err != nil {
		t.Fatal(err)
	}
	e := &wiring.Environment{Values: values, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Out: io.Discard, ErrOut: io.Discard}
	t.Cleanup(e.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := e.System(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Plugins()
	if err != nil {
		t.Fatal(err)
	}
	before, ok := p.Providers.Get("acme-type")
	if !ok {
		t.Fatalf("carried: %v", p.Names())
	}
	e.RescanOnHangup(ctx, s, p)
	plantPlugin(t, path, "other", "automator", "exit 0")
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, there := p.Providers.Get("acme-type")
		_, here := p.Automators.Get("other-type")
		_, _, err := s.Catalog.Entry(ctx, wiring.CliActor(), loom.KindAutomatorType, "other-type", 0)
		if !there && here && err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("carried: %v, %v", p.Names(), err)
		}
	}
	if before.Type().Name != "acme-type" {
		t.Error("what runs lost its plugin")
	}
}

func storeValue(ctx context.Context, s *wiring.System, key, value string) error {
	tx, err := s.DB.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // committed below
	if err := store.SetInstanceValue(ctx, tx, key, value); err != nil {
		return err
	}
	return tx.Commit()
}
