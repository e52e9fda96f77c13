package loom

import (
	"math/rand/v2"
	"testing"
	"time"
)

// soundFacts are those of an incident that may be repaired.
func soundFacts(kind IncidentKind) RepairFacts {
	now := time.Unix(2_000_000, 0)
	state := map[IncidentKind]MachineState{IncidentService: StateRunning, IncidentStopped: StateStopped, IncidentGone: StateMissing, IncidentUnreachable: StateRunning}[kind]
	return RepairFacts{
		Kind: kind, Policy: RepairPolicy{RepairDo, RepairDo, RepairDo}, Now: now, Listed: Listed{State: state, At: now.Add(-10 * time.Second), MissingSince: now.Add(-2 * time.Minute)},
		Nodes: 10, Bad: 1, ProviderNodes: 100, ProviderIncidents: 1, Gap: now.Add(-time.Hour), Seen: now.Add(-time.Second), Idle: true, MaxTenantRepairs: 20,
	}
}

// TestDecideRepair: each brake holds a repair by itself, up to its limit.
func TestDecideRepair(t *testing.T) {
	t.Parallel()
	now := soundFacts(IncidentService).Now
	for _, c := range []struct {
		name   string
		kind   IncidentKind
		change func(f *RepairFacts)
		want   RepairDecision
		how    RepairHow
		reason string
	}{
		{"a service", IncidentService, nil, RepairBegun, RepairByRestart, ""},
		{"a stopped machine", IncidentStopped, nil, RepairBegun, RepairByReboot, ""},
		{"a machine that is gone", IncidentGone, nil, RepairBegun, RepairByReplacement, ""},
		{"a machine that does not answer", IncidentUnreachable, nil, RepairAsked, RepairByReboot, ""},
		{"a full disk", IncidentDisk, nil, "", "", ""},
		{"a refused sign-in", IncidentSignIn, nil, "", "", ""},
		{"no policy", IncidentGone, func(f *RepairFacts) { f.Policy = RepairPolicy{} }, RepairAsked, RepairByReplacement, ""},
		{"only told", IncidentUnreachable, func(f *RepairFacts) { f.Policy.Stopped = RepairTell }, "", RepairByReboot, ""},

		{"off", IncidentService, func(f *RepairFacts) { f.Off = true }, RepairHeld, RepairByRestart, "automatic repairs are off"},
		{"paused", IncidentService, func(f *RepairFacts) { f.Paused = true }, RepairHeld, RepairByRestart, "the tenant is paused"},
		{"busy", IncidentService, func(f *RepairFacts) { f.Idle = false }, RepairHeld, RepairByRestart, "the cluster is busy or not active"},
		{"ends soon", IncidentService, func(f *RepairFacts) { f.Ends = now.Add(59 * time.Minute) }, RepairHeld, RepairByRestart, "the cluster ends within an hour"},
		{"ends later", IncidentService, func(f *RepairFacts) { f.Ends = now.Add(time.Hour) }, RepairBegun, RepairByRestart, ""},
		{"doubt", IncidentService, func(f *RepairFacts) { f.Doubt = true }, RepairHeld, RepairByRestart, "many machines do not answer, so Loom doubts what it sees"},
		{"before the gap", IncidentService, func(f *RepairFacts) { f.Gap = f.Seen }, RepairHeld, RepairByRestart, "the last check is older than the last outage of Loom"},
		{"two of ten", IncidentService, func(f *RepairFacts) { f.Bad = 2 }, RepairBegun, RepairByRestart, ""},
		{"three of ten", IncidentService, func(f *RepairFacts) { f.Bad = 3 }, RepairHeld, RepairByRestart, "too many nodes of the cluster are bad"},
		{"one of one", IncidentService, func(f *RepairFacts) { f.Nodes = 1 }, RepairBegun, RepairByRestart, ""},
		{"two of four", IncidentService, func(f *RepairFacts) { f.Nodes, f.Bad = 4, 2 }, RepairHeld, RepairByRestart, "too many nodes of the cluster are bad"},
		{"five at the provider", IncidentService, func(f *RepairFacts) { f.ProviderIncidents = 5 }, RepairBegun, RepairByRestart, ""},
		{"six at the provider", IncidentService, func(f *RepairFacts) { f.ProviderIncidents = 6 }, RepairHeld, RepairByRestart, "too much goes wrong at the provider"},
		{"never passed", IncidentService, func(f *RepairFacts) { f.NeverPassed = true }, RepairHeld, RepairByRestart, "the check has not passed since the service changed"},
		{"never passed, stopped", IncidentStopped, func(f *RepairFacts) { f.NeverPassed = true }, RepairBegun, RepairByReboot, ""},
		{"runs again", IncidentStopped, func(f *RepairFacts) { f.Listed.State = StateRunning }, RepairHeld, RepairByReboot, "the provider says that the machine runs, or cannot say"},
		{"is there again", IncidentGone, func(f *RepairFacts) { f.Listed.State = StateOther }, RepairHeld, RepairByReplacement, "the provider says that the machine runs, or cannot say"},
		{"an old list", IncidentGone, func(f *RepairFacts) { f.Listed.At = now.Add(-61 * time.Second) }, RepairHeld, RepairByReplacement, "the provider's list is too old"},
		{"an old list, stopped", IncidentStopped, func(f *RepairFacts) { f.Listed.At = now.Add(-61 * time.Second) }, RepairHeld, RepairByReboot, "the provider's list is too old"},
		{"protected", IncidentGone, func(f *RepairFacts) { f.Protected = true }, RepairHeld, RepairByReplacement, "the cluster is protected"},
		{"protected, a service", IncidentService, func(f *RepairFacts) { f.Protected = true }, RepairBegun, RepairByRestart, ""},
		{"kept", IncidentGone, func(f *RepairFacts) { f.Kept = true }, RepairHeld, RepairByReplacement, "a service on the node may not shrink"},
		{"again", IncidentStopped, func(f *RepairFacts) { f.Repeated = true }, RepairHeld, RepairByReboot, "the same went wrong within a day of its repair"},
		{"failed before", IncidentStopped, func(f *RepairFacts) { f.Failed = true }, RepairHeld, RepairByReboot, "the last repair in the cluster failed"},
		{"the second repair", IncidentStopped, func(f *RepairFacts) { f.Repairs = 1 }, RepairBegun, RepairByReboot, ""},
		{"the third repair", IncidentStopped, func(f *RepairFacts) { f.Repairs = 2 }, RepairHeld, RepairByReboot, "the node was repaired twice in a day"},
		{"the second replacement", IncidentGone, func(f *RepairFacts) { f.Repairs, f.Replacements = 1, 1 }, RepairHeld, RepairByReplacement, "the machine was replaced within a day"},
		{"the third of the cluster", IncidentGone, func(f *RepairFacts) { f.ClusterReplacements = 2 }, RepairHeld, RepairByReplacement, "too many machines of the cluster were replaced in a day"},
		{"the third of a large one", IncidentGone, func(f *RepairFacts) { f.Nodes, f.ClusterReplacements = 30, 2 }, RepairBegun, RepairByReplacement, ""},
		{"the tenant's last", IncidentService, func(f *RepairFacts) { f.TenantRepairs = 19 }, RepairBegun, RepairByRestart, ""},
		{"none left", IncidentService, func(f *RepairFacts) { f.TenantRepairs = 20 }, RepairHeld, RepairByRestart, "the tenant had all its repairs of a day"},
	} {
		f := soundFacts(c.kind)
		if c.change != nil {
			c.change(&f)
		}
		if decision, how, reason := DecideRepair(f); decision != c.want || how != c.how || reason != c.reason {
			t.Errorf("%s: %q by %q, %q; want %q by %q, %q", c.name, decision, how, reason, c.want, c.how, c.reason)
		}
	}
}

// FuzzDecideRepair: whatever the facts, a repair that begins breaks no rule, and a machine
// that its provider lists as running is neither rebooted nor replaced.
func FuzzDecideRepair(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		random := rand.New(rand.NewPCG(a, b))
		for range 200 {
			coin := func() bool { return random.IntN(6) == 0 }
			pick := func(of ...RepairChoice) RepairChoice { return of[random.IntN(len(of))] }
			states := []MachineState{"", StateRunning, StateStopped, StateOther, StateMissing}
			now := time.Unix(2_000_000, 0)
			ago := func(most int) time.Time { return now.Add(-time.Duration(random.IntN(most)) * time.Second) }
			f := RepairFacts{
				Kind: IncidentKinds[random.IntN(len(IncidentKinds))], Policy: RepairPolicy{pick("", RepairTell, RepairAsk, RepairDo), pick(RepairDo, RepairAsk), pick(RepairDo, "")},
				Listed: Listed{State: states[random.IntN(len(states))], At: ago(90)}, Now: now, Nodes: 1 + random.IntN(40), Bad: 1 + random.IntN(4), ProviderNodes: random.IntN(200), ProviderIncidents: random.IntN(6),
				Doubt: coin(), Unknown: coin(), Gap: ago(100), Seen: ago(60), NeverPassed: coin(), Idle: !coin(), Paused: coin(), Off: coin(), Protected: coin(), Kept: coin(),
				Repairs: random.IntN(3), Replacements: random.IntN(2), ClusterReplacements: random.IntN(4), TenantRepairs: random.IntN(22), MaxTenantRepairs: 20, Repeated: coin(), Failed: coin(),
			}
			decision, how, reason := DecideRepair(f)
			if (decision == RepairHeld) != (reason != "") {
				t.Fatalf("%+v: %q, %q", f, decision, reason)
			}
			if decision != RepairBegun {
				continue
			}
			switch how {
			case RepairByReboot:
				if f.Listed.State != StateStopped || now.Sub(f.Listed.At) > time.Minute {
					t.Fatalf("rebooted: %+v", f)
				}
			case RepairByReplacement:
				if f.Listed.State != StateMissing || now.Sub(f.Listed.At) > time.Minute || f.Protected || f.Kept || f.Replacements > 0 {
					t.Fatalf("replaced: %+v", f)
				}
			case RepairByRestart:
				if f.NeverPassed {
					t.Fatalf("restarted: %+v", f)
				}
			default:
				t.Fatalf("%q: %+v", how, f)
			}
			if f.Off || f.Paused || !f.Idle || f.Doubt || f.Unknown || f.Repeated || f.Failed || !f.Seen.After(f.Gap) || f.Repairs > 1 || f.TenantRepairs > 19 || f.Bad*5 > max(5, f.Nodes) || f.ProviderIncidents*20 > max(40, f.ProviderNodes) {
				t.Fatalf("began: %+v", f)
			}
		}
	})
}
