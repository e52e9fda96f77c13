// Package devdb runs a private PostgreSQL server for `loom up` and for tests:
// the binaries of the machine, a data directory of our own, a socket that only
// its owner can reach, nothing on TCP.
//
// It never touches a server it did not make. As root the server itself runs as
// "postgres", or "nobody" where that user is missing, since PostgreSQL refuses
// to run as root.
package devdb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"
)

// Options of a private server.
type Options struct {
	// Dir is where data and socket go: <Dir>/data and <Dir>/s.
	Dir string
	// BinDir holds initdb and postgres; empty: found on this machine.
	BinDir string
	// Scratch turns fsync off: for tests, whose data may be lost.
	Scratch bool
}

// Server is a private PostgreSQL server.
type Server struct {
	data, socket, log string
	bin               string
	user              *runAs
	scratch           bool
}

// New finds the binaries and fixes the directories; it starts nothing. The
// error names the Debian package when PostgreSQL is missing.
func New(o Options) (*Server, error) {
	bin, err := findBinaries(o.BinDir)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	user, err := serverUser()
	if err != nil {
		return nil, err
	}
	s := &Server{data: filepath.Join(dir, "data"), bin: bin, user: user, scratch: o.Scratch}
	// The server's user must reach its directory; below a 0700 home it cannot.
	if user != nil && !user.reaches(dir) {
		s.data = filepath.Join("/var/tmp", "loom-pg-"+hash(s.data), "data")
	}
	s.socket = filepath.Join(filepath.Dir(s.data), "s")
	if len(s.socket) > 80 { // a socket path has at most 108 bytes
		s.socket = filepath.Join("/tmp", "loom-"+hash(s.data))
	}
	s.log = filepath.Join(filepath.Dir(s.data), "postgres.log")
	return s, nil
}

// DSN returns the connection string of a database of this server, for lib/pq and
// pgx alike.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("host=%s user=loom dbname=%s sslmode=disable", s.socket, database)
}

// Start makes the data directory if there is none, starts the server unless it
// runs, and creates the database "loom". Every step may be repeated.
func (s *Server) Start(ctx context.Context) error {
	if err := s.makeDirs(); err != nil {
		return fmt.Errorf("prepare the directories of the private database: %w", err)
	}
	if !s.Exists() {
		if err := s.initdb(ctx); err != nil {
			return err
		}
	}
	if !s.Running(ctx) {
		options := "-c listen_addresses= -c unix_socket_directories=" + s.socket + " -c dynamic_shared_memory_type=mmap -c max_connections=200"
		// Loom's own sessions say so themselves; tests and psql do not.
		options += " -c jit=off"
		if s.scratch { // more connections: tests run many instances at once
			options += " -c max_connections=600 -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
		}
		if out, err := s.run(ctx, "pg_ctl", "-D", s.data, "-l", s.log, "-w", "-t", "60", "-o", options, "start"); err != nil {
			return fmt.Errorf("start the private database: %w\n%s%s", err, out, tail(s.log))
		}
	}
	return s.createDatabase(ctx, "loom")
}

// Exists reports whether the server's files were made.
func (s *Server) Exists() bool {
	_, err := os.Stat(filepath.Join(s.data, "PG_VERSION"))
	return err == nil
}

// Running reports whether the server answers to pg_ctl.
func (s *Server) Running(ctx context.Context) bool {
	_, err := s.run(ctx, "pg_ctl", "-D", s.data, "status")
	return err == nil
}

// Stop ends the server and keeps its files; one that does not run is fine.
func (s *Server) Stop(ctx context.Context) error {
	if !s.Running(ctx) {
		return nil
	}
	if out, err := s.run(ctx, "pg_ctl", "-D", s.data, "-m", "fast", "-w", "stop"); err != nil {
		return fmt.Errorf("stop the private database: %w\n%s", err, out)
	}
	return nil
}

// Remove stops the server and deletes its files.
func (s *Server) Remove(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Dir(s.data)), os.RemoveAll(s.socket))
}

func (s *Server) makeDirs() error {
	for _, dir := range []string{filepath.Dir(s.data), s.data, s.socket} {
		mode := os.FileMode(0o700)
		if dir == filepath.Dir(s.data) {
			mode = 0o711
		}
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if s.user != nil {
			if err := os.Chown(dir, int(s.user.uid), int(s.user.gid)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) initdb(ctx context.Context) error {
	out, err := s.run(ctx, "initdb", "-D", s.data, "-U", "loom", "--auth-local=trust", "--auth-host=reject",
		"-E", "UTF8", "--locale=C.UTF-8")
	if err != nil {
		return fmt.Errorf("make the private database: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) createDatabase(ctx context.Context, name string) error {
	db, err := sqlx.ConnectContext(ctx, "postgres", s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the private database: %w", err)
	}
	defer db.Close()
	var there bool
	if err := db.GetContext(ctx, &there, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name); err != nil {
		return fmt.Errorf("look for the database %s: %w", name, err)
	}
	if there {
		return nil
	}
	if _, err := db.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		return fmt.Errorf("create the database %s: %w", name, err)
	}
	return nil
}

// run executes a PostgreSQL program as the server's user, in a directory that
// user can read.
func (s *Server) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	s.user.apply(cmd)
	// pg_ctl hands its output to the server it starts; a pipe would then stay open
	// for the server's life, so output goes through a file.
	out, err := os.CreateTemp("", "loom-pg-*.out")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	runErr := cmd.Run()
	text, err := os.ReadFile(out.Name())
	return string(text), errors.Join(runErr, err)
}

// findBinaries looks for initdb and postgres: an explicit directory, the newest
// of Debian's, then PATH.
func findBinaries(explicit string) (string, error) {
	if explicit != "" {
		if hasServer(explicit) {
			return explicit, nil
		}
		return "", fmt.Errorf("no initdb and postgres in %s (LOOM_PG_BIN)", explicit)
	}
	best, bestVersion := "", 0
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, dir := range dirs {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && version > bestVersion && hasServer(dir) {
			best, bestVersion = dir, version
		}
	}
	if best == "" {
		if path, err := exec.LookPath("initdb"); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil && hasServer(filepath.Dir(real)) {
				return filepath.Dir(real), nil
			}
		}
	}
	const remedy = "install it with: %sapt-get install -y postgresql\nor set LOOM_DATABASE_URL to a server of your own"
	sudo := ""
	if os.Geteuid() != 0 {
		sudo = "sudo "
	}
	if best == "" {
		return "", fmt.Errorf("PostgreSQL is not on this machine; "+remedy, sudo)
	}
	if bestVersion < 14 {
		return "", fmt.Errorf("PostgreSQL %d is too old, Loom needs 14 or newer; "+remedy, bestVersion, sudo)
	}
	return best, nil
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres", "pg_ctl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x", sum[:5])
}

// tail returns the last lines of the server's log, for error messages.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
