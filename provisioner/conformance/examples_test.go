package conformance_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"loom/app/loom"
	"loom/provisioner/conformance"
	"loom/provisioner/external"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// example copies a plugin of the documentation, since a checkout may be writable
// for others.
func example(t testing.TB, h *external.Host, name string, needs ...string) (*external.Plugin, conformance.Settings) {
	t.Helper()
	for _, program := range needs {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
				t.Fatalf("%s is not installed", program)
			}
			t.Skipf("%s is not installed", program)
		}
	}
	from, to := filepath.Join("..", "..", "docs", "plugins", name), t.TempDir()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(from, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, file.Name()), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := h.Load(to)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings: %v", p.Warnings)
	}
	settings, err := conformance.ReadSettings(filepath.Join(to, conformance.SettingsName))
	if err != nil {
		t.Fatal(err)
	}
	return p, settings
}

// TestFileProvider: the example of a provider passes every check.
func TestFileProvider(t *testing.T) {
	t.Parallel()
	h := host(t)
	p, settings := example(t, h, "file-provider", "jq", "flock")
	f := &findings{}
	if err := conformance.Plugin(t.Context(), f, conformance.PluginTarget{Host: h, Plugin: p, Settings: settings}); err != nil {
		t.Fatal(err)
	}
	if len(f.found)+len(f.skipped) > 0 || len(f.passed) < 25 {
		t.Errorf("found %q\nskipped %q\n%d passed", f.found, f.skipped, len(f.passed))
	}
}

const sitePlaybook = `- hosts: node
  gather_facts: false
  tasks:
    - name: say hello
      ansible.builtin.command: echo {{ greeting }} from {{ loom.service }}
      changed_when: false
      failed_when: greeting == 'fail'
    - name: wait
      ansible.builtin.command: sleep 300
      when: greeting == 'wait'
`

// TestAnsible: the example of an automator, with a stub in place of Ansible, and
// with Ansible where it is installed.
func TestAnsible(t *testing.T) {
	t.Parallel()
	stub, err := filepath.Abs(filepath.Join("testdata", "stub-ansible-playbook"))
	if err != nil {
		t.Fatal(err)
	}
	real, _ := exec.LookPath("ansible-playbook")
	for name, program := range map[string]string{"stub": stub, "real": real} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if program == "" {
				t.Skip("ansible-playbook is not installed (package ansible-core)")
			}
			h := host(t)
			h.Environ = append(h.Environ, "ANSIBLE_PLAYBOOK="+program)
			p, settings := example(t, h, "ansible", "python3", "ssh")
			server := sshtest.Start(t, sshtest.Options{Isolated: true})
			conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Address: server.Address, Port: server.Port, User: sshtest.SudoUser,
				Keys: []loom.Secret{loom.NewSecret(server.Key.PEM)}, HostKeys: server.HostKeys})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			files := t.TempDir()
			if err := os.Mkdir(filepath.Join(files, "playbooks"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(files, "playbooks", "site.yml"), []byte(sitePlaybook), 0o644); err != nil {
				t.Fatal(err)
			}
			one := settings.Types["ansible"]
			one.Actions = []string{"configure"} // they are all alike, and Ansible is slow
			settings.Types["ansible"] = one
			f := &findings{}
			if err := conformance.Plugin(t.Context(), f, conformance.PluginTarget{Host: h, Plugin: p, Settings: settings, Live: true, Conn: conn,
				Files: func(string, string) string { return files }}); err != nil {
				t.Fatal(err)
			}
			if len(f.found)+len(f.skipped) > 0 || len(f.passed) < 12 {
				t.Errorf("found %q\nskipped %q\n%d passed", f.found, f.skipped, len(f.passed))
			}
			// And what it did was done on the machine.
			result, err := h.Automator(p, "ansible").Run(t.Context(), ansibleSpec(), conn, files, &lines{t: t, want: "hello"})
			if err != nil || result.Status != 0 {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// TestAnsibleEndsItsPlaybook tells the example to end as soon as its playbook runs: that
// must have ended too when the example has.
func TestAnsibleEndsItsPlaybook(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	program, err := filepath.Abs(filepath.Join("..", "..", "docs", "plugins", "ansible", "ansible_automator.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"playbooks/site.yml": "", "play": "#!/bin/sh\necho $$ >pid\nkill -TERM $PPID\nexec sleep 600\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // which of the two is faster is chance
		cmd := exec.Command("python3", program, "automator", "configure")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LOOM_SCRATCH="+dir, "LOOM_SSH_CONFIG="+os.DevNull, "ANSIBLE_PLAYBOOK="+filepath.Join(dir, "play"))
		cmd.Stdin = strings.NewReader(`{"input": {"fields": {"playbook": "site.yml"}}}`)
		if out, err := cmd.Output(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 143 {
			t.Fatalf("it ended with %v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // already failing
			t.Fatalf("its playbook is still there: %v", err)
		}
	}
}

func ansibleSpec() *loom.TaskSpec {
	s := serviceSpec(loom.ActionConfigure)
	s.Service.Name = "conformance"
	s.Service.Action.Fields = map[string]string{"playbook": "site.yml", "extra_vars": `{"greeting": "hello"}`}
	return s
}

// lines logs what an action says.
type lines struct {
	t    testing.TB
	want string
}

// Log logs.
func (l *lines) Log(stream, text string) {
	if strings.Contains(text, l.want) || stream == "stderr" {
		l.t.Log(stream, text)
	}
}

// Fact ignores.
func (l *lines) Fact(map[string]any) error { return nil }
