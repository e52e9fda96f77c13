package provisioner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
	mockprovider "loom/provisioner/provider/mock"
	"loom/provisioner/provider/static"
	"loom/provisioner/remote/sshtest"
	"loom/provisioner/simcloud"
)

// rebooting is a provider with a Reboot of the test.
type rebooting struct {
	*static.Static
	reboot func() loom.TaskResult
}

// Reboot does what the test wants.
func (r rebooting) Reboot(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
	return r.reboot(), nil
}

// rebootRunner returns a runner with one provider, and the REBOOT of the machine of s.
func rebootRunner(t *testing.T, p provider.Provider, s *sshtest.Server) (*Runner, func() *loom.TaskSpec) {
	t.Helper()
	r := runner(t, nil)
	var err error
	if r.Providers, err = provider.NewRegistry(p); err != nil {
		t.Fatal(err)
	}
	return r, func() *loom.TaskSpec {
		return &loom.TaskSpec{Action: loom.ActionReboot, Node: "n1", PrivateKey: loom.NewSecret(s.Key.PEM), Provider: loom.Provider{Type: static.TypeName, Fields: map[string]any{}},
			Addresses: map[string]string{loom.AccessV4: s.Address},
			Results:   map[string]any{"ssh-auth": map[string]any{"user": "root"}, "ssh_port": s.Port, "ssh_host_keys": s.HostKeys}}
	}
}

// TestRebootOverSSH: where the provider cannot, root of the machine reboots it. The
// connection that breaks is success, and none is kept.
func TestRebootOverSSH(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	program := func(text string) {
		if err := os.WriteFile(filepath.Join(bin, "reboot"), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := sshtest.Start(t, sshtest.Options{Isolated: true, Config: []string{"SetEnv PATH=" + bin + ":/usr/bin:/bin"}})
	r, spec := rebootRunner(t, static.New(), s)
	for name, text := range map[string]string{
		"that returns":       "touch " + bin + "/asked",
		"that does not":      "touch " + bin + "/asked; exec sleep 1000",
		"that kills its own": "touch " + bin + "/asked; kill -TERM $$",
	} {
		program(text)
		down := make(chan error, 1)
		go func() { // the machine goes down a moment after it was asked
			for deadline := time.Now().Add(time.Minute); ; {
				if os.Remove(filepath.Join(bin, "asked")) == nil {
					s.Cut()
					down <- nil
					return
				}
				if time.Now().After(deadline) {
					down <- fmt.Errorf("nobody asked it to reboot")
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		sink := &sshtest.Record{}
		if got := r.Run(t.Context(), spec(), sink); got.Status != 0 {
			t.Errorf("a reboot %s: %+v\n%s", name, got, sink.Text())
		}
		if err := <-down; err != nil {
			t.Errorf("a reboot %s: %v", name, err)
		}
		if _, kept := r.Alive(t.Context(), "n1"); kept {
			t.Errorf("a reboot %s: the connection from before is kept", name)
		}
	}
	program("echo it is not permitted >&2; exit 3")
	for name, c := range map[string]struct {
		change func(*loom.TaskSpec)
		want   string
	}{
		"refuses":         {func(*loom.TaskSpec) {}, "refuses to reboot (status 3): it is not permitted"},
		"no root":         {func(s *loom.TaskSpec) { s.Results["ssh-auth"] = map[string]any{"user": sshtest.PlainUser} }, "needs passwordless sudo"},
		"nobody there":    {func(s *loom.TaskSpec) { s.Results["ssh_port"] = 1 }, "cannot be signed in to: "},
		"never confirmed": {func(s *loom.TaskSpec) { s.Addresses = nil }, "cannot be signed in to: the node has no address yet"},
		"another host key": {func(s *loom.TaskSpec) {
			s.Results["ssh_host_keys"] = map[string]any{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
		}, "changed"},
		"no such plugin":    {func(s *loom.TaskSpec) { s.Provider.Type = "moon" }, "no provider of type"},
		"unusable settings": {func(s *loom.TaskSpec) { s.PrivateKey = loom.NewSecret("no key") }, "cannot be signed in to: "},
	} {
		given := spec()
		c.change(given)
		got := r.Run(t.Context(), given, &sshtest.Record{})
		if got.Status != 1 || !got.KeepMachine || !strings.Contains(got.Message, c.want) || name != "no such plugin" && !strings.Contains(got.Message, "restart it by hand and retry, or replace the node") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRebootByProvider: a provider that can is asked, and the machine is waited for until it
// has gone down.
func TestRebootByProvider(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	p := rebooting{Static: static.New(), reboot: func() loom.TaskResult {
		go s.Cut() // a moment after the provider has answered
		return loom.TaskResult{Message: "reset"}
	}}
	r, spec := rebootRunner(t, &p, s)
	given := spec()
	given.Results["ssh-auth"] = map[string]any{"user": s.User}
	if got := r.Run(t.Context(), given, &sshtest.Record{}); got.Status != 0 || got.Message != "reset" || s.Dials() != 1 {
		t.Errorf("%+v after %d dials", got, s.Dials())
	}
	if _, kept := r.Alive(t.Context(), "n1"); kept {
		t.Error("the connection from before is kept")
	}
	given.Results["ssh_port"] = 1 // a machine that is off
	if got := r.Run(t.Context(), given, &sshtest.Record{}); got.Status != 0 || s.Dials() != 1 {
		t.Errorf("of a machine that does not answer: %+v", got)
	}
	p.reboot = func() loom.TaskResult { return loom.TaskResult{Status: 1, Message: "not today"} }
	if got := r.Run(t.Context(), spec(), &sshtest.Record{}); got.Status != 1 || got.Message != "not today" || !got.KeepMachine {
		t.Errorf("a refusal: %+v", got)
	}
	p.reboot = func() loom.TaskResult { panic("no machine") }
	if got := r.Run(t.Context(), spec(), &sshtest.Record{}); got.Status != 1 || !strings.Contains(got.Message, "crashed") || !got.KeepMachine {
		t.Errorf("a crash: %+v", got)
	}
}

// TestRebootMakesNoMachine: where there is none, REBOOT fails and there is none afterwards.
func TestRebootMakesNoMachine(t *testing.T) {
	t.Parallel()
	books := simcloud.NewBooks()
	r := asker(t, mockprovider.NewOn(books))
	spec := createSpec()
	spec.Action, spec.IdempotencyKey = loom.ActionReboot, "k"
	if got := r.Run(t.Context(), spec, silent{}); got.Status != 1 || !got.KeepMachine || !strings.Contains(got.Message, "replace the node") {
		t.Errorf("%+v", got)
	}
	if n := books.Report().Made; n != 0 {
		t.Errorf("%d machines were made", n)
	}
	made := *spec
	made.Action = loom.ActionCreate
	for _, s := range []*loom.TaskSpec{&made, spec, spec} {
		if got := r.Run(t.Context(), s, silent{}); got.Status != 0 {
			t.Errorf("%s: %+v", s.Action, got)
		}
	}
	if n := books.Report().Made; n != 1 {
		t.Errorf("%d machines were made", n)
	}
}
