//go:build e2e

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loom/app/testkit"
	"loom/app/wiring"
	"loom/provisioner/provider/local"
)

// patience is how long anything may take on a busy machine.
const patience = 8 * time.Minute

// world is an instance of Loom in a directory of its own: real processes, a
// real database, real machines. Its end removes everything and checks that
// nothing of it is left on the host.
type world struct {
	t   *testing.T
	dir string
	env []string
	url string

	mu        sync.Mutex
	processes []*process
	tokens    map[string]string
	passwords map[string]string // of sign-ins that were used
	firsts    map[string]uint64 // first processes of machines that were seen, with their start time
}

// newWorld prepares an instance on a fresh test database; nothing runs yet.
// Options are variables, such as "LOOM_MAX_ATTEMPTS=1".
func newWorld(t *testing.T, options ...string) *world {
	t.Helper()
	needMachines(t)
	db := testkit.NewDatabase(t)
	return makeWorld(t, append(options, "LOOM_DATABASE_URL="+db.DSN))
}

// newPrivateWorld prepares an instance that runs a PostgreSQL of its own, as
// `make run` does.
func newPrivateWorld(t *testing.T, options ...string) *world {
	t.Helper()
	needMachines(t)
	return makeWorld(t, options)
}

func makeWorld(t *testing.T, options []string) *world {
	t.Helper()
	// Short, because sockets have short names; open to pass through, because the
	// database runs as a user of its own.
	dir, err := os.MkdirTemp("/tmp", "loom-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: filepath.Join(dir, "var"), tokens: map[string]string{}, firsts: map[string]uint64{}}
	address := freeAddress(t)
	w.url = "http://" + address
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LOOM_") && !strings.HasPrefix(pair, "PORT=") && !strings.HasPrefix(pair, "DATABASE_URL=") {
			w.env = append(w.env, pair)
		}
	}
	// What a world stores is small: no test depends on how full the disk of its host is.
	w.env = append(w.env, actAsLoom+"=1", "LOOM_DATA_DIR="+w.dir, "LOOM_LISTEN_ADDR="+address, "LOOM_DISK_RESERVE=0",
		wiring.TestBaseDir+"="+baseRoots(t), "LOOM_DRAIN_TIMEOUT=5s", "LOOM_LOG_FORMAT=text")
	w.env = append(w.env, options...)
	t.Cleanup(func() {
		w.end()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return w
}

// end stops and removes everything; what a test leaves behind is an error.
func (w *world) end() {
	if w.t.Failed() {
		for _, p := range w.processes {
			w.t.Logf("output of loom %s (pid %d):\n%s", strings.Join(p.args, " "), p.pid(), p.tail(80))
		}
	}
	for _, p := range w.processes {
		p.kill(w.t, syscall.SIGTERM)
	}
	for _, p := range w.processes {
		p.waitEnd(w.t)
	}
	w.loom("clean")
	w.nothingLeft()
}

// needMachines skips, or fails under LOOM_TEST_REQUIRE=1, where machines cannot
// be made, and builds the base root of the starter templates once for all.
func needMachines(t *testing.T) {
	t.Helper()
	machines, err := local.New(local.Options{DataDir: t.TempDir(), BaseDir: baseRoots(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := machines.Ready(); err != nil {
		testkit.Skip(t, "%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := machines.Prepare(ctx, []string{starterImage}, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
}

// starterImage is the image of debian12 in the starter catalog.
const starterImage = "bookworm:haproxy,nginx-light,redis-server,python3"

func baseRoots(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(wiring.TestBaseDir); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "loom-test", "base")
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// process is one running loom.
type process struct {
	args []string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes the output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(p.output()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// start starts a long-running subcommand in a process group of its own.
func (w *world) start(env []string, args ...string) *process {
	w.t.Helper()
	p := &process{args: args, done: make(chan struct{}), cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(append([]string{}, w.env...), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	// Without a terminal, as under a service manager: a hang-up then means that plugins
	// are to be read again.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// What a killed process started must not keep the pipe of its output open.
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		p.cmd.Wait() //nolint:errcheck // killed processes end with one
		close(p.done)
	}()
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	return p
}

// kill sends a signal to the whole group, as a terminal does.
func (p *process) kill(t testing.TB, s syscall.Signal) {
	t.Helper()
	if p.ended() {
		return
	}
	if err := syscall.Kill(-p.pid(), s); err != nil && err != syscall.ESRCH {
		t.Errorf("signal %d: %v", s, err)
	}
}

// waitEnd waits for the end of a process and gives its exit code.
func (p *process) waitEnd(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		syscall.Kill(-p.pid(), syscall.SIGKILL) //nolint:errcheck // already failing
		t.Errorf("loom %s does not end:\n%s", strings.Join(p.args, " "), p.tail(40))
	}
	return p.cmd.ProcessState.ExitCode()
}

// up starts `loom up` and waits until it answers.
func (w *world) up() *process {
	w.t.Helper()
	p := w.start(nil, "up")
	w.ready(p, w.url)
	w.eventually("the welcome", func() error {
		if !strings.Contains(p.output(), "Loom is ready: "+w.url) {
			return fmt.Errorf("output: %s", p.tail(20))
		}
		return nil
	})
	return p
}

// web starts the process of pages and REST.
func (w *world) web() *process {
	w.t.Helper()
	p := w.start(nil, "web")
	w.ready(p, w.url)
	return p
}

// background starts a scheduler or provisioner.
func (w *world) background(args ...string) *process {
	w.t.Helper()
	health := freeAddress(w.t)
	p := w.start([]string{"LOOM_HEALTH_ADDR=" + health}, args...)
	w.ready(p, "http://"+health)
	return p
}

// ready polls /readyz.
func (w *world) ready(p *process, url string) {
	w.t.Helper()
	w.eventually(url+"/readyz", func() error {
		if p.ended() {
			w.t.Fatalf("loom %s ended:\n%s", strings.Join(p.args, " "), p.tail(40))
		}
		status, body, err := fetch(url + "/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	})
}

// loom runs a subcommand to its end, which must be a good one, and gives what it
// printed on standard output.
func (w *world) loom(args ...string) string {
	w.t.Helper()
	out, errOut, code := w.try(args...)
	if code != 0 {
		w.t.Errorf("loom %s gave exit status %d: %s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// try runs a subcommand to its end.
func (w *world) try(args ...string) (out, errOut string, code int) {
	w.t.Helper()
	return w.tryWith(nil, args...)
}

// tryWith is try with more variables.
func (w *world) tryWith(env []string, args ...string) (out, errOut string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(slices.Clone(w.env), env...), &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// token returns an API token of a user, made once.
func (w *world) token(tenant, user, scope string) string {
	w.t.Helper()
	key := tenant + "/" + user + "/" + scope
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens[key] == "" {
		w.tokens[key] = strings.TrimSpace(w.loom("token", "create", user, "--tenant", tenant, "--scope", scope))
		if !strings.HasPrefix(w.tokens[key], "loom_") {
			w.t.Fatalf("loom token create printed %q", w.tokens[key])
		}
	}
	return w.tokens[key]
}

// together runs subtests at once, in the place of their test: those that say t.Parallel
// begin only when all tests of the package have begun, and prolong the whole.
func together[T any](t *testing.T, cases map[string]T, f func(t *testing.T, c T)) {
	t.Helper()
	var all sync.WaitGroup
	for name, c := range cases {
		all.Go(func() { t.Run(name, func(t *testing.T) { f(t, c) }) })
	}
	all.Wait()
}

// eventually polls until f gives no error.
func (w *world) eventually(what string, f func() error) {
	w.t.Helper()
	poll(w.t, patience, what, f)
}

// poll tries until f succeeds or the time is over.
func poll(t testing.TB, limit time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	// Seldom after a while: the machines need the processor more than the test.
	for wait := 10 * time.Millisecond; ; wait = min(wait*5/4, 200*time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, after %s: %v", what, limit, err)
		}
		time.Sleep(wait)
	}
}

// plain fetches without keeping connections: every request may reach another
// back end.
var plain = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func fetch(url string) (int, string, error) {
	answer, err := plain.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}
