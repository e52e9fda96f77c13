//go:build e2e

package cli

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"

	"loom/app/testkit"
	"loom/app/wiring/devdb"
)

// mockWorld is an instance on invented machines: three processes as the Procfile
// starts them, and a template “slow” whose nodes have steps tasks of delay each,
// which write one line when they are done.
type mockWorld struct {
	*world
	db          *sqlx.DB
	provisioner *process
	user        *client
}

// newMockWorld starts the instance. The environment of the provisioner may differ,
// by a DSN of its own.
func newMockWorld(t *testing.T, w *world, dsn string, delay time.Duration, provisioner []string) *mockWorld {
	t.Helper()
	w.loom("migrate", "up")
	w.loom("seed")
	w.web()
	w.background("scheduler")
	db, err := sqlx.Connect("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	m := &mockWorld{world: w, db: db}
	m.provisioner = m.start(append(provisioner, "LOOM_HEALTH_ADDR="), "provisioner")
	admin := w.client("demo", "admin", "admin")
	w.eventually("the mock provider's type", func() error {
		_, data, err := admin.try("GET", "/v2/plugins/providertypes/mock", nil)
		if err == nil && !strings.Contains(string(data), "delay_ms") {
			err = fmt.Errorf("%s", data)
		}
		return err
	})
	admin.call("POST", "/v2/providers", `{"name": "mock", "description": "Invents machines.", "providertype": "mock", "provisioner": {"addresses": "198.18.0.0/15"}}`, nil)
	admin.call("POST", "/v2/hardwaretypes", `{"name": "mock", "description": "None.", "providermap": {"mock": {"flavor": "none"}}}`, nil)
	admin.call("POST", "/v2/imagetypes", `{"name": "mock", "description": "None.", "providermap": {"mock": {"image": "none"}}}`, nil)
	action := fmt.Sprintf(`{"type": "mock", "fields": {"delay_ms": "%d", "output_lines": "1"}}`, delay.Milliseconds())
	admin.call("POST", "/v2/services", fmt.Sprintf(`{"name": "slow", "description": "Takes its time.", "provisioner": {"actions":
		{"install": %[1]s, "configure": %[1]s, "initialize": %[1]s, "start": %[1]s}}}`, action), nil)
	admin.call("POST", "/v2/clustertemplates", `{"name": "slow", "description": "Takes its time.", "compatibility": {"hardwaretypes": ["mock"], "imagetypes": ["mock"], "services": ["slow"]},
		"constraints": {"size": {"min": 1, "max": 1000}}, "defaults": {"services": ["slow"], "provider": "mock", "hardwaretype": "mock", "imagetype": "mock", "config": {}},
		"administration": {"leaseduration": {"initial": 0, "max": 0, "step": 0}}}`, nil)
	m.user = w.user()
	return m
}

func (m *mockWorld) count(query string, args ...any) (n int) {
	m.t.Helper()
	if err := m.db.Get(&n, query, args...); err != nil {
		m.t.Fatal(err)
	}
	return n
}

// once checks how the tasks of the instance's one cluster ended: each completed
// once, what was interrupted aside.
func (m *mockWorld) once() {
	m.t.Helper()
	if n := m.count(`SELECT count(*) FROM tasks WHERE NOT gate AND status <> 'complete'`); n != 0 {
		m.t.Errorf("%d tasks are not complete", n)
	}
	if n := m.count(`SELECT count(*) FROM tasks t WHERE NOT gate AND (SELECT count(*) FROM attempts a WHERE a.task_id = t.id AND a.status = 'complete') <> 1`); n != 0 {
		m.t.Errorf("%d tasks did not complete exactly once", n)
	}
	if n := m.count(`SELECT count(*) FROM attempts WHERE status NOT IN ('complete', 'interrupted')`); n != 0 {
		m.t.Errorf("%d attempts ended otherwise", n)
	}
	// Of what ran to its end, the last line is in the log.
	if n := m.count(`SELECT count(*) FROM tasks t JOIN attempts a ON a.task_id = t.id AND a.status = 'complete'
		WHERE t.service = 'slow' AND (SELECT count(*) FROM task_logs l WHERE l.task_id = t.id AND l.attempt = a.number AND l.text LIKE 'mock: line%') <> 1`); n != 0 {
		m.t.Errorf("%d attempts that completed did not write their line exactly once", n)
	}
}

// valve stands between a process and PostgreSQL, on a socket of its own.
type valve struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     *sync.Cond
	shut     bool
	conns    []net.Conn
}

// newValve returns the valve and the directory to name as host.
func newValve(t *testing.T, socket string) (*valve, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "loom-valve-")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{listener: l, to: socket}
	v.open = sync.NewCond(&v.mu)
	go v.serve()
	t.Cleanup(func() {
		l.Close()
		v.set(false)
		v.mu.Lock()
		for _, c := range v.conns {
			c.Close()
		}
		v.mu.Unlock()
		os.RemoveAll(dir)
	})
	return v, dir
}

func (v *valve) serve() {
	for {
		near, err := v.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("unix", v.to)
		if err != nil {
			near.Close()
			continue
		}
		v.mu.Lock()
		v.conns = append(v.conns, near, far)
		v.mu.Unlock()
		go v.copy(far, near)
		go v.copy(near, far)
	}
}

// copy passes on what comes, and holds it while the valve is shut: nobody is told
// that the line is dead.
func (v *valve) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		v.mu.Lock()
		for v.shut {
			v.open.Wait()
		}
		v.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				from.Close()
			}
			return
		}
	}
}

func (v *valve) set(shut bool) {
	v.mu.Lock()
	v.shut = shut
	v.mu.Unlock()
	v.open.Broadcast()
}

// hostAndDatabase reads the socket directory and the database from a DSN of tests.
func hostAndDatabase(t *testing.T, dsn string) (socket, rest string) {
	t.Helper()
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		host, port := u.Query().Get("host"), u.Query().Get("port")
		if host == "" {
			testkit.Skip(t, "the test database is not on a socket")
		}
		if port == "" {
			port = "5432"
		}
		return filepath.Join(host, ".s.PGSQL."+port), fmt.Sprintf("user=%s dbname=%s sslmode=disable", u.User.Username(), strings.TrimPrefix(u.Path, "/"))
	}
	var host string
	var others []string
	for _, word := range strings.Fields(dsn) {
		if value, ok := strings.CutPrefix(word, "host="); ok {
			host = value
			continue
		}
		others = append(others, word)
	}
	if !strings.HasPrefix(host, "/") {
		testkit.Skip(t, "the test database is not on a socket")
	}
	return filepath.Join(host, ".s.PGSQL.5432"), strings.Join(others, " ")
}

// TestFrozenAndCutOff stops a provisioner as it stands, or takes its database from
// it without its being told, until others have its tasks. What it has to say
// afterwards counts no more.
func TestFrozenAndCutOff(t *testing.T) {
	t.Parallel()
	together(t, map[string]string{"frozen": "frozen", "cut off": "cut off"}, func(t *testing.T, kind string) {
		db := testkit.NewDatabase(t)
		socket, rest := hostAndDatabase(t, db.DSN)
		v, dir := newValve(t, socket)
		w := makeWorld(t, []string{"LOOM_MOCK=true", "LOOM_DATABASE_URL=" + db.DSN})
		m := newMockWorld(t, w, db.DSN, 5*time.Second, []string{"LOOM_DATABASE_URL=host=" + dir + " " + rest})
		const nodes = 20
		id := m.user.create("slow", nodes, nil)
		m.eventually("tasks that take their time", func() error {
			if n := m.count(`SELECT count(*) FROM tasks WHERE status = 'running' AND action = 'install'`); n != nodes {
				return fmt.Errorf("%d run", n)
			}
			return nil
		})
		var first string
		if err := m.db.Get(&first, `SELECT id FROM processes WHERE kind = 'provisioner'`); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if kind == "frozen" {
			m.provisioner.kill(t, syscall.SIGSTOP)
		} else {
			v.set(true)
		}
		m.background("provisioner")
		m.eventually("its tasks to run elsewhere", func() error {
			if n := m.count(`SELECT count(*) FROM tasks WHERE status = 'running' AND process_id <> $1`, first); n == 0 {
				return fmt.Errorf("none does")
			}
			return nil
		})
		var taken time.Time
		if err := m.db.Get(&taken, `SELECT now()`); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: its tasks ran elsewhere after %s", kind, time.Since(began).Round(100*time.Millisecond))
		if n := m.count(`SELECT count(*) FROM attempts WHERE process_id = $1 AND status = 'running'`, first); n != 0 {
			t.Errorf("%d attempts of the lost process still count", n)
		}
		lost := m.count(`SELECT count(*) FROM attempts WHERE process_id = $1 AND status = 'interrupted'`, first)
		if lost == 0 {
			t.Error("nothing was interrupted")
		}
		m.provisioner.kill(t, syscall.SIGCONT)
		v.set(false)

		m.user.waitActive(id)
		m.eventually("the lost process to begin again", func() error {
			if n := m.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner' AND id <> $1`, first); n != 2 {
				return fmt.Errorf("%d provisioners", n)
			}
			return nil
		})
		m.once()
		if n := m.count(`SELECT count(*) FROM attempts WHERE process_id = $1 AND status = 'complete' AND ended_at > $2`, first, taken); n != 0 {
			t.Errorf("%d results of the lost process counted after others had its tasks", n)
		}
		if n := m.count(`SELECT count(*) FROM attempts WHERE process_id = $1 AND status = 'interrupted'`, first); n != lost {
			t.Errorf("%d attempts of the lost process are interrupted, want %d", n, lost)
		}
		// Each late result is refused and logged, at once or from the disk.
		m.eventually("word of the late results", func() error {
			out := m.provisioner.output()
			if n := strings.Count(out, "late result refused") + strings.Count(out, "counted=false"); n < lost {
				return fmt.Errorf("%d of %d", n, lost)
			}
			return nil
		})
	})
}

// TestDatabaseGoesAway restarts PostgreSQL and cuts every connection, several
// times, while a thousand tasks run.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, []string{"LOOM_MOCK=true"})
	server, err := devdb.New(devdb.Options{Dir: filepath.Join(w.dir, "pg")})
	if err != nil {
		t.Fatal(err)
	}
	m := newMockWorld(t, w, server.DSN("loom"), 100*time.Millisecond, nil)
	const nodes = 143 // of seven tasks each
	id := m.user.create("slow", nodes, nil)
	if n := m.count(`SELECT count(*) FROM tasks WHERE NOT gate`); n < 1000 {
		t.Fatalf("only %d tasks", n)
	}
	done := func() int { return m.count(`SELECT count(*) FROM tasks WHERE NOT gate AND status = 'complete'`) }
	until := func(n int) {
		t.Helper()
		m.eventually(fmt.Sprintf("%d tasks", n), func() error {
			if now := done(); now < n {
				return fmt.Errorf("%d", now)
			}
			return nil
		})
	}
	cut := func() {
		t.Helper()
		// One's own goes last, and with it the answer.
		if _, err := m.db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
	}
	until(100)
	cut()
	until(250)
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := done()
	t.Logf("%d tasks were done when PostgreSQL was restarted", before)
	if before >= 1000 {
		t.Error("all was over before PostgreSQL was restarted")
	}
	for step := range 4 {
		until(min(before+150*(step+1), 1000))
		cut()
	}
	m.user.waitActive(id)
	m.once()
	if n := m.count(`SELECT count(*) FROM attempts WHERE status = 'interrupted'`); n > 0 {
		t.Logf("%d attempts were interrupted and began again", n)
	} else if n := m.count(`SELECT count(*) FROM task_logs WHERE text LIKE 'mock: line%'`); n != m.count(`SELECT count(*) FROM tasks WHERE service = 'slow'`) {
		t.Errorf("%d actions were carried out for %d tasks", n, m.count(`SELECT count(*) FROM tasks WHERE service = 'slow'`))
	}
}
