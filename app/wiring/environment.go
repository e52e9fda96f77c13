// Package wiring builds Loom: it opens what the options name, makes every use case, plugin
// and process of it once, and hands explicit dependencies to the packages. The
// subcommands of people (package cli), the tools of developers (package lab) and tests
// start the same parts.
//
// It decides nothing about clusters, and no other package may import it.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/config"
	"loom/app/failpoint"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/wiring/devdb"
	"loom/migrations"
)

// Environment is what subcommands share: options, log, and things opened on
// first use and closed at the end.
type Environment struct {
	Values      *config.Values
	Log         *slog.Logger
	Out, ErrOut io.Writer

	// MakesInstance lets a subcommand make a private database where there is none.
	MakesInstance bool

	// BaseDir shares cached base roots between instances; tests set it.
	BaseDir string
	// Lease is how long the leases of processes run, 0 for the usual time; tests
	// shorten it, and all that follows from it.
	Lease time.Duration

	// toldPlugins says that what was found of plugins is in the log.
	toldPlugins bool

	dsn      string
	db       *sqlx.DB
	listener net.Listener
	closers  []func()
}

// Close closes what was opened, the last first.
func (e *Environment) Close() {
	for i := len(e.closers) - 1; i >= 0; i-- {
		e.closers[i]()
	}
}

// DataDir returns the absolute data directory, made when it is missing. Others may
// pass through it (the private database runs as a user of its own); what is
// secret in it is readable by its owner only.
func (e *Environment) DataDir() (string, error) {
	dir, err := filepath.Abs(e.Values.Text("LOOM_DATA_DIR"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("make the data directory: %w", err)
	}
	return dir, nil
}

// PrivateDB returns the private server, or nil when the user named one of his own.
func (e *Environment) PrivateDB(scratch bool) (*devdb.Server, error) {
	if e.Values.Text("LOOM_DATABASE_URL") != "" {
		return nil, nil
	}
	dir, err := e.DataDir()
	if err != nil {
		return nil, err
	}
	return devdb.New(devdb.Options{Dir: filepath.Join(dir, "pg"), BinDir: e.Values.Text("LOOM_PG_BIN"), Scratch: scratch})
}

// Database returns the connection string, starting the private server if that is
// the one to use.
func (e *Environment) Database(ctx context.Context) (string, error) {
	if e.dsn != "" {
		return e.dsn, nil
	}
	if dsn := e.Values.Text("LOOM_DATABASE_URL"); dsn != "" {
		if err := checkDSN(dsn); err != nil {
			return "", err
		}
		e.dsn = dsn
		return dsn, nil
	}
	if err := e.checkInstance(); err != nil {
		return "", err
	}
	server, err := e.PrivateDB(false)
	if err != nil {
		return "", err
	}
	dir, err := e.DataDir()
	if err != nil {
		return "", err
	}
	unlock, err := LockFile(ctx, filepath.Join(dir, "pg.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := server.Start(ctx); err != nil {
		return "", err
	}
	e.dsn = server.DSN("loom")
	return e.dsn, nil
}

// checkInstance refuses a data directory without a private database, unless the
// subcommand is one that makes it: a slip in LOOM_DATA_DIR must not begin another
// installation. It makes nothing.
func (e *Environment) checkInstance() error {
	if e.MakesInstance {
		return nil
	}
	dir, err := filepath.Abs(e.Values.Text("LOOM_DATA_DIR"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		server, err := e.PrivateDB(false)
		if err != nil {
			return err
		}
		if server.Exists() {
			return nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for an instance: %w", err)
	}
	return loom.NewError(loom.NotFound, "There is no instance of Loom in %s: set LOOM_DATA_DIR or LOOM_DATABASE_URL to those of yours. “loom up” makes a new one, and so do “loom migrate up” and then “loom seed”.", dir)
}

// checkDSN refuses what is no URL before a driver does: their errors quote it
// with its password.
func checkDSN(dsn string) error {
	if !strings.Contains(dsn, "://") {
		return nil
	}
	if _, err := url.Parse(dsn); err != nil { // even its cause may hold a part of the password
		return errors.New("LOOM_DATABASE_URL is no URL such as postgres://user:password@host:5432/loom; in the password, characters like %, /, @ and # are written as %25, %2F, %40 and %23")
	}
	return nil
}

// open returns the pool. The schema must be that of this release: anything else is
// refused with the command that mends it.
func (e *Environment) open(ctx context.Context) (*sqlx.DB, error) {
	if e.db != nil {
		return e.db, nil
	}
	dsn, err := e.Database(ctx)
	if err != nil {
		return nil, err
	}
	status, err := migrations.Check(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if problem := status.Problem(); problem != nil {
		return nil, problem
	}
	db, err := store.Open(ctx, dsn, e.Values.Number("LOOM_DATABASE_CONNS"))
	if err != nil {
		return nil, err
	}
	e.db = db
	e.closers = append(e.closers, func() { db.Close() })
	return db, nil
}

// bucketURL names where plugin resources are.
func (e *Environment) bucketURL() (string, error) {
	if url := e.Values.Text("LOOM_RESOURCES_URL"); url != "" {
		return url, nil
	}
	dir, err := e.DataDir()
	if err != nil {
		return "", err
	}
	bucket := filepath.Join(dir, "bucket")
	if err := os.MkdirAll(bucket, 0o700); err != nil {
		return "", fmt.Errorf("make the bucket of plugin resources: %w", err)
	}
	return "file://" + bucket + "?no_tmp_dir=true&metadata=skip", nil
}

// TestBaseDir names a folder of base roots that the instances of a test run share.
const TestBaseDir = "LOOM_TEST_BASE_DIR"

// TestLease is how long leases of processes run in tests, such as 2s.
const TestLease = "LOOM_TEST_LEASE"

// ReadTestVariables reads what only tests set.
func (e *Environment) ReadTestVariables(environ []string) error {
	e.BaseDir = variable(environ, TestBaseDir)
	if text := variable(environ, TestLease); text != "" {
		lease, err := time.ParseDuration(text)
		if err != nil || lease < 100*time.Millisecond {
			return fmt.Errorf("%s is %q; it takes a duration from 100ms, such as 2s", TestLease, text)
		}
		e.Lease = lease
	}
	return failpoint.Arm(variable(environ, failpoint.Variable))
}

// variable returns the value of a variable, "" for none.
func variable(environ []string, name string) string {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
