package loom

// NodeLayout is what one machine is: its types and its sorted services.
type NodeLayout struct {
	HardwareType string   `json:"hardwaretype"`
	ImageType    string   `json:"imagetype"`
	Services     []string `json:"services"`
}

// LayoutGroup is Count machines of the same NodeLayout.
type LayoutGroup struct {
	Count int `json:"count"`
	NodeLayout
}

// Layout is the solver's answer: groups in preference order.
// Node numbers follow this order.
type Layout []LayoutGroup

// Machines is the number of machines of the layout.
func (l Layout) Machines() int {
	n := 0
	for _, g := range l {
		n += g.Count
	}
	return n
}

// Unsat says why there is no layout.
type Unsat struct {
	// Code is the category: "UNSATISFIABLE", "NO_HARDWARETYPE", ...
	Code string
	// Headline is one sentence, "No layout for 2 nodes."
	Headline string
	// Reasons is a minimal set of constraints that clash, each in a sentence.
	Reasons []Reason
	// Sizes is the range of machine counts that would work, nil when none does.
	Sizes *SizeRange
	// Suggestions have each been checked to work.
	Suggestions []Suggestion
}

// Reason is one constraint of a clash. ID names it
// ("quantity(web).max", "must#0", "requires(a,b)", "M").
type Reason struct {
	Code    string `json:"code"`
	ID      string `json:"id"`
	Message string `json:"message"`
}

// SizeRange is inclusive; Max is Unlimited where nothing bounds it.
type SizeRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Suggestion is a change of the request that was solved and works. Exactly the
// set fields change: a zero Machines, empty lists and empty types stay.
type Suggestion struct {
	Label          string   `json:"label"`
	Machines       int      `json:"numMachines,omitempty"`
	AddServices    []string `json:"addServices,omitempty"`
	RemoveServices []string `json:"removeServices,omitempty"`
	HardwareType   string   `json:"hardwaretype,omitempty"`
	ImageType      string   `json:"imagetype,omitempty"`
	Provider       string   `json:"provider,omitempty"`
	// Nodes and Services are what to name in place of those that the request names.
	Nodes    []NodeID `json:"nodes,omitempty" description:"Ids of nodes to name in place of those of the request."`
	Services []string `json:"services,omitempty" description:"Services to name in place of those of the request."`
	// Template is a change of the template instead, as a JSON merge patch: offered
	// where no change of the request helps.
	Template map[string]any `json:"template,omitempty" description:"A change of the template as a JSON merge patch, where no change of the request helps."`
	// Catalog is a change of catalog entries, a merge patch by kind and name: only
	// where the template cannot help either. "?" stands for what must be filled in.
	Catalog map[string]any `json:"catalog,omitempty" description:"A change of catalog entries, a merge patch by kind and name, where the template cannot help either."`
}
