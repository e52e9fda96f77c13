package devdb

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jmoiron/sqlx"
)

func newServer(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := New(Options{Dir: dir, Scratch: true})
	if err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestServerStartsTwiceStopsAndKeepsData(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	// A deep directory below a 0700 one: as root the server's user cannot reach it
	// and a socket there would have too long a path.
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 20))
	s := newServer(t, dir)
	for range 2 {
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, s, `CREATE TABLE kept (n int)`)
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if s.Running(ctx) {
		t.Fatal("the server runs after Stop")
	}
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, `INSERT INTO kept VALUES (1)`)
	if err := s.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.data, s.socket} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there after Remove", path)
		}
	}
}

// TestServerIsPrivate: other users of the host reach neither the socket nor the files of
// the server, and it listens on no port.
func TestServerIsPrivate(t *testing.T) {
	t.Parallel()
	s := newServer(t, filepath.Join(t.TempDir(), "data"))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.data, s.socket} {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o007 != 0 {
			t.Errorf("%s has mode %04o: others may pass", dir, mode)
		}
	}
	db, err := sqlx.Connect("postgres", s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var addresses string
	if err := db.Get(&addresses, `SHOW listen_addresses`); err != nil || addresses != "" {
		t.Errorf("it listens on %q, %v", addresses, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	// As another user, with whatever rights on the directories above.
	cmd := exec.Command("/bin/sh", "-c", "ls "+s.socket+" || ls "+s.data+" || cat "+filepath.Join(s.data, "pg_hba.conf"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("another user sees %s", out)
	}
}

func TestMissingBinariesNameTheRemedy(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Dir: t.TempDir(), BinDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "LOOM_PG_BIN") {
		t.Fatalf("error %v does not name the setting", err)
	}
}

func mustExec(t *testing.T, s *Server, statement string) {
	t.Helper()
	db, err := sqlx.Connect("postgres", s.DSN("loom"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
