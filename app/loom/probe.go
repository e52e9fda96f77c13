package loom

import "time"

// Probe is what asking a provider gave: whether it can be used, and the sizes
// and images it knows.
type Probe struct {
	// Time is when the answer was stored, by the database clock.
	Time time.Time
	// OK says that every check passed.
	OK      bool
	Checks  []ProbeCheck
	Flavors []ProbeFlavor
	Images  []ProbeImage
}

// ProbeCheck is one thing that was looked at. Message is a sentence for people:
// what was found, and the remedy where it is wrong. It holds no secrets.
type ProbeCheck struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

// ProbeFlavor is a size that the provider offers: ID is what a hardware type
// names as its flavor. VCPU and RAM (in MB) are 0 where unknown.
type ProbeFlavor struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	VCPU int    `json:"vcpu,omitempty"`
	RAM  int    `json:"ram,omitempty"`
}

// ProbeImage is an image that the provider offers: ID is what an image type names.
type ProbeImage struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Check adds what was found about one thing and keeps OK true to all of them; a
// probe begins with OK true.
func (p *Probe) Check(name string, ok bool, message string) {
	p.Checks = append(p.Checks, ProbeCheck{Name: name, OK: ok, Message: message})
	p.OK = p.OK && ok
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
	// Sensitive are texts that must not appear in messages.
	Sensitive []string
	// Facts are what earlier tasks learned of the node whose machine is to be removed,
	// PrivateKey is the key of its cluster; both empty where they are not known any more.
	Facts      map[string]any
	PrivateKey Secret
	// Reach says what may be connected to, as that of a TaskSpec.
	Reach Reach
}
