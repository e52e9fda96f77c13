// Package solver turns a request for a cluster into a layout: how many machines
// of which kind, with which services on each, or into the reasons why there is
// none.
//
// It is pure: no clock, file, network, randomness or order of a map reaches a
// result, so the same input gives the same output everywhere. It must not know
// where catalog entries come from, nor resolve templates. A newcomer's usual
// mistake: thinking of nodes. The search counts kinds of nodes; the number of
// machines enters only as a number.
package solver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"loom/app/loom"
)

// Problem is everything the search needs and nothing else, in a canonical form:
// two requests that mean the same have the same Problem, up to the order of the
// template's layout sets, whose numbers appear in reasons. NewProblem makes it for
// a new cluster, the functions of cluster.go for one that exists.
type Problem struct {
	// Machines is the number asked for.
	Machines int `json:"machines"`
	// Size bounds Machines: the template's size within the server's limit.
	Size loom.SizeRange `json:"size"`
	// HardwareTypes and ImageTypes may be used, preferred ones first.
	HardwareTypes []string `json:"hardwaretypes"`
	ImageTypes    []string `json:"imagetypes"`
	// Services are on the cluster, sorted by name.
	Services []Service `json:"services"`
	// Must and Cant hold the layout sets that have an effect, in the order of
	// the template.
	Must []Set `json:"mustcoexist"`
	Cant []Set `json:"cantcoexist"`
	// Nodes are the machines that exist already and keep what they have; Machines
	// counts them too. The rest is only set where there are any.
	Nodes []Column `json:"nodes,omitempty"`
	// New are the services to add to Nodes, in the order in which they are placed.
	New []string `json:"new,omitempty"`
	// OnlyHardware and OnlyImages are the template's compatibility lists, which
	// Nodes must meet; empty allows any.
	OnlyHardware []string `json:"onlyHardware,omitempty"`
	OnlyImages   []string `json:"onlyImages,omitempty"`
	// Preferred orders pairs of types, also where there are no Nodes.
	Preferred *loom.Preferences `json:"preferred,omitempty"`
}

// Column is a number of equal machines that exist.
type Column struct {
	Count int `json:"count"`
	loom.NodeLayout
}

// Service is a requested service with its own limits.
type Service struct {
	Name string `json:"name"`
	// Min and Max bound the number of nodes. Min is 1 unless the template says
	// otherwise; Max is loom.Unlimited where nothing bounds it.
	Min int `json:"min"`
	Max int `json:"max"`
	// HardwareTypes and ImageTypes are sorted; empty allows any.
	HardwareTypes []string `json:"hardwaretypes,omitempty"`
	ImageTypes    []string `json:"imagetypes,omitempty"`
}

// Set is a layout set. Index is its position in the template's list, Services
// are sorted.
type Set struct {
	Index    int      `json:"index"`
	Services []string `json:"services"`
}

// Hash is the SHA-256 of the canonical JSON, in hex. Logged with a layout, it
// tells whether two of them answer the same question.
func (p Problem) Hash() string {
	b, err := json.Marshal(p)
	if err != nil {
		// Only text, numbers and slices of them: there is nothing to fail.
		panic(fmt.Sprintf("solver: problem is not JSON: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Input is a create request with the catalog it refers to. Empty texts and lists
// of the request count as unset and are taken from the template's defaults.
type Input struct {
	// Template must be resolved: extends and includes are not looked at.
	Template loom.Template
	Provider string
	// Services asked for; none means the template's defaults.
	Services []string
	Machines int
	// HardwareType and ImageType are for the whole cluster; empty, here and in
	// the template's defaults, means any.
	HardwareType string
	ImageType    string
	// Catalog holds every service of the tenant by name.
	Catalog       map[string]loom.Service
	HardwareTypes []loom.HardwareType
	ImageTypes    []loom.ImageType
	// MaxMachines is the server's limit; 0 means none.
	MaxMachines int
	// Providers may be suggested instead; the answer itself does not depend on them.
	Providers []string
}

// withDefaults takes what the request leaves out from the template.
func (in Input) withDefaults() Input {
	d := in.Template.Defaults
	in.Provider = firstSet(in.Provider, d.Provider)
	in.HardwareType = firstSet(in.HardwareType, d.HardwareType)
	in.ImageType = firstSet(in.ImageType, d.ImageType)
	if len(in.Services) == 0 {
		in.Services = d.Services
	}
	in.Services = sortedSet(in.Services)
	return in
}

// problem builds the Problem of an input that has its defaults and passed the
// checks.
func (in Input) problem(hardware, image []string) Problem {
	c := in.Template.Constraints
	p := Problem{
		Machines: in.Machines, Size: in.size(),
		HardwareTypes: hardware, ImageTypes: image,
		Services: []Service{}, Must: []Set{}, Cant: []Set{}, Preferred: in.Template.Preferences,
	}
	for _, name := range in.Services {
		s := Service{Name: name, Min: 1, Max: loom.Unlimited}
		if sc, ok := c.Services[name]; ok {
			if q := sc.Quantities; q != nil && q.Min != nil {
				s.Min = max(*q.Min, 0)
			}
			if q := sc.Quantities; q != nil && q.Max != nil {
				s.Max = min(max(*q.Max, 0), loom.Unlimited)
			}
			s.HardwareTypes = sortedSet(sc.HardwareTypes)
			s.ImageTypes = sortedSet(sc.ImageTypes)
		}
		p.Services = append(p.Services, s)
	}
	present := func(name string) bool { _, ok := slices.BinarySearch(in.Services, name); return ok }
	for i, set := range c.Layout.MustCoexist {
		here := slices.DeleteFunc(sortedSet(set), func(s string) bool { return !present(s) })
		if len(here) > 1 {
			p.Must = append(p.Must, Set{i, here})
		}
	}
	for i, set := range c.Layout.CantCoexist {
		// A set that names an absent service can never be complete; shortening
		// it instead would forbid what it allows.
		names := sortedSet(set)
		if len(names) > 0 && !slices.ContainsFunc(names, func(s string) bool { return !present(s) }) {
			p.Cant = append(p.Cant, Set{i, names})
		}
	}
	return p
}

// size is the range of machines that the template and the server allow.
func (in Input) size() loom.SizeRange {
	low, high := in.Template.Constraints.Size.Bounds()
	if in.MaxMachines > 0 {
		high = min(high, in.MaxMachines)
	}
	return loom.SizeRange{Min: low, Max: high}
}

// ByPreference orders names as the solver tries them: as the preference list says, the
// others after it by name.
func ByPreference(names, preferred []string) []string {
	rank := make(map[string]int, len(preferred))
	for i, n := range preferred {
		if _, ok := rank[n]; !ok {
			rank[n] = i
		}
	}
	place := func(n string) int {
		if r, ok := rank[n]; ok {
			return r
		}
		return len(preferred)
	}
	names = sortedSet(names)
	sort.SliceStable(names, func(i, j int) bool { return place(names[i]) < place(names[j]) })
	return names
}

func firstSet(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// sortedSet is a sorted copy without repetitions; nil for none.
func sortedSet(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
