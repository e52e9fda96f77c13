package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator"
	mockautomator "loom/provisioner/automator/mock"
	"loom/provisioner/automator/shell"
	"loom/provisioner/provider"
	mockprovider "loom/provisioner/provider/mock"
	"loom/provisioner/provider/static"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// scripted is a provider whose Create is a function of the test.
type scripted struct {
	mockprovider.Provider
	create func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error)
}

// Create does what the test wants.
func (s scripted) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return s.create(ctx, spec, sink)
}

type createFunc = func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error)

func runner(t testing.TB, create createFunc) *Runner {
	t.Helper()
	providers, err := provider.NewRegistry(scripted{create: create})
	if err != nil {
		t.Fatal(err)
	}
	automators, err := automator.NewRegistry(mockautomator.New(), shell.New())
	if err != nil {
		t.Fatal(err)
	}
	pool := remote.NewPool()
	t.Cleanup(func() { _ = pool.Close() })
	return &Runner{Networks: loom.Anywhere().Networks, Providers: providers, Automators: automators, Pool: pool, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func createSpec() *loom.TaskSpec {
	return &loom.TaskSpec{Action: loom.ActionCreate, Node: "n1", Attempt: 1, Provider: loom.Provider{Type: "mock", Fields: map[string]any{}},
		Sensitive: []string{"hunter2!"}, Results: map[string]any{}}
}

func TestRunnerOutcomes(t *testing.T) {
	t.Parallel()
	wait := func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) (loom.TaskResult, error) {
		<-ctx.Done()
		return loom.TaskResult{Status: 1, Message: "gave up", Result: map[string]any{"providerid": "i-1"}}, context.Cause(ctx)
	}
	cases := []struct {
		name   string
		create createFunc
		cause  error
		limit  time.Duration
		want   loom.TaskResult
	}{
		{"success", func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
			return loom.TaskResult{Result: map[string]any{"providerid": "i-1"}}, nil
		}, nil, 0, loom.TaskResult{}},
		{"failure keeps its status", func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
			return loom.TaskResult{Status: 202, Message: "no\nsecond line"}, nil
		}, nil, 0, loom.TaskResult{Status: 202, Message: "no"}},
		{"panic", func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
			panic("index hunter2! out of range")
		}, nil, 0, loom.TaskResult{Status: 1, Message: "the plugin crashed: index [redacted] out of range"}},
		{"trouble of the provisioner", func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
			return loom.TaskResult{}, errors.New("disk full")
		}, nil, 0, loom.TaskResult{Status: 1, Message: "provisioner error: disk full", Interrupted: true}},
		{"abort", wait, fmt.Errorf("%w by ann", ErrAborted), 0, loom.TaskResult{Status: -1, Message: "aborted by ann", Aborted: true}},
		{"interruption", wait, ErrInterrupted, 0, loom.TaskResult{Status: -1, Message: "interrupted", Interrupted: true}},
		{"other end", wait, errors.New("lease lost"), 0, loom.TaskResult{Status: -1, Message: "interrupted: lease lost", Interrupted: true}},
		{"time limit", wait, nil, time.Millisecond, loom.TaskResult{Status: -1, Message: "timed out after 0 s"}},
		{"success in spite of the abort", func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) (loom.TaskResult, error) {
			<-ctx.Done()
			return loom.TaskResult{}, nil
		}, ErrAborted, 0, loom.TaskResult{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if c.cause != nil {
				cancel(c.cause)
			}
			spec := createSpec()
			if c.limit > 0 {
				spec.Deadline = time.Now().Add(c.limit)
			}
			got := runner(t, c.create).Run(ctx, spec, &sshtest.Record{})
			if got.Status != c.want.Status || got.Message != c.want.Message || got.Interrupted != c.want.Interrupted || got.Aborted != c.want.Aborted {
				t.Fatalf("got %+v", got)
			}
			if strings.Contains(c.name, "limit") && got.Result["providerid"] != "i-1" {
				t.Fatal("facts of a failed attempt are lost")
			}
		})
	}
}

func TestRunnerRedactsAndRefuses(t *testing.T) {
	t.Parallel()
	create := func(_ context.Context, _ *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
		sink.Log("stdout", "key hunter2! and db-pass-word and not shown")
		return loom.TaskResult{Status: 1, Message: "bad hunter2!", Stdout: "x made-up-by-cloud", Stderr: "db-pass-word",
			Result: map[string]any{"cluster": "mine", "nodes": 1, "providerid": "i-1", "ssh-auth": map[string]any{"password": "made-up-by-cloud"}}}, nil
	}
	spec := createSpec()
	spec.Config = map[string]any{"db": map[string]any{"Root_Password": "db-pass-word", "port": "3306"}}
	sink := &sshtest.Record{}
	got := runner(t, create).Run(context.Background(), spec, sink)
	if got.Message != "bad [redacted]" || got.Stdout != "x [redacted]" || got.Stderr != "[redacted]" {
		t.Fatalf("got %+v", got)
	}
	if len(got.Result) != 2 || got.Result["providerid"] != "i-1" {
		t.Fatalf("results %v", got.Result)
	}
	if text := sink.Text(); !strings.Contains(text, "key [redacted] and [redacted] and") || strings.Count(text, "warning: the result") != 2 {
		t.Fatal(text)
	}
}

func TestRunnerChooses(t *testing.T) {
	t.Parallel()
	r := runner(t, nil)
	for name, c := range map[string]struct {
		change func(*loom.TaskSpec)
		want   string
	}{
		"unknown provider":  {func(s *loom.TaskSpec) { s.Provider.Type = "moon" }, `no provider of type "moon"`},
		"unknown action":    {func(s *loom.TaskSpec) { s.Action = "dance" }, `unknown task "dance"`},
		"no service":        {func(s *loom.TaskSpec) { s.Action = loom.ActionStart }, "names no service"},
		"unknown automator": {func(s *loom.TaskSpec) { s.Action, s.Automators = loom.ActionBootstrap, []string{"magic"} }, `no automator of type "magic"`},
		"no address":        {func(s *loom.TaskSpec) { s.Action, s.Automators = loom.ActionBootstrap, []string{"shell"} }, "never confirmed"},
	} {
		spec := createSpec()
		c.change(spec)
		if got := r.Run(context.Background(), spec, &sshtest.Record{}); got.Status == 0 || got.Interrupted || !strings.Contains(got.Message, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	spec, sink := createSpec(), &sshtest.Record{}
	spec.Action = loom.ActionBootstrap
	if got := r.Run(context.Background(), spec, sink); got.Status != 0 || !strings.Contains(sink.Text(), "warning") {
		t.Errorf("bootstrap without automators: %+v", got)
	}
	spec.Action, spec.Service = loom.ActionStart, &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "mock", Fields: map[string]string{"output_lines": "3"}}}
	if got := r.Run(context.Background(), spec, sink); got.Status != 0 || !strings.Contains(sink.Text(), "line 3 of web start") {
		t.Errorf("mock automator: %+v, %s", got, sink.Text())
	}
	spec.Service.Action.Fields["fail_percent"] = "100"
	if got := r.Run(context.Background(), spec, sink); got.Status != 1 {
		t.Errorf("mock automator: %+v", got)
	}
}

func TestRegistriesRefuseDoubles(t *testing.T) {
	t.Parallel()
	if _, err := provider.NewRegistry(mockprovider.New(), mockprovider.New()); !errors.Is(err, loom.Invalid) {
		t.Error(err)
	}
	if _, err := automator.NewRegistry(shell.New(), shell.New()); !errors.Is(err, loom.Invalid) {
		t.Error(err)
	}
	r := runner(t, nil)
	if types := r.Automators.Types(); len(types) != 2 || types[0].Name != "mock" || types[1].Name != "shell" {
		t.Errorf("%v", types)
	}
}

// TestRunnerOnAMachine goes the whole way: files of the tenant, kept connection,
// bootstrap, hosts block, an action, a key learned, an abort.
func TestRunnerOnAMachine(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	source := newSource(t)
	source.add(t, 1, loom.Resource{ResourceRef: loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "web.sh"},
		Version: 1, Format: "file", Permissions: "0755"}, []byte("#!/bin/sh\necho \"$1 with db-pass-word\"; [ \"$1\" = wait ] && sleep 100\necho up=1 >>\"$LOOM_RESULT_FILE\"\n"))
	source.add(t, 1, loom.Resource{ResourceRef: loom.ResourceRef{Kind: "providertypes", Plugin: "mock", Type: "ssh_keys", Name: "prod"},
		Version: 1, Format: "file"}, []byte(s.Key.PEM))
	r := runner(t, nil)
	r.Cache = &Cache{Dir: t.TempDir(), Source: source}
	spec := func(action loom.TaskAction, args string) *loom.TaskSpec {
		return &loom.TaskSpec{Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: 1}, Tenant: "t1", Action: action, Node: "n1", ResourceSet: 1,
			Addresses: map[string]string{loom.AccessV4: s.Address, loom.BindV4: "10.0.0.1"}, Automators: []string{"shell"},
			Hostname: "web1-1000.local", Nodes: map[loom.NodeID]loom.NodeProperties{
				"n1": {Hostname: "web1-1000.local", Number: 1000, Addresses: map[string]string{loom.BindV4: "10.0.0.1"}},
				"n2": {Hostname: "web1-1001.local", Number: 1001, Addresses: map[string]string{loom.BindV4: "10.0.0.2"}}},
			Provider: loom.Provider{Type: "mock", Fields: map[string]any{"manage_hosts": true}}, Config: map[string]any{"db_password": "db-pass-word"},
			Results: map[string]any{"ssh-auth": map[string]any{"user": "root", "identityfile": "ssh_keys/prod"}, "ssh_port": s.Port},
			Service: &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": "web.sh", "args": args}}}}
	}
	sink := &sshtest.Record{}
	got := r.Run(context.Background(), spec(loom.ActionBootstrap, ""), sink)
	keys, _ := got.Result["ssh_host_keys"].(map[string]string)
	if got.Status != 0 || keys["ed25519"] != s.HostKeys["ed25519"] || !strings.Contains(sink.Text(), "warning: no host key") {
		t.Fatalf("%+v\n%s", got, sink.Text())
	}
	for range 2 {
		got = r.Run(context.Background(), spec(loom.ActionConfigure, "go"), sink)
		web, _ := got.Result["service:shell:web"].(map[string]any)
		if got.Status != 0 || web["up"] != "1" || got.Stdout != "go with [redacted]\n" || !strings.Contains(sink.Text(), "stdout: go with [redacted]") {
			t.Fatalf("%+v\n%s", got, sink.Text())
		}
	}
	hosts, err := os.ReadFile(filepath.Join(s.Dir, "etc/hosts"))
	block := "# loom begin 00000001\n10.0.0.1 web1-1000.local web1-1000\n10.0.0.2 web1-1001.local web1-1001\n# loom end 00000001\n"
	if err != nil || string(hosts) != "127.0.0.1 localhost testmachine\n"+block {
		t.Fatalf("hosts file: %q, %v", hosts, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	cut := cancelOn{Record: &sshtest.Record{}, text: "wait with", cancel: func() { cancel(fmt.Errorf("%w by ann", ErrAborted)) }}
	if got = r.Run(ctx, spec(loom.ActionStart, "wait"), cut); !got.Aborted || got.Message != "aborted by ann" {
		t.Fatalf("%+v", got)
	}
	left, _ := filepath.Glob(filepath.Join(s.Dir, "cache/loom/0*"))
	if len(left) > 0 {
		t.Errorf("left on the machine: %v", left)
	}
	if s.Dials() != 1 {
		t.Errorf("%d connections for four tasks of a node", s.Dials())
	}
	wrong := spec(loom.ActionStart, "go")
	wrong.Results["ssh_host_keys"] = map[string]any{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	if got = r.Run(context.Background(), wrong, sink); got.Message != "host key of 127.0.0.1 changed" || got.Retryable == nil {
		t.Errorf("%+v", got)
	}
}

// TestKeysGoWithTheirMachine: KEYS signs in as services do, records what it put there, and
// changes nothing where it may not sign in; what is recorded goes with the machine.
func TestKeysGoWithTheirMachine(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	providers, err := provider.NewRegistry(static.New())
	if err != nil {
		t.Fatal(err)
	}
	r := runner(t, nil)
	invents := r.Providers
	r.Providers = providers
	mine := sshtest.NewKey(t, "ed25519", "").Authorized
	spec := func() *loom.TaskSpec {
		return &loom.TaskSpec{Action: loom.ActionKeys, Node: "n1", PrivateKey: loom.NewSecret(s.Key.PEM), PublicKey: s.Key.Authorized, OwnerKeys: []string{mine + " ana"},
			Addresses: map[string]string{loom.AccessV4: s.Address}, Provider: loom.Provider{Type: "static", Fields: map[string]any{}},
			Results: map[string]any{"ssh-auth": map[string]any{"user": "root"}, "ssh_port": s.Port, "ssh_host_keys": s.HostKeys}}
	}
	file := filepath.Join(s.Dir, "root/.ssh/authorized_keys")
	wrong := spec()
	wrong.Results["ssh_host_keys"] = map[string]any{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	if got := r.Run(context.Background(), wrong, &sshtest.Record{}); got.Status == 0 || got.Result[loom.KeysFact] != nil {
		t.Errorf("another machine: %+v", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("another machine has got keys")
	}
	for range 2 {
		got := r.Run(context.Background(), spec(), &sshtest.Record{})
		if there, _ := got.Result[loom.KeysFact].([]string); got.Status != 0 || len(there) != 2 || len(got.Addresses) > 0 || len(got.Result) != 1 {
			t.Fatalf("%+v", got)
		}
		if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), mine+" ana\n") != 1 || strings.Count(string(text), s.Key.Authorized) != 1 {
			t.Fatalf("%s %v", text, err)
		}
	}
	r.Providers = invents
	gone := createSpec()
	gone.Action, gone.Results = loom.ActionDelete, map[string]any{loom.KeysFact: []any{"SHA256:x"}}
	got := r.Run(context.Background(), gone, &sshtest.Record{})
	if value, there := got.Result[loom.KeysFact]; got.Status != 0 || !there || value != nil {
		t.Errorf("a machine is gone, and its keys are not: %+v", got)
	}
}

// cancelOn calls a function when a line with a text comes.
type cancelOn struct {
	*sshtest.Record
	text   string
	cancel func()
}

// Log looks for the text.
func (c cancelOn) Log(stream, text string) {
	c.Record.Log(stream, text)
	if strings.Contains(text, c.text) {
		c.cancel()
	}
}
