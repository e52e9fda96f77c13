// Package testkit gives tests a world of their own: a fresh database per test,
// made from a template that was migrated once, and builders of rows.
//
// Imported by _test.go files only. Each database is dropped when its test ends;
// nothing is shared between tests, so they run in parallel and in any order.
package testkit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"

	"loom/app/wiring/devdb"
	"loom/migrations"
)

// DatabaseURL names the server that `make test` started for all packages.
const DatabaseURL = "LOOM_TEST_DATABASE_URL"

// Require makes a missing tool fail a test instead of skipping it.
const Require = "LOOM_TEST_REQUIRE"

// maxConns is small on purpose: code that takes a second connection while it
// holds a transaction hangs in the test instead of in production.
const maxConns = 4

// Database is a fresh, migrated database.
type Database struct {
	*sqlx.DB
	// DSN connects to it, for code that opens its own pools.
	DSN string
}

// NewDatabase makes a database for one test and drops it when the test ends.
func NewDatabase(t testing.TB) *Database {
	t.Helper()
	s := server(t)
	return copyOf(t, s, s.template)
}

// copyOf makes a database for one test from another one, which nobody is connected to.
func copyOf(t testing.TB, s *testServer, template string) *Database {
	t.Helper()
	name := "t_" + random()
	ctx := context.Background()
	if err := s.create(ctx, name, template); err != nil {
		t.Fatalf("make a test database: %v", err)
	}
	var d *Database
	t.Cleanup(func() {
		if d != nil {
			d.DB.Close()
		}
		if _, err := s.admin.ExecContext(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	d, err := open(withDatabase(s.dsn, name))
	if err != nil {
		t.Fatalf("connect to the test database: %v", err)
	}
	return d
}

func open(dsn string) (*Database, error) {
	db, err := sqlx.Connect("postgres", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	return &Database{DB: db, DSN: dsn}, nil
}

// Skip skips the test with a message, or fails it where everything must run.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(Require) != "" {
		t.Fatalf("must run here: "+format, args...)
	}
	t.Skipf(format, args...)
}

type testServer struct {
	dsn, template string
	admin         *sqlx.DB
	err           error
	stop          func()
}

// create copies a database that nobody is connected to. Copying its files takes a quarter
// of what it takes to write its pages to the log, and so does dropping the copy.
func (s *testServer) create(ctx context.Context, name, template string) error {
	_, err := s.admin.ExecContext(ctx, `CREATE DATABASE `+name+` TEMPLATE `+template+` STRATEGY file_copy`)
	return err
}

var (
	once   sync.Once
	shared testServer
)

// Main runs the tests of a package and ends the server that they started, if
// any. Packages that use NewDatabase call it from TestMain. lacks, where given, are
// asked for what the tests of the package did not do together; they are left alone
// where some tests were left out or have failed.
func Main(m *testing.M, lacks ...func() []string) {
	code := m.Run()
	whole := code == 0 && !testing.Short()
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		f := flag.Lookup(name)
		whole = whole && (f == nil || f.Value.String() == "")
	}
	for _, ask := range lacks {
		if !whole {
			break
		}
		for _, lack := range ask() {
			fmt.Fprintln(os.Stderr, "FAIL:", lack)
			code = 1
		}
	}
	if shared.admin != nil && shared.err == nil {
		dropTemplates(&shared)
	}
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// SideBySide sets how many tests of a package run at once where the command line says
// nothing; else it is one per processor. TestMain calls it before Main.
func SideBySide(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

func server(t testing.TB) *testServer {
	t.Helper()
	once.Do(func() { shared = startServer() })
	if shared.err != nil {
		Skip(t, "no test database: %v", shared.err)
	}
	return &shared
}

func startServer() testServer {
	ctx := context.Background()
	var s testServer
	if s.dsn = os.Getenv(DatabaseURL); s.dsn == "" {
		dir, err := os.MkdirTemp("/tmp", "loom-test-pg-")
		if err != nil {
			return testServer{err: err}
		}
		pg, err := devdb.New(devdb.Options{Dir: filepath.Join(dir, "pg"), Scratch: true})
		if err == nil {
			if err = os.Chmod(dir, 0o755); err == nil {
				err = pg.Start(ctx)
			}
		}
		if err != nil {
			os.RemoveAll(dir)
			return testServer{err: err}
		}
		s.dsn = pg.DSN("postgres")
		s.stop = func() {
			s.admin.Close()
			if err := pg.Remove(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			os.RemoveAll(dir)
		}
	}
	admin, err := sqlx.Connect("postgres", withDatabase(s.dsn, "postgres"))
	if err != nil {
		if s.stop != nil {
			s.admin = &sqlx.DB{}
		}
		return testServer{err: err, stop: nil}
	}
	admin.SetMaxOpenConns(8)
	s.admin = admin
	s.template, s.err = makeTemplate(ctx, admin, s.dsn)
	return s
}

// templateLock is the advisory lock under which packages that share a server
// make the template once.
const templateLock = 7081103213

func makeTemplate(ctx context.Context, admin *sqlx.DB, dsn string) (string, error) {
	version, err := migrations.Fingerprint()
	if err != nil {
		return "", err
	}
	name := "loom_template_" + version
	conn, err := admin.Connx(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(templateLock)); err != nil {
		return "", err
	}
	defer conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, int64(templateLock)) //nolint:errcheck // the session ends anyway
	var there bool
	if err := conn.GetContext(ctx, &there, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name); err != nil {
		return "", err
	}
	if there {
		return name, nil
	}
	// Made under another name first: a template that failed half way is not used.
	draft := name + "_" + random()
	if _, err := conn.ExecContext(ctx, `CREATE DATABASE `+draft); err != nil {
		return "", err
	}
	if err := migrations.Up(ctx, withDatabase(dsn, draft)); err != nil {
		return "", err
	}
	if _, err := conn.ExecContext(ctx, `ALTER DATABASE `+draft+` RENAME TO `+name); err != nil {
		return "", err
	}
	return name, nil
}

// withDatabase returns the DSN of another database on the same server, for both
// the URL and the key=value form.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	var parts []string
	for _, part := range strings.Fields(dsn) {
		if !strings.HasPrefix(part, "dbname=") {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, "dbname="+name), " ")
}

func random() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
