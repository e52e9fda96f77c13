package loom

import (
	"slices"
	"time"
)

// RepairChoice is what Loom may do by itself about an incident.
type RepairChoice string

// The choices. RepairTell shows the incident, RepairAsk also asks whether to repair it, and
// RepairDo repairs it unless something speaks against that.
const (
	RepairTell RepairChoice = "tell"
	RepairAsk  RepairChoice = "ask"
	RepairDo   RepairChoice = "do"
)

// RepairChoices are all of them.
var RepairChoices = []RepairChoice{RepairTell, RepairAsk, RepairDo}

// RepairPolicy says what Loom may do by itself, by kind of incident. "" counts as RepairAsk.
type RepairPolicy struct {
	Service RepairChoice `json:"service,omitempty" enum:"tell,ask,do" label:"When a service fails" help:"The repair is a restart."`
	Stopped RepairChoice `json:"stopped,omitempty" enum:"tell,ask,do" label:"When a machine is stopped" help:"The repair is to start it."`
	Gone    RepairChoice `json:"gone,omitempty" enum:"tell,ask,do" label:"When a machine is gone" help:"The repair is another machine in its place."`
}

// RepairPart is a choice of a policy with the name of its field.
type RepairPart struct {
	Name   string
	Choice *RepairChoice
}

// Parts returns the choices of a policy, in the order in which pages show them.
func (p *RepairPolicy) Parts() []RepairPart {
	return []RepairPart{{"service", &p.Service}, {"stopped", &p.Stopped}, {"gone", &p.Gone}}
}

// Validate returns an error for each choice that is none, its field below the one named.
func (p RepairPolicy) Validate(field string) []FieldError {
	var errs []FieldError
	for _, part := range p.Parts() {
		if *part.Choice != "" && !slices.Contains(RepairChoices, *part.Choice) {
			errs = append(errs, FieldError{field + "." + part.Name, "Choose “tell”, “ask” or “do”."})
		}
	}
	return errs
}

// Over returns the policy of a cluster: its own choices, and those of its template where it
// makes none.
func (p RepairPolicy) Over(template RepairPolicy) RepairPolicy {
	of := template.Parts()
	for i, part := range p.Parts() {
		if *part.Choice == "" {
			*part.Choice = *of[i].Choice
		}
	}
	return p
}

// Effective returns the policy with each choice made: to ask, where nobody made one.
func (p RepairPolicy) Effective() RepairPolicy {
	return p.Over(RepairPolicy{RepairAsk, RepairAsk, RepairAsk})
}

// Exceeds reports whether it lets Loom repair by itself what the other one does not.
func (p RepairPolicy) Exceeds(other RepairPolicy) bool {
	of := other.Parts()
	for i, part := range p.Parts() {
		if *part.Choice == RepairDo && *of[i].Choice != RepairDo {
			return true
		}
	}
	return false
}

// For returns what the policy says about a kind of incident, and the repair that suits it.
// What suits no repair is only told; of a machine that does not answer and is not listed as
// stopped or gone, Loom asks at most.
func (p RepairPolicy) For(kind IncidentKind) (RepairChoice, RepairHow) {
	choose := func(c RepairChoice) RepairChoice {
		if c == "" {
			return RepairAsk
		}
		return c
	}
	how := kind.Repair()
	switch kind {
	case IncidentService:
		return choose(p.Service), how
	case IncidentStopped:
		return choose(p.Stopped), how
	case IncidentGone:
		return choose(p.Gone), how
	case IncidentUnreachable:
		if choose(p.Stopped) == RepairTell {
			return RepairTell, how
		}
		return RepairAsk, how
	case IncidentDisk, IncidentSignIn, IncidentDrift:
	}
	return RepairTell, how
}

// Repair returns the repair that suits an incident of the kind, "" where none does.
func (k IncidentKind) Repair() RepairHow {
	switch k {
	case IncidentService:
		return RepairByRestart
	case IncidentStopped, IncidentUnreachable:
		return RepairByReboot
	case IncidentGone:
		return RepairByReplacement
	case IncidentDisk, IncidentSignIn, IncidentDrift:
	}
	return ""
}

// RepairDecision is what becomes of an incident.
type RepairDecision string

// The decisions; "" is nothing, for an incident that is only told. Loom asks, holds (it would
// repair, and asks with the reason) or begins; a person accepts or declines.
const (
	RepairAsked    RepairDecision = "asked"
	RepairHeld     RepairDecision = "held"
	RepairBegun    RepairDecision = "begun"
	RepairAccepted RepairDecision = "accepted"
	RepairDeclined RepairDecision = "declined"
)

// RepairDecisions are all of them.
var RepairDecisions = []RepairDecision{RepairAsked, RepairHeld, RepairBegun, RepairAccepted, RepairDeclined}

// Repair is a repair of one node that an incident calls for.
type Repair struct {
	Cluster ClusterID
	Node    NodeID
	How     RepairHow
	// Service is the one to restart, "" for a machine.
	Service string
}

// Limits of what Loom repairs by itself.
const (
	// NodeRepairsADay and NodeReplacementsADay are those of one node.
	NodeRepairsADay      = 2
	NodeReplacementsADay = 1
	// FreshList is how old a list may be that says that a machine is stopped or gone.
	FreshList = time.Minute
	// EndsSoon is how near the end of a lease may be.
	EndsSoon = time.Hour
)

// RepairFacts is what deciding about an incident needs to know. Counts of repairs are those
// that Loom began by itself in the last 24 hours.
type RepairFacts struct {
	Kind   IncidentKind
	Policy RepairPolicy
	// Listed is the provider's word about the machine, Now the time by the same clock.
	Listed Listed
	Now    time.Time

	// Nodes are those of the cluster, Bad those of them that are bad or unknown now. Unknown says
	// that this one is.
	Nodes, Bad int
	Unknown    bool
	// ProviderNodes are the nodes at the provider, ProviderIncidents those among them of which
	// an incident began in the last ten minutes.
	ProviderNodes, ProviderIncidents int
	// Doubt says that a provisioner is in doubt or a list of the provider is not believed.
	Doubt bool
	// Gap is when the scheduler or the database was last away for more than a minute; Seen
	// when the newest evidence was seen.
	Gap, Seen time.Time
	// NeverPassed says that the check has not passed since the service or its check changed.
	NeverPassed bool

	// Idle says that the cluster is active and no operation is at work or waits; Ends when
	// its lease ends or a delete is due, zero for never; Paused that its tenant is.
	Idle, Paused bool
	Ends         time.Time
	// Off says that automatic repairs are off, in the tenant or everywhere.
	Off bool
	// Protected says that the cluster is protected, Kept that a service on the node may not
	// shrink.
	Protected, Kept bool

	// Repairs and Replacements are those of the node, ClusterReplacements those of the
	// cluster, and TenantRepairs those of the tenant, which may have MaxTenantRepairs.
	Repairs, Replacements, ClusterReplacements, TenantRepairs, MaxTenantRepairs int
	// Repeated says that the same went wrong within 24 hours of its repair; Failed that the last
	// repair that Loom began in the cluster failed, and no operation has succeeded since.
	Repeated, Failed bool
}

// HeldByOldList is the reason of a repair that nothing else holds: another list of the provider
// decides about it.
const HeldByOldList = "the provider's list is too old"

// repairBrakes are the rules that hold a repair, with the reason that people read. A repair
// begins only if none of them holds it.
var repairBrakes = []struct {
	reason string
	holds  func(f *RepairFacts, how RepairHow) bool
}{
	{"automatic repairs are off", func(f *RepairFacts, _ RepairHow) bool { return f.Off }},
	{"the tenant is paused", func(f *RepairFacts, _ RepairHow) bool { return f.Paused }},
	{"the cluster is busy or not active", func(f *RepairFacts, _ RepairHow) bool { return !f.Idle }},
	{"the cluster ends within an hour", func(f *RepairFacts, _ RepairHow) bool { return !f.Ends.IsZero() && f.Ends.Sub(f.Now) < EndsSoon }},
	{"many machines do not answer, so Loom doubts what it sees", func(f *RepairFacts, _ RepairHow) bool { return f.Doubt }},
	{"the last check is older than the last outage of Loom", func(f *RepairFacts, _ RepairHow) bool { return !f.Seen.After(f.Gap) }},
	{"nobody has looked at the node for too long", func(f *RepairFacts, _ RepairHow) bool { return f.Unknown }},
	{"too many nodes of the cluster are bad", func(f *RepairFacts, _ RepairHow) bool { return f.Bad > max(1, f.Nodes/5) }},
	{"too much goes wrong at the provider", func(f *RepairFacts, _ RepairHow) bool { return f.ProviderIncidents > max(2, f.ProviderNodes/20) }},
	{"the check has not passed since the service changed", func(f *RepairFacts, how RepairHow) bool {
		return how == RepairByRestart && f.NeverPassed
	}},
	{"the provider says that the machine runs, or cannot say", func(f *RepairFacts, how RepairHow) bool {
		return how == RepairByReboot && f.Listed.State != StateStopped || how == RepairByReplacement && f.Listed.State != StateMissing
	}},
	{"the cluster is protected", func(f *RepairFacts, how RepairHow) bool { return how == RepairByReplacement && f.Protected }},
	{"a service on the node may not shrink", func(f *RepairFacts, how RepairHow) bool { return how == RepairByReplacement && f.Kept }},
	{"the same went wrong within a day of its repair", func(f *RepairFacts, _ RepairHow) bool { return f.Repeated }},
	{"the last repair in the cluster failed", func(f *RepairFacts, _ RepairHow) bool { return f.Failed }},
	{"the node was repaired twice in a day", func(f *RepairFacts, _ RepairHow) bool { return f.Repairs >= NodeRepairsADay }},
	{"the machine was replaced within a day", func(f *RepairFacts, how RepairHow) bool {
		return how == RepairByReplacement && f.Replacements >= NodeReplacementsADay
	}},
	{"too many machines of the cluster were replaced in a day", func(f *RepairFacts, how RepairHow) bool {
		return how == RepairByReplacement && f.ClusterReplacements >= max(2, f.Nodes/10)
	}},
	{"the tenant had all its repairs of a day", func(f *RepairFacts, _ RepairHow) bool { return f.TenantRepairs >= f.MaxTenantRepairs }},
	{HeldByOldList, func(f *RepairFacts, how RepairHow) bool {
		return how != RepairByRestart && f.Now.Sub(f.Listed.At) > FreshList
	}},
}

// DecideRepair says what becomes of an incident, how it would be repaired, and why a repair
// is held.
func DecideRepair(f RepairFacts) (decision RepairDecision, how RepairHow, reason string) {
	choice, how := f.Policy.For(f.Kind)
	switch choice {
	case RepairTell:
		return "", how, ""
	case RepairAsk:
		return RepairAsked, how, ""
	case RepairDo:
	}
	for _, brake := range repairBrakes {
		if brake.holds(&f, how) {
			return RepairHeld, how, brake.reason
		}
	}
	return RepairBegun, how, ""
}
