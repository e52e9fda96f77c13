package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/planner"
	"loom/solver"
)

// How long a trial searches: all of it, the one size that is looked at closely, and
// each of the others.
const (
	trialTime     = 2500 * time.Millisecond
	trialAskTime  = time.Second
	trialSizeTime = 250 * time.Millisecond
)

// MaxTrialSizes is how many sizes a trial covers at most.
const MaxTrialSizes = 50

// TrialInput asks what would come of a template.
type TrialInput struct {
	// Template is a stored one; Draft, if set, is tried in its place and need not be
	// stored nor have a name.
	Template string
	Draft    *loom.Template
	// What a request would say; empty takes the template's.
	Provider, HardwareType, ImageType string
	Services                          []string
	// Machines is the size to look at closely; 0 is the smallest that works.
	Machines int
	// From and To bound the sizes, both included; 0 takes the template's bounds, To
	// then no more than MaxTrialSizes machines where From is within that.
	From, To int
}

// Trial is what would come of a template. Where Fields or Lost are set it could not be
// tried, and only Facts may be there besides.
type Trial struct {
	// Facts are what the form of a cluster would be made of; nil where the template
	// does not even merge.
	Facts  *TemplateFacts
	Fields []loom.FieldError
	// Lost are services that it needs and that do not exist (any more).
	Lost []LostService
	// Works are the sizes that have a layout within the template's bounds; nil when
	// none has, or when Unsure.
	Works  *loom.SizeRange
	Unsure bool
	// Asked is the size that was looked at closely, with suggestions and warnings.
	Asked TrialSize
	// Tasks and Stages count the plan of the asked size; Warnings are about it.
	Tasks, Stages int
	Warnings      []string
	Sizes         []TrialSize
	// More says that the template allows sizes beyond the last.
	More bool
}

// TrialState is what is known about a size.
type TrialState string

// The states of a size: it has a layout, it has none, the search took too long, or
// there was no time left to look at it.
const (
	TrialFits      TrialState = "fits"
	TrialCannot    TrialState = "cannot"
	TrialUndecided TrialState = "undecided"
	TrialUntried   TrialState = "untried"
)

// TrialSize is one number of machines. A size that fits has a layout unless there
// was no time to work it out; one that cannot says why.
type TrialSize struct {
	Machines int
	State    TrialState
	Layout   loom.Layout
	Unsat    *loom.Unsat
}

// Why says in a sentence why the size has no layout, "" for one that has.
func (s TrialSize) Why() string {
	if s.Unsat == nil {
		return ""
	}
	if len(s.Unsat.Reasons) == 1 && s.Unsat.Code != solver.CodeUnsat {
		return s.Unsat.Reasons[0].Message
	}
	return s.Unsat.Headline
}

// TryTemplate works out which sizes of a template have which layout, and stores
// nothing. It takes 3 s at most; sizes that are not reached by then are untried. A
// template that cannot be used is an answer, not an error. Errors: Forbidden for
// others than administrators; NotFound for a stored template that is not there.
func (u *Clusters) TryTemplate(ctx context.Context, actor loom.Actor, in TrialInput) (Trial, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return Trial{}, err
	}
	name := in.Template
	if in.Draft != nil {
		name = in.Draft.Name
		if errs := wrongShape(in.Draft); len(errs) > 0 {
			return Trial{Fields: errs}, nil
		}
	}
	w, err := u.readWorldWith(ctx, actor.Tenant, name, in.Draft, in.Provider)
	var t Trial
	if w != nil {
		t.Facts = u.facts(&prepared{world: w, in: loom.CreateInput{Services: in.Services}})
	}
	if err != nil {
		e := loom.AsError(err)
		if len(e.Fields) == 0 || w == nil && in.Draft == nil && e.Kind == loom.NotFound {
			return Trial{}, err
		}
		t.Fields = e.Fields
		return t, nil
	}
	if t.Fields = append(checkCount(in.Services), checkNamed(in.Services, has(w.services))...); len(t.Fields) > 0 {
		return t, nil
	}
	if t.Lost = w.lostServices(in.Services); len(t.Lost) > 0 {
		return t, nil
	}
	p := &prepared{world: w, in: loom.CreateInput{
		Name: "trial", Template: name, Provider: in.Provider, Services: in.Services, HardwareType: in.HardwareType, ImageType: in.ImageType, Machines: in.Machines,
	}}
	p.config = w.config(p.in)
	p.fields = takeFields(w.providerType, w.provider, nil, nil)
	return t, u.try(ctx, actor, p, in, &t)
}

// wrongShape is what keeps a draft from being tried; its name is not looked at.
func wrongShape(t *loom.Template) []loom.FieldError {
	return slices.DeleteFunc(t.Validate(), func(e loom.FieldError) bool {
		return e.Field == "name" || e.Field == "label" || strings.HasPrefix(e.Field, "links")
	})
}

// try searches: first the range of sizes, then the asked size, then the others.
func (u *Clusters) try(ctx context.Context, actor loom.Actor, p *prepared, in TrialInput, t *Trial) error {
	all, stop := u.solving(ctx, actor.Tenant, trialTime)
	defer stop()
	ask := u.input(p)
	low, high := ask.Template.Constraints.Size.Bounds()
	high = min(high, u.opts.MaxMachines)
	from, to := trialRange(in.From, in.To, low, high)
	t.More = to < high
	problem, unsat := solver.NewProblem(ask)
	if unsat == nil {
		sizes, some, err := solver.Sizes(all, problem)
		switch {
		case errors.Is(err, loom.Unavailable) && ctx.Err() == nil:
			t.Unsure = true
		case err != nil:
			return trialError(err, t)
		case some:
			t.Works = &sizes
		}
	}
	if ask.Machines == 0 {
		if ask.Machines = from; t.Works != nil {
			ask.Machines = t.Works.Min
		}
	}
	ask.Machines = min(max(ask.Machines, 1), u.opts.MaxMachines)
	p.in.Machines = ask.Machines
	if err := u.tryAsked(all, actor, p, ask, t); err != nil || len(t.Fields) > 0 {
		return err
	}
	for n := from; n <= to; n++ {
		switch {
		case n == t.Asked.Machines:
			t.Sizes = append(t.Sizes, t.Asked)
		case unsat != nil: // whatever the size
			t.Sizes = append(t.Sizes, TrialSize{Machines: n, State: TrialCannot, Unsat: unsat})
		default:
			size, err := trySize(all, problem, n, t)
			if err != nil {
				return err
			}
			t.Sizes = append(t.Sizes, size)
		}
	}
	return ctx.Err()
}

// trialRange is the sizes to try: those asked for within what can be, else those of
// the template from its smallest on.
func trialRange(from, to, low, high int) (first, last int) {
	first, last = low, min(high, max(MaxTrialSizes, low+MaxTrialSizes/5-1))
	if from > 0 {
		first = from
		last = max(last, from+MaxTrialSizes/5-1)
	}
	if to > 0 {
		last = max(to, first)
	}
	return first, min(last, first+MaxTrialSizes-1)
}

// tryAsked looks closely at one size: with suggestions, or with the plan.
func (u *Clusters) tryAsked(all context.Context, actor loom.Actor, p *prepared, ask solver.Input, t *Trial) error {
	solving, stop := context.WithTimeout(all, trialAskTime)
	defer stop()
	_, layout, unsat, err := solver.Create(solving, ask)
	t.Asked = TrialSize{Machines: ask.Machines, State: TrialFits, Layout: layout, Unsat: unsat}
	switch {
	case errors.Is(err, loom.Unavailable):
		t.Asked.State = TrialUndecided
		return nil
	case err != nil:
		return trialError(err, t)
	case unsat != nil:
		t.Asked.State = TrialCannot
		return nil
	}
	c, err := p.change(actor, 0, "", layout)
	if err == nil {
		plan, planErr := c.steps(planner.Scope{})
		t.Tasks, t.Stages, err = len(plan.Tasks), plan.Levels(), planErr
		t.Warnings = c.Warnings
	}
	if err == nil {
		return nil
	}
	e := loom.AsError(err)
	if e.Kind == loom.Internal {
		return err
	}
	// The layout is there, but no cluster would come of it: macros that name nothing,
	// services that wait for each other.
	if len(e.Fields) == 0 {
		t.Warnings = append(t.Warnings, e.Message)
	}
	for _, f := range e.Fields {
		t.Warnings = append(t.Warnings, f.Message)
	}
	return nil
}

// trialError keeps an error about the template as an answer.
func trialError(err error, t *Trial) error {
	e := loom.AsError(err)
	if e.Kind != loom.Invalid {
		return err
	}
	t.Fields = append(t.Fields, loom.FieldError{Field: "constraints", Message: e.Message})
	return nil
}

// trySize looks at one of many sizes for a moment.
func trySize(all context.Context, problem solver.Problem, n int, t *Trial) (TrialSize, error) {
	size := TrialSize{Machines: n, State: TrialUntried}
	known := !t.Unsure
	within := t.Works != nil && t.Works.Min <= n && n <= t.Works.Max
	if known {
		size.State = TrialCannot
		size.Unsat = outside(t.Works)
		if within {
			size.State, size.Unsat = TrialFits, nil
		}
	}
	if all.Err() != nil {
		return size, nil
	}
	solving, stop := context.WithTimeout(all, trialSizeTime)
	defer stop()
	problem.Machines = n
	layout, unsat, err := solver.Solve(solving, problem)
	switch {
	case errors.Is(err, loom.Unavailable):
		if !known {
			size.State = TrialUndecided
			if all.Err() != nil {
				size.State = TrialUntried
			}
		}
	case err != nil:
		return size, err
	case unsat != nil:
		size.State, size.Unsat = TrialCannot, unsat
	default:
		size.State, size.Layout, size.Unsat = TrialFits, layout, nil
	}
	return size, nil
}

// outside is why a size has no layout, as far as the sizes that have one tell.
func outside(works *loom.SizeRange) *loom.Unsat {
	u := &loom.Unsat{Code: solver.CodeUnsat, Headline: "No number of nodes has a layout.", Sizes: works}
	switch {
	case works == nil:
	case works.Max == loom.Unlimited:
		u.Headline = fmt.Sprintf("At least %d nodes are needed.", works.Min)
	default:
		u.Headline = fmt.Sprintf("Only %d to %d nodes have a layout.", works.Min, works.Max)
	}
	return u
}

// Order is where the actions of a service fall while a cluster is made.
type Order struct {
	// Plan is that of the smallest cluster of the template with the service; it has no
	// tasks when there is none, for what Unsat says.
	Plan     loom.Plan
	Machines int
	Unsat    *loom.Unsat
	// Lost are services that are needed and do not exist (any more): there is no plan
	// then, either.
	Lost []LostService
	// With are the services that are there besides the template's own: the service
	// itself, and what it requires. Sorted.
	With []string
	// Allowed says that clusters of the template may have these. Where they may not,
	// the plan is made as if they might.
	Allowed bool
}

// Order works out the plan of a new cluster of a template with a service, which
// need not be stored: in the place of the stored one of its name. It keeps nothing,
// and looks at no quota and no provider fields. Errors: NotFound for the template or
// its provider; Invalid for services that wait for each other in a circle;
// Unavailable when the search takes too long.
func (u *Clusters) Order(ctx context.Context, actor loom.Actor, template string, service loom.Service) (Order, error) {
	var o Order
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return o, err
	}
	w, err := u.readWorld(ctx, actor.Tenant, template, "")
	if err != nil {
		return o, err
	}
	w.services = maps.Clone(w.services)
	w.services[service.Name] = service
	names := w.withRequired(service.Name)
	if o.Lost = w.lostServices(slices.Concat(w.template.Defaults.Services, names)); len(o.Lost) > 0 {
		return o, nil
	}
	allowed := w.template.Compatibility.Services
	o.Allowed = true
	for _, name := range names {
		if !slices.Contains(w.template.Defaults.Services, name) {
			o.With = append(o.With, name)
		}
		o.Allowed = o.Allowed && (len(allowed) == 0 || slices.Contains(allowed, name))
	}
	if !o.Allowed {
		w.template.Compatibility.Services = slices.Concat(allowed, names)
	}
	least, _ := w.template.Constraints.Size.Bounds()
	p := &prepared{world: w, in: loom.CreateInput{Template: template, Services: names, Machines: max(1, least)}}
	layout, err := u.smallest(ctx, actor.Tenant, p, &o)
	if err != nil || o.Unsat != nil {
		return o, err
	}
	c := p.bare(0, layout)
	o.Machines = len(c.After.Nodes)
	o.Plan, err = c.steps(planner.Scope{})
	return o, err
}

// smallest looks for a layout of the template's least size, or of the least one
// that works.
func (u *Clusters) smallest(ctx context.Context, tenant loom.TenantID, p *prepared, o *Order) (loom.Layout, error) {
	solving, stop := u.solving(ctx, tenant, u.opts.CheckTime)
	defer stop()
	for {
		_, layout, unsat, err := solver.Create(solving, u.input(p))
		switch {
		case errors.Is(err, loom.Unavailable) && ctx.Err() == nil:
			return nil, loom.NewError(loom.Unavailable, "The search for a layout took too long; choose a template with fewer services.")
		case err != nil || unsat == nil:
			return layout, err
		case unsat.Sizes == nil || unsat.Sizes.Min <= p.in.Machines:
			o.Unsat = unsat
			return nil, nil
		}
		p.in.Machines = unsat.Sizes.Min
	}
}
