package conformance_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/conformance"
	"loom/provisioner/external"
)

func host(t testing.TB) *external.Host {
	t.Helper()
	return &external.Host{Environ: os.Environ(), Scratch: t.TempDir(), Grace: time.Second}
}

func spec(n int) *loom.TaskSpec {
	return &loom.TaskSpec{
		Reach: loom.Anywhere(),
		Ref:   loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: n + 1}, Tenant: "acme", Attempt: 1,
		IdempotencyKey: fmt.Sprintf("key-%d", n), Node: loom.NodeID(fmt.Sprintf("node-%d", n)), Hostname: fmt.Sprintf("lab1-%d.local", 1000+n),
		Provider:  loom.Provider{Base: loom.Base{Name: "lab"}, Type: "mutant", Fields: map[string]any{"token": rightToken}},
		Sensitive: []string{rightToken}, Results: map[string]any{},
	}
}

// checkProvider runs everything there is for providers against the mutant, until
// something is found that says what until says.
func checkProvider(t testing.TB, fault, until string) *findings {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := cloud(t.TempDir())
	p, h := plant(t, external.KindProvider, fault, string(c)), host(t)
	f := &findings{until: until, stop: stop}
	conformance.Provider(ctx, f, conformance.ProviderTarget{
		Provider: h.Provider(p, "mutant"), Spec: spec, Secrets: []string{rightToken},
		Machines: func(context.Context) (map[string][]string, error) { return c.machines() },
		Refused:  func(s *loom.TaskSpec) { s.Provider.Fields["token"] = "wrong-token" },
		Arrange:  func(_ context.Context, fault conformance.Fault, n int) error { return c.arrange(fault, n) },
	})
	conformance.External(ctx, f, conformance.ExternalTarget{
		Host: h, Plugin: p, Type: "mutant", Spec: func(n int) *loom.TaskSpec { return spec(1000 + n) }, Secrets: []string{rightToken},
		Slow: func(s *loom.TaskSpec) {
			_ = c.arrange(conformance.Pending, 1_000_000)
		},
	})
	return f
}

// mutants are the planted faults, with what has to be said of each.
var mutants = map[string]string{
	"makes a machine each time":             "there are 2 machines",
	"tells the id late":                     "not reported before the end",
	"keeps the id to itself":                "without its providerid",
	"tells no user":                         "ssh-auth.user",
	"dies without a result":                 "gave no result",
	"says the token":                        "a secret is in its output",
	"fails on what is gone":                 "a second DELETE failed",
	"forgets on refused credentials":        "DELETE with wrong credentials has to fail",
	"says 1 for refused credentials":        "CREATE with wrong credentials has to fail with a status from 200 to 299",
	"gives up when throttled":               "says that trying again is useless",
	"fails when throttled":                  "create gives up at the first throttling",
	"takes a lost answer for nothing made":  "says that nothing was made",
	"gives up on what it cannot see":        "confirm failed",
	"does not wait":                         "confirm failed",
	"gives no address":                      "access_v4",
	"deletes by id only":                    "after DELETE without an id there are 1 machines",
	"only says that it deletes":             "after DELETE there are 1 machines",
	"ignores SIGTERM":                       "did not end on SIGTERM",
	"leaves a process":                      "processes were still there",
	"tells twice":                           "gave 2 results",
	"exits with 1 after success":            "after reporting success",
	"takes garbage for an error of its own": "it exits with 1",
	"takes an empty request":                "it reports success",
	"can do anything":                       "it exits with 0",
	"needs HOME":                            "instead of 0",
	"writes beside itself":                  "it changed something",
}

// TestNoFault: a plugin without a fault passes every check, and none is skipped.
func TestNoFault(t *testing.T) {
	t.Parallel()
	f := checkProvider(t, "", "")
	if len(f.found)+len(f.skipped) > 0 || len(f.passed) < 25 {
		t.Errorf("found %q\nskipped %q\n%d passed", f.found, f.skipped, len(f.passed))
	}
}

// TestMutants: at least nine of ten planted faults are found, and each is told as
// what it is.
func TestMutants(t *testing.T) {
	t.Parallel()
	for fault, says := range mutants {
		t.Run(strings.ReplaceAll(fault, " ", "-"), func(t *testing.T) {
			t.Parallel()
			if f := checkProvider(t, fault, says); !f.has(says) {
				t.Errorf("not found; what was found: %q", f.found)
			}
		})
	}
}

// TestThrottlingByRevision: who fails because of throttling says that trying again helps,
// from protocol 1.1 on.
func TestThrottlingByRevision(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ protocol, fault, found string }{
		{"1", "fails when throttled", ""},
		{"1.2", "fails when throttled", "delete gives up at the first throttling"},
		{"1.1", "says when to come back", ""},
	} {
		t.Run(strings.ReplaceAll(c.protocol+" "+c.fault, " ", "-"), func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			lab, h := cloud(t.TempDir()), host(t)
			p := plantOf(t, c.protocol, external.KindProvider, c.fault, string(lab))
			f := &findings{until: c.found, stop: stop}
			conformance.Provider(ctx, stopper{f, "throttling", stop}, conformance.ProviderTarget{
				Provider: h.Provider(p, "mutant"), Spec: spec, NoRetryHint: p.Manifest.Revision < external.ThrottlingRevision, NoConfirm: true,
				Arrange: func(_ context.Context, fault conformance.Fault, n int) error { return lab.arrange(fault, n) },
			})
			passed := slices.ContainsFunc(f.passed, func(check string) bool { return strings.HasPrefix(check, "throttling") })
			if passed != (c.found == "") || c.found != "" && !f.has(c.found) {
				t.Errorf("found %q, want %q", f.found, c.found)
			}
		})
	}
}

// TestKeeps: who fails a CONFIRM because of throttling keeps the machine,
// from protocol 1.1 on.
func TestKeeps(t *testing.T) {
	t.Parallel()
	const gives = "confirm gives a machine up because of throttling"
	for n, c := range []struct{ protocol, fault, found string }{
		{"1", "gives machines up when throttled", ""},
		{"1.1", "gives machines up when throttled", gives},
		{"1.1", "keeps machines when throttled", ""},
		{"1.1", "", ""}, // exits with 75
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			lab, h := cloud(t.TempDir()), host(t)
			p := plantOf(t, c.protocol, external.KindProvider, c.fault, string(lab))
			f := &findings{until: c.found, stop: stop}
			conformance.Provider(ctx, stopper{f, "throttling", stop}, conformance.ProviderTarget{
				Provider: h.Provider(p, "mutant"), Spec: spec, NoRetryHint: p.Manifest.Revision < external.ThrottlingRevision,
				Arrange: func(_ context.Context, fault conformance.Fault, n int) error { return lab.arrange(fault, n) },
			})
			if f.has(gives) != (c.found != "") || c.found == "" && len(f.found) > 0 {
				t.Errorf("found %q, want %q", f.found, c.found)
			}
		})
	}
}

// stopper ends the checks where the next check after one begins.
type stopper struct {
	*findings
	check string
	stop  func()
}

func (s stopper) Pass(check string) {
	s.findings.Pass(check)
	if strings.HasPrefix(check, s.check) {
		s.stop()
	}
}

// serviceSpec is a task of a service of the mutant.
func serviceSpec(action loom.TaskAction) *loom.TaskSpec {
	s := spec(1)
	s.Action = action
	s.Addresses = map[string]string{loom.AccessV4: "192.0.2.7"}
	s.Service = &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "mutant", Fields: map[string]string{}}}
	return s
}

// TestAutomatorMutants: the checks of automators find their faults too.
func TestAutomatorMutants(t *testing.T) {
	t.Parallel()
	for fault, says := range map[string]string{
		"": "", "hides failures": "status 0", "leaves a process": "processes were still there", "ignores SIGTERM": "did not end on SIGTERM",
		"tells twice": "gave 2 results", "exits with 1 after success": "start failed", "can do anything": "exits with 0",
	} {
		t.Run(strings.ReplaceAll("fault "+fault, " ", "-"), func(t *testing.T) {
			t.Parallel()
			p, h := plant(t, external.KindAutomator, fault, t.TempDir()), host(t)
			do := func(what string) func(*loom.TaskSpec) {
				return func(s *loom.TaskSpec) {
					service := *s.Service
					service.Action.Fields = map[string]string{"do": what}
					s.Service = &service
				}
			}
			f := &findings{}
			conformance.Automator(t.Context(), f, conformance.AutomatorTarget{
				Automator: h.Automator(p, "mutant"), Spec: serviceSpec, Actions: []loom.TaskAction{loom.ActionStart, loom.ActionStop},
				Broken: do("fail"), Slow: do("wait"), Secrets: []string{rightToken},
			})
			conformance.External(t.Context(), f, conformance.ExternalTarget{
				Host: h, Plugin: p, Type: "mutant", Spec: func(int) *loom.TaskSpec { return serviceSpec("") }, Slow: do("wait"), Secrets: []string{rightToken},
			})
			if fault == "" && len(f.found)+len(f.skipped) > 0 {
				t.Errorf("found %q, skipped %q", f.found, f.skipped)
			}
			if fault != "" && !f.has(says) {
				t.Errorf("not found; what was found: %q", f.found)
			}
		})
	}
}
