package conformance_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"loom/app/loom"
	"loom/provisioner/conformance"
	"loom/provisioner/conformance/builtin"
	"loom/provisioner/provider/local"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestMock: the mock keeps to what it stands in for, and so does its twin.
func TestMock(t *testing.T) {
	t.Parallel()
	conformance.Provider(t.Context(), conformance.Testing(t), builtin.Mock())
	conformance.Automator(t.Context(), conformance.Testing(t), builtin.MockAutomator())
}

// TestLocalProvider makes real machines.
func TestLocalProvider(t *testing.T) {
	t.Parallel()
	baseDir := os.Getenv("LOOM_TEST_BASE_DIR")
	if baseDir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		baseDir = filepath.Join(cache, "loom-test", "base")
	}
	machines, err := local.New(local.Options{DataDir: t.TempDir(), BaseDir: baseDir})
	if err != nil {
		t.Fatal(err)
	}
	if err := machines.Ready(); err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err := machines.Prepare(t.Context(), []string{local.DefaultImage}, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := machines.Purge(context.Background()); err != nil {
			t.Errorf("purge: %v", err)
		}
	})
	target, err := builtin.Local(machines)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Provider(t.Context(), conformance.Testing(t), target)
}

// TestShellAutomator works on a real machine.
func TestShellAutomator(t *testing.T) {
	t.Parallel()
	server := sshtest.Start(t, sshtest.Options{Isolated: true})
	conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Address: server.Address, Port: server.Port, User: sshtest.SudoUser,
		Keys: []loom.Secret{loom.NewSecret(server.Key.PEM)}, HostKeys: server.HostKeys})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	target, err := builtin.Shell(conn, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	conformance.Automator(t.Context(), conformance.Testing(t), target)
}
