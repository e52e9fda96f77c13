package cli

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

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
		{[]string{"upp"}, nil, `did you mean "up"?`},
		{[]string{"up", "--listen-address", ":1"}, nil, `unknown flag --listen-address`},
		{[]string{"up"}, []string{"LOOM_DATADIR=/x"}, "LOOM_DATA_DIR"},
		{[]string{"up"}, []string{"LOOM_PROVISIONER_CAPACITY=many"}, "whole number"},
		{[]string{"stop", "--listen-addr", ":1"}, nil, "unknown flag --listen-addr\n`loom stop --help` shows"},
		{[]string{"token", "create", "user"}, nil, "missing flags: --scope=SCOPE,..., --tenant=NAME"},
		{[]string{"token", "create", "--tenant", "demo", "--scope", "read"}, nil, `expected "<user>"`},
		{[]string{"token", "create", "user", "--tenant", "demo", "--scope", "root"}, nil, `must be one of "read","clusters:write"`},
		{[]string{"token", "create", "user", "--tenant", "demo", "--scope", "read", "--expires", "soon"}, nil, "write 90d or 12h"},
		{[]string{"scheduler", "fast"}, nil, "unexpected argument fast"},
		{[]string{"web", "--log-level", "loud"}, nil, "loud"},
		{[]string{"bench", "1"}, nil, "2 to 500"},
		{[]string{"bench", "--tasks", "few"}, nil, `--tasks: expected a valid 64 bit int but got "few"`},
		{[]string{"bench", "--tasks", "1"}, nil, "10 to 100000"},
		{[]string{"db", "restart"}, nil, `must be one of "start","stop","remove"`},
		{[]string{"bogus"}, nil, "unexpected argument bogus\n`loom --help` shows"},
		{[]string{"tokne"}, nil, `did you mean "token"?`},
		{[]string{"config", "--bogus"}, nil, "unknown flag --bogus"},
		{[]string{"clean", "--keep-base"}, nil, `did you mean "--keep-bases"?`},
		{[]string{"stop", "now"}, nil, "unexpected argument now"},
		{[]string{"migrate", "down"}, nil, `must be one of "up","status" but got "down"`},
		{[]string{"user", "create", "eve"}, nil, "missing flags: --tenant=NAME"},
		{[]string{"user", "create", "eve", "--tenant", "demo", "--role", "root"}, nil, `must be one of "user","admin"`},
		{[]string{"user", "password", "eve", "--tenant", "demo", "--role", "admin"}, nil, "unknown flag --role"},
		{[]string{"user", "unlock", "eve"}, nil, "missing flags: --tenant=NAME"},
		{[]string{"user", "unlock", "eve", "--tenant", "demo", "--role", "admin"}, nil, "unknown flag --role"},
		{[]string{"tenant", "create", "lab", "--workers", "-1"}, nil, "--workers: expected"},
		{[]string{"tenant", "remove", "lab"}, nil, "unexpected argument remove"},
		{[]string{"audit", "verify", "--expect", "12"}, nil, "expect: A mark is a number and a mac"},
	} {
		dir := filepath.Join(t.TempDir(), "var")
		var out, errOut bytes.Buffer
		code := run(c.args, append([]string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir}, c.env...), nil, &out, &errOut)
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
			code := run(args, []string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir, "LOOM_LISTEN_ADDR=127.0.0.1:0", "LOOM_HEALTH_ADDR="}, nil, &out, &errOut)
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
	code := run([]string{"stop"}, []string{"PATH=" + os.Getenv("PATH"), "LOOM_DATA_DIR=" + dir}, nil, &out, &errOut)
	if code != 0 || !strings.Contains(out.String(), "Nothing was running in "+dir) {
		t.Errorf("exit status %d, %s%s", code, out.String(), errOut.String())
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files after stop: %v", files)
	}
}

// TestHelp: every subcommand has a help that describes it and each of its flags and arguments.
func TestHelp(t *testing.T) {
	t.Parallel()
	list := func(args ...string) string {
		var out, errOut bytes.Buffer
		if code := run(args, nil, nil, &out, &errOut); code != 0 {
			t.Errorf("loom %s: exit status %d: %s", strings.Join(args, " "), code, errOut.String())
		}
		return out.String()
	}
	all := list("help")
	if list() != all || list("--help") != all {
		t.Error("loom and loom --help differ from loom help")
	}
	parser := kong.Must(&commands{}, kong.PostBuild(addOptions))
	for _, command := range parser.Model.Leaves(false) {
		if listed := strings.Contains(all, "\n  "+strings.Fields(command.Path())[0]+" "); listed == command.Hidden {
			t.Errorf("%s: listed %v, hidden %v", command.Path(), listed, command.Hidden)
		}
		if command.Name == "soak-request" {
			continue
		}
		help := list(append(strings.Fields(command.Path()), "--help")...)
		if list(append([]string{"help"}, strings.Fields(command.Path())...)...) != help {
			t.Errorf("loom help %s differs from loom %[1]s --help", command.Path())
		}
		if command.Help == "" || !strings.Contains(help, strings.Fields(command.Help)[0]) {
			t.Errorf("loom %s --help: %s", command.Path(), help)
		}
		for _, value := range command.Values() {
			if value.Help == "" || !strings.Contains(help, value.Name) {
				t.Errorf("loom %s --help does not explain %s", command.Path(), value.Name)
			}
		}
	}
	token := list("token", "create", "--help")
	for _, scope := range loom.Scopes {
		if !strings.Contains(token, string(scope)) {
			t.Errorf("the help of token create does not name the scope %s", scope)
		}
	}
	if !strings.Contains(list("web", "--help"), "--listen-addr=TEXT") || !strings.Contains(list("web", "--help"), "$LOOM_LISTEN_ADDR") {
		t.Error("the help of web lacks its options")
	}
}

// TestOptionsAsFlags: a flag beats the environment, before and after words of the subcommand.
func TestOptionsAsFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"config", "--data-dir", "flag", "--log-level=error"}, {"config", "--data-dir=flag", "--log-level", "error"},
	} {
		var out, errOut bytes.Buffer
		if code := run(args, []string{"LOOM_DATA_DIR=environment", "LOOM_DATABASE_URL=postgres://loom@127.0.0.1/loom"}, nil, &out, &errOut); code != 0 {
			t.Errorf("exit status %d: %s", code, errOut.String())
		}
		for _, option := range []string{`LOOM_DATA_DIR +"flag" +flag`, `LOOM_LOG_LEVEL +"error" +flag`, `LOOM_DATABASE_URL .* environment`, `LOOM_LOG_FORMAT +"auto" +default`} {
			if !regexp.MustCompile(`(?m)^` + option + `$`).MatchString(out.String()) {
				t.Errorf("%s lacks %s:\n%s", strings.Join(args, " "), option, out.String())
			}
		}
	}
	var c commands
	command, err := kong.Must(&c, kong.PostBuild(addOptions)).Parse([]string{"plugin", "--mock", "--pg-bin", "x", "test", "mock", "--local-internet=false"})
	if err != nil {
		t.Fatal(err)
	}
	if got := optionsOf(command); !maps.Equal(got, map[string]string{"mock": "true", "pg-bin": "x", "local-internet": "false"}) {
		t.Errorf("options: %v", got)
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

func TestLifetime(t *testing.T) {
	t.Parallel()
	var got lifetime
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "12h": 12 * time.Hour, "2s": 2 * time.Second} {
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1h", "99999d", "1w"} {
		if err := got.UnmarshalText([]byte(text)); err == nil {
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
		"verify: expect: A mark is missing.":                                  fmt.Errorf("verify: %w", one),
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
