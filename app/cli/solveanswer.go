package cli

import (
	"errors"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/solver"
)

// solveYes and solveNo are the two answers of loom solve.
type solveYes struct {
	Solvable bool          `json:"solvable"`
	Layouts  loom.Layout   `json:"layouts"`
	Nodes    []solver.Node `json:"nodes"`
	Range    *solveRange   `json:"range"`
}

type solveNo struct {
	Solvable    bool              `json:"solvable"`
	Error       string            `json:"error"`
	Reasons     []solveReason     `json:"reasons"`
	Range       *solveRange       `json:"range"`
	Suggestions []solveSuggestion `json:"suggestions"`
}

// solveRange has no Max where any number from Min on works.
type solveRange struct {
	Min int  `json:"min"`
	Max *int `json:"max"`
}

func newSolveRange(r *loom.SizeRange) *solveRange {
	if r == nil {
		return nil
	}
	out := &solveRange{Min: r.Min}
	if r.Max < loom.Unlimited {
		out.Max = &r.Max
	}
	return out
}

type solveReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Services that the constraints speak of; Constraints are their ids,
	// as in loom.Reason.
	Services    []string `json:"services"`
	Constraints []string `json:"constraints"`
}

// solveSuggestion is a change that was solved, and what the input would hold then.
type solveSuggestion struct {
	loom.Suggestion
	Request *solveRequest `json:"request,omitempty"`
	// Add and Remove are the two lists of an existing cluster, empty ones included.
	Add    *[]string `json:"add,omitempty"`
	Remove *[]string `json:"remove,omitempty"`
}

type solveRequest struct {
	Machines     int      `json:"numMachines"`
	Services     []string `json:"services"`
	HardwareType string   `json:"hardwaretype,omitempty"`
	ImageType    string   `json:"imagetype,omitempty"`
}

// no makes the answer of reasons.
func (q *question) no(code string, reasons []loom.Reason, sizes *loom.SizeRange, suggestions []loom.Suggestion) *solveNo {
	out := &solveNo{Error: code, Reasons: []solveReason{}, Range: newSolveRange(sizes), Suggestions: []solveSuggestion{}}
	for _, r := range reasons {
		s := solveReason{Code: r.Code, Message: r.Message, Services: []string{}, Constraints: strings.Split(r.ID, "\n")}
		for _, id := range s.Constraints {
			s.Services = append(s.Services, solver.ServicesOf(q.input.Template, id)...)
		}
		s.Services = distinctSorted(s.Services)
		out.Reasons = append(out.Reasons, s)
	}
	for _, s := range suggestions {
		out.Suggestions = append(out.Suggestions, q.suggestion(s))
	}
	return out
}

func (q *question) suggestion(s loom.Suggestion) solveSuggestion {
	out := solveSuggestion{Suggestion: s}
	if len(q.cluster.Nodes) > 0 {
		add, remove := solver.Adjust(q.add, q.remove, s)
		add, remove = append([]string{}, add...), append([]string{}, remove...)
		out.Add, out.Remove = &add, &remove
		return out
	}
	r := &solveRequest{Machines: q.input.Machines, HardwareType: q.input.HardwareType, ImageType: q.input.ImageType}
	services := q.input.Services
	if len(services) == 0 {
		services = q.input.Template.Defaults.Services
	}
	r.Services = distinctSorted(slices.DeleteFunc(slices.Concat(services, s.AddServices), func(name string) bool {
		return slices.Contains(s.RemoveServices, name)
	}))
	if s.Machines > 0 {
		r.Machines = s.Machines
	}
	if s.HardwareType != "" {
		r.HardwareType = s.HardwareType
	}
	if s.ImageType != "" {
		r.ImageType = s.ImageType
	}
	out.Request = r
	return out
}

func distinctSorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	if out = slices.Compact(out); out == nil {
		out = []string{}
	}
	return out
}

// together joins constraints that only clash together into one reason, whose ID
// lists theirs. Of rules that nodes break by themselves the first is the reason;
// the others are named with it.
func (q *question) together(u *loom.Unsat) []loom.Reason {
	var out []loom.Reason
	var joined *loom.Reason
	alone := len(q.cluster.Nodes) > 0 && len(q.add) == 0
	var also []string
	for _, r := range u.Reasons {
		switch {
		case r.Code != solver.CodeUnsat:
			out = append(out, r)
		case joined == nil:
			joined = &loom.Reason{Code: r.Code, ID: r.ID, Message: strings.TrimSpace(u.Headline + " " + r.Message)}
			if r.Message == u.Headline {
				joined.Message = r.Message
			}
		case alone:
			also = append(also, r.ID)
		default:
			joined.ID += "\n" + r.ID
			joined.Message += " " + r.Message
		}
	}
	if len(also) > 0 {
		joined.Message += " Also broken: " + strings.Join(also, ", ") + "."
	}
	if joined != nil {
		out = append(out, *joined)
	}
	return out
}

// refusedRequest is the answer to a line of a batch that cannot be read.
func refusedRequest(err error) *solveNo {
	message := err.Error()
	var e *loom.Error
	if errors.As(err, &e) {
		message = strings.ReplaceAll(forPeople(err), "\n  ", " ")
	}
	return &solveNo{Error: codeBadRequest, Suggestions: []solveSuggestion{},
		Reasons: []solveReason{{Code: codeBadRequest, Message: message, Services: []string{}, Constraints: []string{}}}}
}
