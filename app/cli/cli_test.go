package cli

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
)

// TestWrongUse: what cannot be meant is answered with exit status 2 and what to
// do, before anything is opened or made.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, env []string
		says      string
	}{
		{[]string{"upp"}, nil, "did you mean “up”"},
		{[]string{"up", "--listen-address", ":1"}, nil, "takes no arguments"},
		{[]string{"up"}, []string{"LOOM_DATADIR=/x"}, "LOOM_DATA_DIR"},
		{[]string{"up"}, []string{"LOOM_PROVISIONER_CAPACITY=many"}, "whole number"},
		{[]string{"stop", "--listen-addr", ":1"}, nil, "loom stop does not use --listen-addr"},
		{[]string{"token", "create", "user"}, nil, "--tenant NAME"},
		{[]string{"token", "create", "user", "--tenant", "demo", "--scope", "root"}, nil, "there is no scope “root”"},
		{[]string{"token", "create", "user", "--tenant", "demo", "--scope", "read", "--expires", "soon"}, nil, "write 90d or 12h"},
		{[]string{"scheduler", "fast"}, nil, "takes no arguments"},
		{[]string{"web", "--log-level", "loud"}, nil, "loud"},
		{[]string{"bench", "1"}, nil, "2 to 500"},
		{[]string{"bench", "--tasks", "few"}, nil, "10 to 100000"},
		{[]string{"db", "restart"}, nil, "start, stop or remove"},
		{[]string{"bogus"}, nil, "there is no “bogus”; `loom help`"},
		{[]string{"tokne"}, nil, "did you mean “token”"},
		{[]string{"config", "--bogus"}, nil, "takes --markdown only, not “--bogus”"},
		{[]string{"clean", "--keep-base"}, nil, "takes --keep-bases only"},
		{[]string{"stop", "now"}, nil, "takes no arguments"},
		{[]string{"migrate", "down"}, nil, "“up” or “status”, not “down”"},
		{[]string{"user", "create", "eve"}, nil, "the tenant is missing"},
		{[]string{"user", "create", "eve", "--tenant", "demo", "--role", "root"}, nil, "user or admin, not “root”"},
		{[]string{"user", "password", "eve", "--tenant", "demo", "--role", "admin"}, nil, "loom user [list]"},
		{[]string{"user", "unlock", "eve"}, nil, "the tenant is missing"},
		{[]string{"user", "unlock", "eve", "--tenant", "demo", "--role", "admin"}, nil, "loom user [list]"},
		{[]string{"tenant", "create", "lab", "--workers", "-1"}, nil, "a whole number, not “-1”"},
		{[]string{"tenant", "remove", "lab"}, nil, "loom tenant [list]"},
		{[]string{"audit", "verify", "--expect", "12"}, nil, "expect: A mark is a number and a mac"},
	} {
		dir := filepath.Join(t.TempDir(), "var")
		var out, errOut bytes.Buffer
		code := run(c.args, append([]string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir}, c.env...), &out, &errOut)
		if code != 2 || !strings.Contains(errOut.String(), c.says) {
			t.Errorf("loom %s: exit status %d, %s; want “%s”", strings.Join(c.args, " "), code, errOut.String(), c.says)
		}
		if _, err := os.Stat(filepath.Join(dir, "pg")); err == nil {
			t.Errorf("loom %s made a database", strings.Join(c.args, " "))
		}
	}
}

// TestNoInstance: only up, migrate and seed begin an installation; others say that
// there is none, and make nothing.
func TestNoInstance(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"audit", "verify"}, {"keys", "list"}, {"keys", "rotate"}, {"token", "create", "admin", "--tenant", "demo", "--scope", "read"},
		{"user"}, {"user", "create", "eve", "--tenant", "demo"}, {"user", "password", "admin", "--tenant", "demo"}, {"user", "unlock", "admin", "--tenant", "demo"},
		{"tenant"}, {"tenant", "create", "lab"}, {"web"}, {"scheduler"}, {"provisioner"}, {"migrate", "status"}, {"stop"},
	} {
		missing, empty := filepath.Join(t.TempDir(), "var"), t.TempDir()
		if err := os.Chmod(empty, 0o711); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{missing, empty} {
			var out, errOut bytes.Buffer
			code := run(args, []string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir, "LOOM_LISTEN_ADDR=127.0.0.1:0", "LOOM_HEALTH_ADDR="}, &out, &errOut)
			if code != 1 || !strings.Contains(errOut.String(), "There is no instance of Loom in "+dir) {
				t.Errorf("loom %s: exit status %d, %s", strings.Join(args, " "), code, errOut.String())
			}
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("loom %s made %s", strings.Join(args, " "), files[0].Name())
			}
		}
		if _, err := os.Stat(missing); err == nil {
			t.Errorf("loom %s made the data directory", strings.Join(args, " "))
		}
	}
}

// TestStopNothing: where an instance was and nothing runs, stop says so.
func TestStopNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o711), os.Mkdir(filepath.Join(dir, "local"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := run([]string{"stop"}, []string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir}, &out, &errOut)
	if code != 0 || !strings.Contains(out.String(), "Nothing was running in "+dir) {
		t.Errorf("exit status %d, %s%s", code, out.String(), errOut.String())
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files after stop: %v", files)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	if code := run([]string{"help"}, nil, &out, &errOut); code != 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	for _, c := range commands() {
		if listed := strings.Contains(out.String(), "\n  "+c.name+" "); listed == c.hidden {
			t.Errorf("%s: listed %v, hidden %v", c.name, listed, c.hidden)
		}
		var help bytes.Buffer
		if code := run([]string{c.name, "--help"}, nil, &help, &errOut); code != 0 || !strings.Contains(help.String(), c.summary) {
			t.Errorf("loom %s --help: exit status %d, %s", c.name, code, help.String())
		}
		// Every flag of the first line is explained, and all that are explained are in it.
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(c.args, -1) {
			if !strings.Contains(help.String(), "\n  "+flag) {
				t.Errorf("loom %s --help does not explain %s", c.name, flag)
			}
		}
		for _, f := range flagsOf[c.name] {
			if name, _, _ := strings.Cut(f.name, " "); !strings.Contains(c.args, name) {
				t.Errorf("the first line of loom %s --help lacks %s", c.name, name)
			}
		}
	}
	for name := range flagsOf {
		if !slices.ContainsFunc(commands(), func(c command) bool { return c.name == name }) {
			t.Errorf("flags of %q, which there is not", name)
		}
	}
	var token bytes.Buffer
	run([]string{"token", "--help"}, nil, &token, &errOut)
	for _, scope := range loom.Scopes {
		if !strings.Contains(token.String(), string(scope)) {
			t.Errorf("the help of token does not name the scope %s", scope)
		}
	}
}

// TestInstanceLock: one process holds a data directory, the next is told which.
func TestInstanceLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := wiring.ClaimInstance(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wiring.ClaimInstance(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "LOOM_DATA_DIR") {
		t.Errorf("a second claim: %v", err)
	}
	release()
	if _, err := wiring.EndInstance(context.Background(), dir); err != nil {
		t.Errorf("end nobody: %v", err)
	}
	again, err := wiring.ClaimInstance(t.Context(), dir)
	if err != nil {
		t.Fatalf("claim what was released: %v", err)
	}
	again()
}

func TestWriteNewNeverReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := wiring.WriteNew(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := wiring.WriteNew(path, []byte("two")); !os.IsExist(err) {
		t.Errorf("second write: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestParseDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "12h": 12 * time.Hour, "2s": 2 * time.Second} {
		if got, err := parseDays(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1h", "99999d", "1w"} {
		if got, err := parseDays(text); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	networks, err := wiring.ParseNetworks("LOOM_HOOK_NETWORKS", "10.1.0.0/16, fd00::/8")
	if err != nil || len(networks) != 2 {
		t.Errorf("%v, %v", networks, err)
	}
	if _, err := wiring.ParseNetworks("LOOM_HOOK_NETWORKS", "10.1.0.0"); err == nil || !strings.Contains(err.Error(), "10.1.0.0/16") {
		t.Errorf("an address: %v", err)
	}
}

func TestTakeFlag(t *testing.T) {
	t.Parallel()
	value, rest, found := wiring.TakeFlag([]string{"create", "--tenant", "demo", "user"}, "tenant")
	if value != "demo" || !found || strings.Join(rest, " ") != "create user" {
		t.Errorf("%q %v %v", value, rest, found)
	}
	if value, rest, found = wiring.TakeFlag([]string{"--tenant=", "x"}, "tenant"); value != "" || !found || len(rest) != 1 {
		t.Errorf("%q %v %v", value, rest, found)
	}
	if _, rest, found = wiring.TakeFlag([]string{"--tenant"}, "tenant"); found || len(rest) != 1 {
		t.Errorf("a flag without value: %v %v", rest, found)
	}
}

// TestForPeople: field errors come one per line, with the remedy each has.
func TestForPeople(t *testing.T) {
	t.Parallel()
	text := forPeople(loom.InvalidFields([]loom.FieldError{{Field: "name", Message: "A name is missing."}, {Field: "size", Message: "Too many."}}))
	if lines := strings.Split(text, "\n"); len(lines) != 3 || lines[1] != "  name: A name is missing." {
		t.Errorf("%q", text)
	}
	one := loom.InvalidFields([]loom.FieldError{{Field: "expect", Message: "A mark is missing."}})
	lost := &loom.Error{Kind: loom.NotFound, Message: "There is no such user.", Err: sql.ErrNoRows}
	down := &loom.Error{Kind: loom.Unavailable, Message: "The database is away.", Err: errors.New("dial tcp")}
	for want, err := range map[string]error{
		"expect: A mark is missing.":                                          one,
		"wrong use: expect: A mark is missing.":                               fmt.Errorf("%w: %w", wiring.ErrUsage, one),
		"There is no such user.":                                              lost,
		"scheduler: There is no such user.":                                   fmt.Errorf("scheduler: %w", lost),
		"The database is away. LOOM_LOG_LEVEL=debug shows the cause.":         down,
		"open the file: it is gone":                                           errors.New("open the file: it is gone"),
		"reseal: The database is away. LOOM_LOG_LEVEL=debug shows the cause.": fmt.Errorf("reseal: %w", down),
	} {
		if got := forPeople(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logCause(logger, fmt.Errorf("scheduler: %w", lost))
	if !strings.Contains(log.String(), "no rows") || !strings.Contains(log.String(), "level=DEBUG") {
		t.Errorf("the log has %q", log.String())
	}
}
