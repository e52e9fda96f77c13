package loom

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Unlimited is how "no maximum" is written on the wire.
const Unlimited = math.MaxInt32

// Template describes a kind of cluster: what may be in it, what must hold and
// what it is when nothing else is said.
type Template struct {
	Base
	Defaults       Defaults       `json:"defaults" own:"form page"`
	Compatibility  Compatibility  `json:"compatibility" own:"form page"`
	Constraints    Constraints    `json:"constraints" own:"form page"`
	Administration Administration `json:"administration" own:"form page"`
	Preferences    *Preferences   `json:"preferences,omitempty" own:"form page"`
	Links          []Link         `json:"links" own:"form page" new:""`
	Extends        *NameRef       `json:"extends,omitempty" names:"clustertemplates,stops" own:"form page"`
	Includes       []NameRef      `json:"includes,omitempty" names:"partialtemplates,stops" own:"form page"`
	// Locked is known of a merged template only.
	Locked []string `json:"locked,omitempty" decode:"-" description:"Keys of the default config that immutable partial templates set." own:"form page"`
}

// PartialTemplate is a part that templates include. Immutable protects its
// top-level keys of defaults.config against later parts.
type PartialTemplate struct {
	Base
	Defaults       Defaults       `json:"defaults" own:"form page" new:"{\"services\":[],\"config\":{}}"`
	Compatibility  Compatibility  `json:"compatibility" own:"form page" new:"-"`
	Constraints    Constraints    `json:"constraints" own:"form page" new:"-"`
	Administration Administration `json:"administration" own:"form page" new:"-"`
	Links          []Link         `json:"links" own:"form page" new:"-"`
	Immutable      bool           `json:"immutable" new:"" own:"form page"`
}

// NameRef points to another template by name; there is no version pinning.
type NameRef struct {
	Name string `json:"name" required:"true"`
}

// Defaults are the values of a request that says nothing.
type Defaults struct {
	Services     []string       `json:"services" decode:"own" schema:"{\"type\":\"array\",\"items\":{}}" names:"services,stops" new:""`
	Provider     string         `json:"provider,omitempty" names:"providers,stops" new:"local"`
	HardwareType string         `json:"hardwaretype,omitempty" names:"hardwaretypes,stops" new:""`
	ImageType    string         `json:"imagetype,omitempty" names:"imagetypes,stops" new:""`
	DNSSuffix    string         `json:"dnsSuffix,omitempty"`
	Config       map[string]any `json:"config" new:""`
}

// Compatibility limits what may be used; an empty list allows everything.
type Compatibility struct {
	HardwareTypes []string `json:"hardwaretypes" names:"hardwaretypes" new:""`
	ImageTypes    []string `json:"imagetypes" names:"imagetypes" new:""`
	Services      []string `json:"services" names:"services" new:""`
}

// Constraints must hold for every layout made from the template.
type Constraints struct {
	Layout   LayoutConstraints            `json:"layout"`
	Services map[string]ServiceConstraint `json:"services" keynames:"services" new:""`
	Size     SizeConstraint               `json:"size"`
}

// LayoutConstraints are sets of services that must, or cannot, share a node.
type LayoutConstraints struct {
	MustCoexist [][]string `json:"mustcoexist" names:"services" new:""`
	CantCoexist [][]string `json:"cantcoexist" names:"services" new:""`
}

// SizeConstraint bounds the number of machines; a zero Min counts as 1, a zero
// Max as Unlimited.
type SizeConstraint struct {
	Min int `json:"min" decode:"own" new:"1"`
	Max int `json:"max" decode:"own" new:"10"`
}

// Bounds gives the effective bounds.
func (s SizeConstraint) Bounds() (low, high int) {
	low, high = s.Min, s.Max
	if low == 0 {
		low = 1
	}
	if high == 0 {
		high = Unlimited
	}
	return low, high
}

// ServiceConstraint limits where and how often a service is placed.
type ServiceConstraint struct {
	HardwareTypes []string    `json:"hardwaretypes" names:"hardwaretypes"`
	ImageTypes    []string    `json:"imagetypes" names:"imagetypes"`
	Quantities    *Quantities `json:"quantities,omitempty"`
}

// Quantities bounds the number of nodes that have the service. Nil means not
// given: Min is then 1 (an explicit 0 stays 0), Max unlimited.
type Quantities struct {
	Min *int `json:"min,omitempty"`
	Max *int `json:"max,omitempty"`
}

// Preferences order types explicitly; unlisted ones follow by name.
type Preferences struct {
	HardwareTypes []string `json:"hardwaretypes" names:"hardwaretypes"`
	ImageTypes    []string `json:"imagetypes" names:"imagetypes"`
}

// Administration holds the lease and what a failure does.
type Administration struct {
	Lease LeaseRule `json:"leaseduration"`
	// OnFailure is "", OnFailureKeep or OnFailureUndo; "" counts as keep.
	OnFailure string `json:"onFailure,omitempty" enum:"keep,undo"`
	// Health says how nodes are checked; empty counts as usual.
	Health HealthRule `json:"health,omitzero"`
	// Repair says what Loom may repair by itself.
	Repair RepairPolicy `json:"repair,omitzero"`
}

// HealthRule says how the nodes of a cluster are checked.
type HealthRule struct {
	// Interval is in seconds; 0 turns checks off, nil leaves it to the services.
	Interval *int `json:"interval,omitempty" label:"Seconds between checks" help:"At least this many seconds between two checks of a node, 15 to 3600; 0 turns checks off. Empty: as the services of the node say."`
}

// LeaseRule is in milliseconds; 0 means unlimited (initial), no maximum, no
// step limit.
type LeaseRule struct {
	Initial int64 `json:"initial" decode:"own" description:"Milliseconds, or text such as 8h; 0 for no limit." schema:"{\"type\":[\"integer\",\"string\"]}" new:"" label:"Initial" help:"A new cluster gets this much, unless its maker asks for less."`
	Max     int64 `json:"max" decode:"own" description:"Milliseconds, or text such as 8h; 0 for no limit." schema:"{\"type\":[\"integer\",\"string\"]}" new:"" label:"Maximum" help:"A cluster lives this long in all; not less than the initial lease."`
	Step    int64 `json:"step" decode:"own" description:"Milliseconds, or text such as 8h; 0 for no limit." schema:"{\"type\":[\"integer\",\"string\"]}" new:"" label:"Step" help:"A lease grows by this much at a time."`
}

// Values of Administration.OnFailure and of a request's onFailure.
const (
	OnFailureKeep = "keep"
	OnFailureUndo = "undo"
)

// Validate checks shape: size bounds, the lease rule, quantities.
func (t *Template) Validate() []FieldError {
	errs := append(t.validate(), checkServices(t.Defaults, t.Compatibility)...)
	errs = append(errs, CheckConfigSize("defaults.config", t.Defaults.Config)...)
	errs = append(errs, t.Constraints.validate()...)
	errs = append(errs, t.Administration.validate()...)
	errs = append(errs, validateLinks(t.Links)...)
	return errs
}

// Validate checks shape.
func (t *PartialTemplate) Validate() []FieldError {
	errs := append(t.validate(), checkServices(t.Defaults, t.Compatibility)...)
	errs = append(errs, CheckConfigSize("defaults.config", t.Defaults.Config)...)
	errs = append(errs, t.Constraints.validate()...)
	errs = append(errs, t.Administration.validate()...)
	errs = append(errs, validateLinks(t.Links)...)
	return errs
}

// MaxTemplateServices is how many services a list of a template names at most.
const MaxTemplateServices = 2000

func checkServices(d Defaults, c Compatibility) []FieldError {
	return append(checkCount("defaults.services", d.Services, MaxTemplateServices), checkCount("compatibility.services", c.Services, MaxTemplateServices)...)
}

func (c Constraints) validate() []FieldError {
	errs := checkCount("constraints.services", sortedKeys(c.Services), MaxTemplateServices)
	if c.Layout.TooLarge() {
		errs = append(errs, FieldError{"constraints.layout", tooLargeLayout})
	}
	low, high := c.Size.Bounds()
	if low < 1 {
		errs = append(errs, FieldError{"constraints.size.min", "A cluster has at least 1 node."})
	}
	if high < low {
		errs = append(errs, FieldError{"constraints.size.max", fmt.Sprintf("The maximum (%d) is below the minimum (%d).", high, low)})
	}
	for _, name := range sortedKeys(c.Services) {
		q := c.Services[name].Quantities
		if q == nil {
			continue
		}
		at := "constraints.services." + name + ".quantities"
		if q.Min != nil && *q.Min < 0 {
			errs = append(errs, FieldError{at + ".min", "A quantity cannot be negative."})
		}
		if q.Max != nil && *q.Max < 0 {
			errs = append(errs, FieldError{at + ".max", "A quantity cannot be negative."})
		}
		if q.Min != nil && q.Max != nil && *q.Min > *q.Max {
			errs = append(errs, FieldError{at + ".max", fmt.Sprintf("The maximum (%d) is below the minimum (%d).", *q.Max, *q.Min)})
		}
	}
	return errs
}

func (a Administration) validate() []FieldError {
	var errs []FieldError
	l := a.Lease
	for _, f := range []struct {
		name  string
		value int64
	}{{"initial", l.Initial}, {"max", l.Max}, {"step", l.Step}} {
		if f.value < 0 {
			errs = append(errs, FieldError{"administration.leaseduration." + f.name, "A duration cannot be negative."})
		}
	}
	if l.Max != 0 && (l.Initial == 0 || l.Initial > l.Max) {
		errs = append(errs, FieldError{"administration.leaseduration.initial", "The initial lease is longer than the maximum; 0 means unlimited."})
	}
	if i := a.Health.Interval; i != nil && *i != 0 && (*i < 15 || *i > 3600) {
		errs = append(errs, FieldError{"administration.health.interval", "A number from 15 to 3600, or 0 for no checks."})
	}
	errs = append(errs, a.Repair.Validate("administration.repair")...)
	switch a.OnFailure {
	case "", OnFailureKeep, OnFailureUndo:
	default:
		errs = append(errs, FieldError{"administration.onFailure", "On failure is “keep” or “undo”."})
	}
	return errs
}

func validateLinks(links []Link) []FieldError {
	var errs []FieldError
	for i, l := range links {
		at := fmt.Sprintf("links[%d].url", i)
		switch scheme := urlScheme(l.URL); {
		case l.URL == "":
			errs = append(errs, FieldError{at, "A link needs a URL."})
		case scheme != "" && !slices.Contains([]string{"http", "https", "mailto"}, strings.ToLower(scheme)):
			errs = append(errs, FieldError{at, fmt.Sprintf("A link of the scheme “%s” is not shown by pages; use http, https or mailto.", scheme)})
		}
	}
	return errs
}

// linkScheme is the form of a URL's scheme (RFC 3986); what holds a macro before
// the first colon is none.
var linkScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
