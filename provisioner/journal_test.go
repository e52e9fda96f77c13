package provisioner

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/static"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// followed is a journal of a file on a machine, as its reader gets it.
type followed struct {
	t      *testing.T
	s      *sshtest.Server
	r      *Runner
	target *loom.JournalTarget
	file   string
	lines  chan string
	ended  chan string
	end    context.CancelFunc
	// sessions are those on the machine that followed the file.
	sessions map[string]bool
}

// Log takes a line.
func (f *followed) Log(_, text string) { f.lines <- text }

// Fact drops results.
func (f *followed) Fact(map[string]any) error { return nil }

func newFollowed(t *testing.T) *followed {
	t.Helper()
	s := sshtest.Start(t, sshtest.Options{})
	r := runner(t, nil)
	var err error
	if r.Providers, err = provider.NewRegistry(static.New()); err != nil {
		t.Fatal(err)
	}
	f := &followed{t: t, s: s, r: r, file: filepath.Join(s.Dir, "it's a log"), lines: make(chan string, 10_000), ended: make(chan string, 1), sessions: map[string]bool{}}
	f.target = &loom.JournalTarget{Journal: loom.Journal{ID: "j1", Tenant: "t1", Node: "n1", Service: "web", Lines: 2, Follow: true}, Logs: loom.ServiceLogs{Files: []string{f.file}},
		Spec: &loom.TaskSpec{Tenant: "t1", Action: loom.ActionKeys, Node: "n1", PrivateKey: loom.NewSecret(s.Key.PEM), SSHUser: s.User,
			Addresses: map[string]string{loom.AccessV4: s.Address}, Sensitive: []string{"hunter2!"}, Provider: loom.Provider{Type: "static", Fields: map[string]any{}},
			Results: map[string]any{"ssh_port": s.Port, "ssh_host_keys": s.HostKeys}}}
	return f
}

func (f *followed) write(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *followed) follow() {
	ctx, cancel := context.WithCancel(f.t.Context())
	f.end = cancel
	go func() { f.ended <- f.r.Follow(ctx, f.target, f) }()
}

// want waits for a line that holds a text and returns it.
func (f *followed) want(text string) string {
	f.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line := <-f.lines:
			if strings.Contains(line, text) {
				return line
			}
		case message := <-f.ended:
			f.t.Fatalf("no line %q: it ended with %q", text, message)
		case <-limit:
			f.t.Fatalf("no line %q", text)
		}
	}
}

// wantEnd waits for the end and returns its message; then nothing that the journal started is
// left on the machine.
func (f *followed) wantEnd() (message string) {
	f.t.Helper()
	select {
	case message = <-f.ended:
	case <-time.After(time.Minute):
		f.t.Fatal("it does not end")
	}
	var left []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if left = f.processes(); len(left) == 0 {
			return message
		}
	}
	f.t.Fatalf("left on the machine: %q", left)
	return ""
}

// processes are those of the machine that know of the file, and all others of their sessions,
// also those seen before.
func (f *followed) processes() (found []string) {
	f.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		f.t.Fatal(err)
	}
	lines := map[string][]string{} // by session
	for _, path := range all {
		line, err := os.ReadFile(path)
		stat, statErr := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil || statErr != nil {
			continue // it is gone
		}
		session := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[3]
		// A shell names the file as it is quoted for it.
		if bytes.Contains(line, []byte(filepath.Dir(f.file)+"/it")) {
			f.sessions[session] = true
		}
		lines[session] = append(lines[session], strings.ReplaceAll(string(line), "\x00", " "))
	}
	for session := range f.sessions {
		found = append(found, lines[session]...)
	}
	return found
}

// TestFollow: a file that grows, is replaced, and holds whatever there is, until the reader
// leaves.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := newFollowed(t)
	f.write("one\ntwo\nthree\n")
	f.follow()
	if line := f.want(""); line != "two" {
		t.Errorf("the first of the last two lines is %q", line)
	}
	f.want("three")
	f.write("the password is hunter2!, in a line\n")
	if line := f.want("the password"); line != "the password is [redacted], in a line" {
		t.Error(line)
	}
	f.write("a\x00b\xffc\x1b[31m\n")
	if line := f.want("c\x1b"); line != "ab\uFFFDc\x1b[31m" {
		t.Errorf("%q", line)
	}
	// A line without an end comes in pieces, of which none has half a secret.
	piece := strings.Repeat("x", remote.MaxLine-4)
	f.write(piece + "hunter2!" + piece)
	for sum := 0; sum < 2*len(piece)-remote.MaxLine; {
		line := f.want("x")
		if strings.Contains(line, "hunt") || strings.Contains(line, "er2!") || len(line) > 2*remote.MaxLine || !utf8.ValidString(line) {
			t.Fatalf("a piece of %d bytes: %.40q…", len(line), line)
		}
		sum += len(line)
	}
	f.write("\n")
	if err := os.Rename(f.file, f.file+".1"); err != nil {
		t.Fatal(err)
	}
	f.write("after the rotation\n")
	f.want("after the rotation")
	f.processes()
	f.end()
	f.wantEnd()
}

// TestFollowEndsWithItsSession: whatever ends the session ends the command, although the file
// says nothing to it; as root and through sudo.
func TestFollowEndsWithItsSession(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", sshtest.SudoUser} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			f := newFollowed(t)
			if !f.s.Isolated {
				sshtest.SkipHere(t, "needs the users of an isolated machine")
			}
			f.target.Spec.SSHUser = user
			f.write("one\n")
			f.follow()
			f.want("one")
			if running := strings.Join(f.processes(), "\n"); !strings.Contains(running, "tail") || !strings.Contains(running, "timeout") {
				t.Fatalf("these follow the file: %q", running)
			}
			f.s.Cut()
			if message := f.wantEnd(); message != "The connection to the machine was lost; open the journal again." {
				t.Error(message)
			}
			f.follow()
			f.want("one")
			f.processes()
			f.end()
			f.wantEnd()
		})
	}
}

// TestFollowOnce: the lines of the past end by themselves.
func TestFollowOnce(t *testing.T) {
	t.Parallel()
	f := newFollowed(t)
	f.write("one\ntwo\nthree")
	f.target.Follow = false
	f.follow()
	f.want("two")
	f.want("three")
	if message := f.wantEnd(); message != "" {
		t.Error(message)
	}
}

// TestFollowTrouble: why there is no journal is said in words, without secrets.
func TestFollowTrouble(t *testing.T) {
	t.Parallel()
	f := newFollowed(t)
	for name, c := range map[string]struct {
		change func(*loom.JournalTarget)
		want   string
	}{
		"no file yet":    {func(t *loom.JournalTarget) { t.Follow = false }, "The command that reads the journal ended with exit status 1."},
		"no logs":        {func(t *loom.JournalTarget) { t.Logs = loom.ServiceLogs{} }, "The service does not say where its logs are."},
		"nobody there":   {func(t *loom.JournalTarget) { t.Spec.Results["ssh_port"] = 1 }, "The machine does not answer."},
		"no host key":    {func(t *loom.JournalTarget) { delete(t.Spec.Results, "ssh_host_keys") }, "No host key of the machine is recorded yet."},
		"other provider": {func(t *loom.JournalTarget) { t.Spec.Provider.Type = "none" }, f.r.Providers.Missing("none")},
	} {
		target, spec := *f.target, *f.target.Spec
		spec.Results = map[string]any{"ssh_port": f.s.Port, "ssh_host_keys": f.s.HostKeys}
		target.Spec = &spec
		c.change(&target)
		if got := f.r.Follow(t.Context(), &target, f); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFollowUnits: units are read where there is systemd; without it the reader is told. The
// text runs in a name space where /run is as on such a machine.
func TestFollowUnits(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		sshtest.SkipHere(t, "needs root for a mount of its own")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "journalctl"), []byte("#!/bin/sh\necho journalctl \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(make string, logs loom.ServiceLogs) string {
		t.Helper()
		target := &loom.JournalTarget{Journal: loom.Journal{Service: "web", Lines: 7}, Logs: logs}
		text := runner(t, nil).journalText(target, &loom.TaskSpec{})
		command := exec.CommandContext(t.Context(), "setsid", "unshare", "-m", "sh", "-c", fmt.Sprintf(`mount -t tmpfs none /run && %s && exec sh -c "$0"`, make), text)
		command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return string(out)
	}
	const systemd, none = "mkdir -p /run/systemd/system", "true"
	units := loom.ServiceLogs{Units: []string{"nginx", "php@8.service"}}
	if out := run(systemd, units); out != "journalctl --no-pager -q -o short-iso -n 7 -u nginx -u php@8.service\n" {
		t.Errorf("with systemd: %q", out)
	}
	if out := run(none, units); out != "This machine has no systemd, and the service names no files of its logs.\n" {
		t.Errorf("without: %q", out)
	}
	units.Files = []string{filepath.Join(dir, "log")}
	if out := run(systemd, units); !strings.Contains(out, "from the file\n") || !strings.Contains(out, "-u nginx") {
		t.Errorf("both: %q", out)
	}
	if out := run(none, units); out != "from the file\n" {
		t.Errorf("files alone: %q", out)
	}
}
