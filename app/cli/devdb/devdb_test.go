package devdb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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
