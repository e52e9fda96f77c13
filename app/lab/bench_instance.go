package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"loom/app/account"
	"loom/app/config"
	"loom/app/loom"
	"loom/app/wiring"
	"loom/app/wiring/devdb"
	"loom/migrations"
)

const (
	// benchPatience bounds every wait of a measurement.
	benchPatience = 10 * time.Minute
	// answerPatience bounds the wait for one answer over HTTP. Whoever waits for ever says
	// neither what for nor that the process at the other end has gone.
	answerPatience = time.Minute
	// healthPatience is the same of the question whether a process is well, which is
	// asked again and again.
	healthPatience = 5 * time.Second
)

// benchInstance is an instance of Loom as several processes, in a temporary
// directory, on a private PostgreSQL.
type benchInstance struct {
	*environment
	*wiring.System
	// durable says that PostgreSQL waits for the disk, as that of a user does.
	durable   bool
	environ   []string // of the processes
	plugins   *wiring.Plugins
	dir       string
	pg        *devdb.Server
	url       string
	token     string
	actor     loom.Actor // the user of demo
	processes []*benchProcess
}

// benchProcess is one of them.
type benchProcess struct {
	name   string
	cmd    *exec.Cmd
	done   chan struct{}
	output bytes.Buffer // whole once done is closed
}

// startBench starts an instance with options beside the usual ones, on a PostgreSQL
// that does not wait for the disk. The caller ends it, also after an error of its
// own.
func (e *environment) startBench(ctx context.Context, options ...string) (*benchInstance, error) {
	return e.startBenchOn(ctx, false, options)
}

// startBenchOn is startBench with a say in whether PostgreSQL waits for the disk.
func (e *environment) startBenchOn(ctx context.Context, durable bool, options []string) (*benchInstance, error) {
	dir, err := os.MkdirTemp("", "loom-bench-")
	if err != nil {
		return nil, err
	}
	b := &benchInstance{dir: dir, durable: durable}
	if err := b.start(ctx, e, options); err != nil {
		return nil, errors.Join(err, b.end(ctx))
	}
	return b, nil
}

func (b *benchInstance) start(ctx context.Context, e *environment, options []string) error {
	// The database runs as a user of its own and must get through.
	if err := os.Chmod(b.dir, 0o711); err != nil {
		return err
	}
	data := filepath.Join(b.dir, "var")
	var err error
	if b.pg, err = devdb.New(devdb.Options{Dir: filepath.Join(data, "pg"), BinDir: e.Values.Text("LOOM_PG_BIN"), Scratch: !b.durable}); err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o711); err != nil {
		return err
	}
	if err := b.pg.Start(ctx); err != nil {
		return err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return err
	}
	b.url = "http://" + addresses[0]
	// Base roots are kept: building them is measured nowhere.
	bases := e.BaseDir
	if bases == "" {
		own, err := e.DataDir()
		if err != nil {
			return err
		}
		bases = filepath.Join(own, "local", "base")
	}
	environ := slicesWithout(os.Environ(), "LOOM_", "PORT=", "DATABASE_URL=")
	for _, pair := range os.Environ() {
		if strings.HasPrefix(pair, "LOOM_TEST_") && !strings.HasPrefix(pair, wiring.TestBaseDir+"=") {
			environ = append(environ, pair)
		}
	}
	// The instance is small and removed at the end: how full the disk is decides nothing.
	environ = append(environ, "LOOM_DATA_DIR="+data, "LOOM_DATABASE_URL="+b.pg.DSN("loom"), "LOOM_LISTEN_ADDR="+addresses[0],
		"LOOM_DISK_RESERVE=0", "LOOM_LOG_LEVEL=warn", "LOOM_DRAIN_TIMEOUT=2s", wiring.TestBaseDir+"="+bases)
	environ = append(environ, options...)
	b.environ = environ
	values, err := config.Load(nil, environ)
	if err != nil {
		return err
	}
	b.environment = &environment{&wiring.Environment{Values: values, Log: e.Log, Out: e.Out, ErrOut: e.ErrOut, BaseDir: bases}}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for i, name := range []string{"web", "scheduler", "provisioner"} {
		if _, err := b.startProcess(ctx, name, addresses[i]); err != nil {
			return err
		}
	}
	return b.giveWorkers(ctx)
}

// giveWorkers assigns the tenant all workers but the one of superadmin.
func (b *benchInstance) giveWorkers(ctx context.Context) error {
	if err := b.waitWorkers(ctx); err != nil { // the provisioner counts only once it runs
		return err
	}
	all := b.environment.Values.Number("LOOM_PROVISIONER_CAPACITY") - 1
	if _, err := b.Accounts.UpdateTenant(ctx, wiring.CliActor(), account.DemoTenant, account.TenantInput{Workers: &all}); err != nil {
		return err
	}
	return b.waitWorkers(ctx)
}

// prepare makes database, catalog and token.
func (b *benchInstance) prepare(ctx context.Context) error {
	dsn, err := b.Database(ctx)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	if b.System, err = b.environment.System(ctx); err != nil {
		return err
	}
	if err := b.FirstStart(ctx, b.System); err != nil {
		return err
	}
	if b.plugins, err = b.environment.Plugins(); err != nil {
		return err
	}
	demo, err := b.Accounts.Tenant(ctx, wiring.CliActor(), "demo")
	if err != nil {
		return err
	}
	b.actor = loom.SystemActor(demo.ID, demo.Name)
	b.actor.User, b.actor.Role = loom.AdminUser, loom.RoleAdmin
	until := time.Now().Add(24 * time.Hour)
	_, secret, err := b.Accounts.CreateTokenFor(ctx, wiring.CliActor(), demo.Name, loom.AdminUser,
		account.NewToken{Name: "bench", Scopes: []loom.Scope{loom.ScopeClusterWrite, loom.ScopeCatalogWrite}, Expires: &until})
	b.token = secret.Reveal()
	return err
}

// startProcess starts a process that tells of its health at an address, and waits
// until it is well.
func (b *benchInstance) startProcess(ctx context.Context, name, health string) (*benchProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &benchProcess{name: name, cmd: exec.Command(program, name), done: make(chan struct{})}
	p.cmd.Env = append(b.environ[:len(b.environ):len(b.environ)], "LOOM_HEALTH_ADDR="+health)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	// Ctrl-C is for this process, which then ends the others in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	b.processes = append(b.processes, p)
	go func() {
		p.cmd.Wait() //nolint:errcheck // its output says more
		close(p.done)
	}()
	return p, b.wait(ctx, name+" to answer", func() (bool, error) { return isWell(ctx, health, healthPatience), nil })
}

// isWell asks a process at an address for its health. Another program may have taken the
// address, and not answer at all.
func isWell(ctx context.Context, health string, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// addProvisioner starts one more provisioner.
func (b *benchInstance) addProvisioner(ctx context.Context) (*benchProcess, error) {
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	return b.startProcess(ctx, "provisioner", addresses[0])
}

// endProcess ends one of the processes before the others.
func (b *benchInstance) endProcess(p *benchProcess) error {
	b.processes = slices.DeleteFunc(b.processes, func(other *benchProcess) bool { return other == p })
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	return p.ended()
}

// ended waits until a process that was told to has ended, and kills it where it
// does not.
func (p *benchProcess) ended() error {
	select {
	case <-p.done:
		return nil
	case <-time.After(15 * time.Second):
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-p.done
		return fmt.Errorf("loom %s did not end in time", p.name)
	}
}

// waitWorkers waits until the tenant has its workers.
func (b *benchInstance) waitWorkers(ctx context.Context) error {
	return b.wait(ctx, "workers", func() (bool, error) {
		short, err := b.Processes.Shortage(ctx, b.actor)
		return err == nil && short.Assigned > 0 && short.Assigned == short.Requested, err
	})
}

// wait polls until ok says yes or a process has ended: at first every few
// milliseconds, later at a fiftieth of the time so far, since asking costs time
// that is being measured.
func (b *benchInstance) wait(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, benchPatience)
	defer cancel()
	for began := time.Now(); ; {
		yes, err := ok()
		if yes || err != nil {
			return err
		}
		for _, p := range b.processes {
			select {
			case <-p.done:
				return fmt.Errorf("wait for %s: loom %s ended:\n%s", what, p.name, p.output.String())
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-time.After(min(max(time.Since(began)/50, 5*time.Millisecond), 250*time.Millisecond)):
		}
	}
}

// end ends the processes and removes machines, database and directory. It goes on
// after Ctrl-C: nothing may stay.
func (b *benchInstance) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var errs []error
	for _, p := range b.processes {
		p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	}
	for _, p := range b.processes {
		errs = append(errs, p.ended())
	}
	if b.plugins != nil {
		errs = append(errs, b.plugins.Local.Purge(ctx))
	}
	if b.environment != nil {
		b.environment.Close()
	}
	if b.pg != nil {
		errs = append(errs, b.pg.Remove(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// benchClient is how the REST API is called.
var benchClient = &http.Client{Timeout: answerPatience}

// streamClient is how streams are followed, which have no end of their own.
var streamClient = &http.Client{}

// request sends one to the REST API and gives the answer.
func (b *benchInstance) request(ctx context.Context, method, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := benchClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, data)
	}
	return data, err
}

// memory returns what each process holds, and held at most, in MB.
func (b *benchInstance) memory() (now, peak []string) {
	for _, p := range b.processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			status = nil
		}
		now, peak = append(now, megabytes(string(status), "VmRSS:")), append(peak, megabytes(string(status), "VmHWM:"))
	}
	return now, peak
}

// megabytes reads a field of /proc/PID/status.
func megabytes(status, field string) string {
	_, rest, _ := strings.Cut(status, field)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "?"
	}
	kb, err := strconv.Atoi(words[0])
	if err != nil {
		return "?"
	}
	return fmt.Sprintf("%.0f", float64(kb)/1024)
}

// freeAddresses returns addresses that nobody listens on.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that no two are the same
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// slicesWithout returns the texts that have none of the prefixes.
func slicesWithout(all []string, prefixes ...string) []string {
	var kept []string
next:
	for _, text := range all {
		for _, p := range prefixes {
			if strings.HasPrefix(text, p) {
				continue next
			}
		}
		kept = append(kept, text)
	}
	return kept
}
