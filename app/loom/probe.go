package loom

import "time"

// What an answer to a probe may hold; more comes from a provider that cannot be trusted, and
// is left out.
const (
	MaxProbeChecks  = 12
	MaxProbeMessage = 500  // characters
	MaxProbeName    = 60   // characters, of a check
	MaxProbeOffers  = 2000 // sizes, and images
	MaxProbeFields  = 20   // fields with choices
	MaxProbeChoices = 300  // of one field
	MaxProbeID      = 1000 // bytes, of what is offered
)

// ProbeLimit is how long a provider may take to be probed; whoever asked waits.
const ProbeLimit = 20 * time.Second

// Probe is what asking a provider gave: whether it can be used, and what it offers.
type Probe struct {
	// Time is when the answer was stored, by the database clock.
	Time time.Time
	// OK says that every check passed.
	OK bool
	// Checks are the steps of the probe, in their order.
	Checks  []ProbeCheck
	Flavors []ProbeFlavor
	Images  []ProbeImage
	// Choices are what fields of the provider can be set to, by the field's name.
	Choices map[string][]ProbeChoice

	told  func(ProbeCheck)
	since time.Time
}

// ProbeCheck is one thing that was looked at. Message is a sentence for people:
// what was found, and the remedy where it is wrong. It holds no secrets.
type ProbeCheck struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message" description:"The result, and the remedy for a failure."`
	// Millis is how long it took.
	Millis int64 `json:"ms" description:"How long it took."`
}

// ProbeChoice is a value that a field of the provider can be set to.
type ProbeChoice struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ProbeFlavor is a size that the provider offers: ID is what a hardware type
// names as its flavor. VCPU and RAM (in MB) are 0 where unknown.
type ProbeFlavor struct {
	ID   string `json:"id" description:"What a hardware type names as its flavor."`
	Name string `json:"name"`
	VCPU int    `json:"vcpu,omitempty"`
	RAM  int    `json:"ram,omitempty" description:"In MB."`
}

// ProbeImage is an image that the provider offers: ID is what an image type names.
type ProbeImage struct {
	ID   string `json:"id" description:"What an image type names as its image."`
	Name string `json:"name"`
}

// NewProbe begins a probe that passes as long as its checks do. Each check is told as
// it ends, unless told is nil.
func NewProbe(told func(ProbeCheck)) Probe {
	return Probe{OK: true, told: told, since: time.Now()}
}

// Check adds the result for one thing, which took the time since the check before,
// and keeps OK true to all of them; a probe begins with OK true.
func (p *Probe) Check(name string, ok bool, message string) {
	now, check := time.Now(), ProbeCheck{Name: name, OK: ok, Message: message}
	if !p.since.IsZero() {
		check.Millis = now.Sub(p.since).Milliseconds()
		p.since = now
	}
	p.Checks = append(p.Checks, check)
	p.OK = p.OK && ok
	if p.told != nil {
		p.told(check)
	}
}

// Offer adds a value that a field can be set to.
func (p *Probe) Offer(field, id, name string) {
	if p.Choices == nil {
		p.Choices = map[string][]ProbeChoice{}
	}
	p.Choices[field] = append(p.Choices[field], ProbeChoice{ID: id, Name: name})
}

// Failed gives the first check that failed; ok is false when there is none.
func (p Probe) Failed() (check ProbeCheck, ok bool) {
	for _, c := range p.Checks {
		if !c.OK {
			return c, true
		}
	}
	return ProbeCheck{}, false
}

// FailedProbe is the answer of a provider that could not even be asked.
func FailedProbe(name, message string) Probe {
	var p Probe
	p.Check(name, false, message)
	return p
}

// OfferKind is what a provider offers.
type OfferKind string

// The kinds of what providers offer.
const (
	OfferFlavor OfferKind = "flavor"
	OfferImage  OfferKind = "image"
)

// Noun is the word of the kind for people.
func (k OfferKind) Noun() string {
	if k == OfferFlavor {
		return "size"
	}
	return string(k)
}

// Offer names a size or an image as hardware and image types do.
type Offer struct {
	Kind OfferKind `json:"kind"`
	ID   string    `json:"id"`
}

// ProviderDraft is a provider as saving it would make it, with the secrets that its tasks
// would get. Like a ProviderCall it lives in memory only.
type ProviderDraft struct {
	// Provider has no name while none was given.
	Provider Provider
	// Secrets are the sensitive fields: those that were given, and stored ones that were kept.
	Secrets map[string]Secret
	// Digest is a keyed one of all that but the name: who saves the same saves what was tested.
	Digest []byte
}

// ProviderCall is everything needed to ask a provider something outside of any
// task. Like a TaskSpec it lives in memory only and holds secrets.
type ProviderCall struct {
	Tenant TenantID
	// Provider is the newest version in the tenant's catalog; its Fields are
	// overlaid by the revealed sensitive ones.
	Provider Provider
	// ResourceSet is the number of the tenant's synced set of plugin resources.
	ResourceSet int
	// Ask is the one size or image that a probe is about; of no kind, it is about the
	// provider as a whole.
	Ask Offer
	// Told, unless nil, is told of each check of a probe as it ends.
	Told func(ProbeCheck)
	// Sensitive are texts that must not appear in messages.
	Sensitive []string
	// Facts are what earlier tasks learned of the node whose machine is to be removed,
	// PrivateKey is the key of its cluster; both empty where they are not known any more.
	Facts      map[string]any
	PrivateKey Secret
	// Reach says what may be connected to, as that of a TaskSpec.
	Reach Reach
}
