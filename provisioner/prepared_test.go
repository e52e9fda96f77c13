package provisioner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/automator/shell"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// watched is the shell automator; it notes what its Bootstrap is asked for.
type watched struct {
	shell.Shell
	asked *[]string
}

// Bootstrap notes the action and whether a service is named.
func (w watched) Bootstrap(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	*w.asked = append(*w.asked, fmt.Sprintf("%s %t", spec.Action, spec.Service != nil))
	return w.Shell.Bootstrap(ctx, spec, conn, files, sink)
}

// A script that was mended and synced after the machine was prepared is the one that
// a later task runs, so that a retry can do better than what it repeats.
func TestMendedScriptsReachTheMachine(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	caches := map[int]*Cache{}
	for set, text := range map[int]string{1: "echo broken; exit 1\n", 2: "echo mended\n"} {
		source := newSource(t)
		source.add(t, set, loom.Resource{ResourceRef: loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "web.sh"},
			Version: set, Format: "file", Permissions: "0755"}, []byte("#!/bin/sh\n"+text))
		source.add(t, set, loom.Resource{ResourceRef: loom.ResourceRef{Kind: "providertypes", Plugin: "mock", Type: "ssh_keys", Name: "prod"},
			Version: 1, Format: "file"}, []byte(s.Key.PEM))
		caches[set] = &Cache{Dir: t.TempDir(), Source: source}
	}
	r := runner(t, nil)
	var asked []string
	var err error
	if r.Automators, err = automator.NewRegistry(watched{shell.New(), &asked}); err != nil {
		t.Fatal(err)
	}
	facts := map[string]any{"ssh-auth": map[string]any{"user": "root", "identityfile": "ssh_keys/prod"}, "ssh_port": s.Port}
	// run carries out a task, keeps what it found, and gives its log.
	run := func(action loom.TaskAction, set int) (loom.TaskResult, string) {
		sink := &sshtest.Record{}
		r.Cache = caches[set]
		got := r.Run(context.Background(), &loom.TaskSpec{Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: 1}, Tenant: "t1",
			Action: action, Node: "n1", ResourceSet: set, Addresses: map[string]string{loom.AccessV4: s.Address}, Automators: []string{"shell"},
			Hostname: "web1-1000.local", Provider: loom.Provider{Type: "mock"}, Results: maps.Clone(facts),
			Service: serviceOf(action)}, sink)
		maps.Copy(facts, got.Result)
		return got, sink.Text()
	}
	const again = "prepared again first"
	if got, log := run(loom.ActionStart, 2); strings.Contains(log, again) || got.Status == 0 {
		t.Fatalf("a machine that nobody prepared: %+v\n%s", got, log)
	}
	if got, log := run(loom.ActionBootstrap, 1); got.Status != 0 {
		t.Fatalf("%+v\n%s", got, log)
	}
	if got, log := run(loom.ActionStart, 1); got.Status == 0 || got.Files != nil || got.Stdout != "broken\n" || strings.Contains(log, again) {
		t.Fatalf("%+v\n%s", got, log)
	}
	if got, log := run(loom.ActionStart, 2); got.Status != 0 || got.Stdout != "mended\n" || !strings.Contains(log, "set 1, now 2") || !maps.Equal(got.Files, map[string]int{"shell/scripts/web.sh": 2}) {
		t.Fatalf("%+v\n%s", got, log)
	}
	if got, log := run(loom.ActionStop, 2); got.Status != 0 || got.Files != nil { // it sets nothing up
		t.Fatalf("%+v\n%s", got, log)
	}
	if got, log := run(loom.ActionStart, 2); got.Status != 0 || strings.Contains(log, again) {
		t.Fatalf("prepared although nothing changed: %+v\n%s", got, log)
	}
	// Plugins are told by the action what to do.
	if want := []string{"bootstrap false", "bootstrap false"}; !slices.Equal(asked, want) {
		t.Errorf("Bootstrap was asked for %q, want %q", asked, want)
	}
}

func serviceOf(action loom.TaskAction) *loom.TaskService {
	if action == loom.ActionBootstrap {
		return nil
	}
	return &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": "web.sh"}}}
}
