package provisioner

import (
	"context"
	"errors"
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

// eager also stores at once what its scripts report, as plugins in other languages do.
type eager struct{ shell.Shell }

// Run stores the results.
func (e eager) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	result, err := e.Shell.Run(ctx, spec, conn, files, sink)
	return result, errors.Join(err, sink.Fact(result.Result))
}

// TestServicesReplaceNoFacts: whatever a service is called, what it reports is not what Loom signs in by, and
// its scripts read it under its name as before.
func TestServicesReplaceNoFacts(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	r := runner(t, nil)
	var err error
	if r.Automators, err = automator.NewRegistry(eager{}); err != nil {
		t.Fatal(err)
	}
	fixed := map[string]any{"ssh-auth": map[string]any{"user": "root"}, "ssh_port": s.Port, "ssh_host_keys": maps.Clone(s.HostKeys)}
	facts := maps.Clone(fixed)
	facts["web"] = map[string]any{"old": "1"} // as an older release kept it
	run := func(service, script string) (loom.TaskResult, *sshtest.Record) {
		sink := &sshtest.Record{}
		got := r.Run(context.Background(), &loom.TaskSpec{Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: 1}, Tenant: "t1",
			Action: loom.ActionStart, Node: "n1", Addresses: map[string]string{loom.AccessV4: s.Address}, Automators: []string{"shell"},
			Provider: loom.Provider{Type: "mock"}, Results: maps.Clone(facts), PrivateKey: loom.NewSecret(s.Key.PEM),
			Service: &loom.TaskService{Name: service, Action: loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": script}}}}, sink)
		for _, found := range append(sink.Facts(), got.Result) {
			for name, value := range found {
				if _, ok := fixed[name]; ok {
					t.Errorf("service %s: the fact %s becomes %v", service, name, value)
				}
			}
			maps.Copy(facts, found)
		}
		return got, sink
	}
	prepared := r.Run(context.Background(), &loom.TaskSpec{Tenant: "t1", Action: loom.ActionBootstrap, Node: "n1", Addresses: map[string]string{loom.AccessV4: s.Address},
		Automators: []string{"shell"}, Provider: loom.Provider{Type: "mock"}, Results: maps.Clone(fixed), PrivateKey: loom.NewSecret(s.Key.PEM)}, &sshtest.Record{})
	if prepared.Status != 0 {
		t.Fatalf("%+v", prepared)
	}
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if got, sink := run(name, "echo ed25519=planted >>$LOOM_RESULT_FILE"); got.Status != 0 || len(got.Result) != 1 {
			t.Errorf("service %s: %+v\n%s", name, got, sink.Text())
		}
	}
	read := "sh -c '. ../lib/functions.sh; echo read $(loom_lookup_key ^/config/web/old$) $(loom_lookup_key ^/config/web/port$ none); echo port=80 >>$LOOM_RESULT_FILE'"
	for _, want := range []string{"read 1 none", "read 1 80"} {
		if got, sink := run("web", read); got.Status != 0 || !strings.Contains(sink.Text(), want) {
			t.Errorf("no %q: %+v\n%s", want, got, sink.Text())
		}
	}
}
