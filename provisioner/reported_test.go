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
	mockautomator "loom/provisioner/automator/mock"
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

// telling is an automator whose services report what the test wants.
type telling struct {
	mockautomator.Automator
	result map[string]any
}

// Run stores and reports it.
func (a telling) Run(_ context.Context, _ *loom.TaskSpec, _ *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	return loom.TaskResult{Result: a.result}, sink.Fact(a.result)
}

// TestResultsOfServicesAreBounded: all services of a node together report 256 kB of JSON at most.
func TestResultsOfServicesAreBounded(t *testing.T) {
	t.Parallel()
	r := runner(t, nil)
	for name, c := range map[string]struct {
		before, report string
		ok             bool
	}{
		"some":            {strings.Repeat("x", 100_000), strings.Repeat("x", 100_000), true},
		"too much of all": {strings.Repeat("x", 200_000), strings.Repeat("x", 100_000), false},
		"written longer":  {"", strings.Repeat("\x01", 60_000), false},
	} {
		automators, err := automator.NewRegistry(telling{result: map[string]any{"web": c.report}})
		if err != nil {
			t.Fatal(err)
		}
		r.Automators = automators
		spec, sink := createSpec(), &sshtest.Record{}
		spec.Results = map[string]any{"service:shell:db": c.before, "ssh_host_keys": strings.Repeat("x", 300_000)}
		spec.Action, spec.Service = loom.ActionStart, &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "mock"}}
		got := r.Run(context.Background(), spec, sink)
		if ok := got.Status == 0 && len(got.Result) == 1 && len(sink.Facts()) == 1; ok != c.ok {
			t.Errorf("%s: status %d, %s, %d results", name, got.Status, got.Message, len(got.Result))
		}
		if !c.ok && (len(got.Result)+len(sink.Facts()) > 0 || !strings.Contains(got.Message, "at most 262144 are kept")) {
			t.Errorf("%s: %s", name, got.Message)
		}
	}
}
