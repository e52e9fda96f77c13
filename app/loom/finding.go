package loom

// FindingSeverity says whether a Finding stops a use.
type FindingSeverity string

// The severities: an error stops a use of the entry, a warning is about what is
// merely without effect.
const (
	FindingError   FindingSeverity = "error"
	FindingWarning FindingSeverity = "warning"
)

// FindingSeverities lists both, the graver first.
var FindingSeverities = []FindingSeverity{FindingError, FindingWarning}

// FindingCode is the rule behind a Finding.
type FindingCode string

// The closed set of codes.
const (
	FindingDangling   FindingCode = "dangling"   // a name of nothing: of no entry, or of no resource of a plugin
	FindingCycle      FindingCode = "cycle"      // dependencies of services, or templates that extend each other
	FindingUnsolvable FindingCode = "unsolvable" // a template's defaults at its smallest size, or a service that no cluster can have
	FindingMacro      FindingCode = "macro"      // wrong syntax in config or link, or a service that cannot be there
	FindingParameter  FindingCode = "parameter"  // a value in a template that its services do not take
	FindingNoMapping  FindingCode = "no_mapping" // a type that fits no provider
	FindingIncomplete FindingCode = "incomplete" // a provider or an action without a full required set, or with a value that its plugin does not take
	FindingImmutable  FindingCode = "immutable"  // a config key that a partial template keeps to itself
	FindingPointless  FindingCode = "pointless"  // what can mean nothing sensible, or is without effect
	FindingInsecure   FindingCode = "insecure"   // a provider whose server's certificate is not checked
	FindingUnchecked  FindingCode = "unchecked"  // services whose trouble nobody would notice, one finding for all
	FindingMore       FindingCode = "more"       // there are more findings than are given
)

// Finding is something in a catalog that would not work. It never keeps an entry
// from being stored, for entries may come in any order.
type Finding struct {
	Severity FindingSeverity
	Code     FindingCode
	Kind     EntityKind
	Name     string
	Version  int
	// Field is the JSON pointer (RFC 6901) of the value in the entry.
	Field string
	// Value is what is wrong there, as a text; "" where nothing is there.
	Value string
	// Message says what is wrong, Remedy what helps, in sentences.
	Message, Remedy string
}
