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
	"loom/solver"
)

// How long a dry run searches: all of it, the one size that is looked at closely, and
// each of the others.
const (
	dryRunTime      = 2500 * time.Millisecond
	dryRunAskedTime = time.Second
	dryRunSizeTime  = 250 * time.Millisecond
)

// MaxDryRunSizes is how many sizes a dry run covers at most.
const MaxDryRunSizes = 500

// DryRunInput asks what would come of a template.
type DryRunInput struct {
	// Template is a stored one; Unsaved, if set, is tried in its place and need not be
	// stored nor have a name.
	Template string
	Unsaved  *loom.Template
	// What a request would say; empty takes the template's.
	Provider, HardwareType, ImageType string
	Services                          []string
	// Machines is the size to look at closely; 0 is the smallest that works.
	Machines int
	// From and To bound the sizes, both included; 0 takes the template's bounds. Of more
	// than MaxDryRunSizes the first are tried, or where they begin with none that was asked
	// for, those that end at Machines.
	From, To int
}

// DryRun is what would come of a template. Where Fields or Missing are set it could not be
// tried, and only Facts may be there besides.
type DryRun struct {
	// Facts are what the form of a cluster would be made of; nil where the template
	// does not even merge.
	Facts  *TemplateFacts
	Fields []loom.FieldError
	// Missing are services that it needs and that do not exist (any more).
	Missing []MissingService
	// Works are the sizes that have a layout within the template's bounds; nil when
	// none has, or when Unsure.
	Works  *loom.SizeRange
	Unsure bool
	// Chosen is the size that was looked at closely, with suggestions and warnings.
	Chosen DryRunSize
	// Tasks and Stages count the plan of the asked size; Warnings are about it, Unchosen gives
	// of some of them the service that could be chosen.
	Tasks, Stages int
	Warnings      []string
	Unchosen      map[string]string
	Sizes         []DryRunSize
	// More says that the template allows sizes beyond the last.
	More bool
}

// SizeState is what is known about a size.
type SizeState string

// The states of a size: it has a layout, it has none, the search took too long, or
// there was no time left to look at it.
const (
	SizeWorks      SizeState = "fits"
	SizeImpossible SizeState = "cannot"
	SizeUndecided  SizeState = "undecided"
	SizeUntried    SizeState = "untried"
)

// DryRunSize is one number of machines. A size that fits has a layout unless there
// was no time to work it out; one that cannot says why.
type DryRunSize struct {
	Machines int
	State    SizeState
	Layout   loom.Layout
	Unsat    *loom.Unsat
}

// Why says in a sentence why the size has no layout, "" for one that has.
func (s DryRunSize) Why() string {
	if s.Unsat == nil {
		return ""
	}
	if len(s.Unsat.Reasons) == 1 && s.Unsat.Code != solver.CodeUnsat {
		return s.Unsat.Reasons[0].Message
	}
	return s.Unsat.Headline
}

// DryRunTemplate works out which sizes of a template have which layout, and stores
// nothing. It takes 3 s at most; sizes that are not reached by then are untried. A
// template that cannot be used is an answer, not an error. Errors: Forbidden for
// others than administrators; NotFound for a stored template that is not there.
func (u *Clusters) DryRunTemplate(ctx context.Context, actor loom.Actor, in DryRunInput) (DryRun, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return DryRun{}, err
	}
	name := in.Template
	if in.Unsaved != nil {
		name = in.Unsaved.Name
		if errs := checkShape(in.Unsaved); len(errs) > 0 {
			return DryRun{Fields: errs}, nil
		}
	}
	cv, err := u.readCatalogWith(ctx, actor.Tenant, name, in.Unsaved, in.Provider)
	var t DryRun
	if cv != nil {
		t.Facts = u.templateFacts(&prepared{view: cv, in: loom.CreateInput{Services: in.Services}})
	}
	if err != nil {
		e := loom.AsError(err)
		if len(e.Fields) == 0 || cv == nil && in.Unsaved == nil && e.Kind == loom.NotFound {
			return DryRun{}, err
		}
		t.Fields = e.Fields
		return t, nil
	}
	if t.Fields = append(checkCount(in.Services), checkNamed(in.Services, contains(cv.services))...); len(t.Fields) > 0 {
		return t, nil
	}
	if t.Missing = cv.missingServices(in.Services); len(t.Missing) > 0 {
		return t, nil
	}
	p := &prepared{view: cv, in: loom.CreateInput{
		Name: "trial", Template: name, Provider: in.Provider, Services: in.Services, HardwareType: in.HardwareType, ImageType: in.ImageType, Machines: in.Machines,
	}}
	p.config, p.partly = cv.config(p.in), true
	p.fields = takeFields(cv.providerType, cv.provider, nil, nil)
	return t, u.dryRun(ctx, actor, p, in, &t)
}

// checkShape returns what keeps a template from being tried; its name is not looked at.
func checkShape(t *loom.Template) []loom.FieldError {
	return slices.DeleteFunc(t.Validate(), func(e loom.FieldError) bool {
		return e.Field == "name" || e.Field == "label" || strings.HasPrefix(e.Field, "links")
	})
}

// dryRun searches: first the range of sizes, then the asked size, then the others.
func (u *Clusters) dryRun(ctx context.Context, actor loom.Actor, p *prepared, in DryRunInput, t *DryRun) error {
	all, stop := u.startSearch(ctx, actor.Tenant, dryRunTime)
	defer stop()
	ask := u.input(p)
	low, high := ask.Template.Constraints.Size.Bounds()
	high = min(high, u.opts.MaxMachines)
	from, to := dryRunRange(in, low, high)
	t.More = to < high
	problem, unsat := solver.NewProblem(ask)
	if unsat == nil {
		sizes, some, err := solver.Sizes(all, problem)
		switch {
		case errors.Is(err, loom.Unavailable) && ctx.Err() == nil:
			t.Unsure = true
		case err != nil:
			return templateProblem(err, t)
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
	if err := u.dryRunChosen(all, actor, p, ask, t); err != nil || len(t.Fields) > 0 {
		return err
	}
	for n := from; n <= to; n++ {
		switch {
		case n == t.Chosen.Machines:
			t.Sizes = append(t.Sizes, t.Chosen)
		case unsat != nil: // whatever the size
			t.Sizes = append(t.Sizes, DryRunSize{Machines: n, State: SizeImpossible, Unsat: unsat})
		default:
			size, err := dryRunSizeOf(all, problem, n, t)
			if err != nil {
				return err
			}
			t.Sizes = append(t.Sizes, size)
		}
	}
	return ctx.Err()
}

// dryRunRange is the sizes to try: those asked for, else those of the template.
func dryRunRange(in DryRunInput, low, high int) (first, last int) {
	first, last = low, high
	if in.Machines > first+MaxDryRunSizes-1 && in.Machines <= high {
		first = in.Machines - MaxDryRunSizes + 1
	}
	if in.From > 0 {
		first, last = in.From, max(high, in.From)
	}
	if in.To > 0 {
		last = max(in.To, first)
	}
	return first, min(last, first+MaxDryRunSizes-1)
}

// dryRunChosen looks closely at one size: with suggestions, or with the plan.
func (u *Clusters) dryRunChosen(all context.Context, actor loom.Actor, p *prepared, ask solver.Input, t *DryRun) error {
	solving, stop := context.WithTimeout(all, dryRunAskedTime)
	defer stop()
	_, layout, unsat, err := solver.Create(solving, ask)
	t.Chosen = DryRunSize{Machines: ask.Machines, State: SizeWorks, Layout: layout, Unsat: unsat}
	switch {
	case errors.Is(err, loom.Unavailable):
		t.Chosen.State = SizeUndecided
		return nil
	case err != nil:
		return templateProblem(err, t)
	case unsat != nil:
		t.Chosen.State = SizeImpossible
		return nil
	}
	c, err := p.change(actor, 0, "", layout)
	if err == nil {
		err = u.makePlan(all, actor.Tenant, c)
		t.Tasks, t.Stages = len(c.plan.Tasks), c.plan.Levels()
		t.Warnings, t.Unchosen = c.Warnings, c.unchosen
	}
	if err == nil {
		return nil
	}
	e := loom.AsError(err)
	if e.Kind == loom.Internal || e.Kind == loom.Throttled {
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

// templateProblem keeps an error about the template as an answer.
func templateProblem(err error, t *DryRun) error {
	e := loom.AsError(err)
	if e.Kind != loom.Invalid {
		return err
	}
	t.Fields = append(t.Fields, loom.FieldError{Field: "constraints", Message: e.Message})
	return nil
}

// dryRunSizeOf looks at one of many sizes for a moment.
func dryRunSizeOf(all context.Context, problem solver.Problem, n int, t *DryRun) (DryRunSize, error) {
	size := DryRunSize{Machines: n, State: SizeUntried}
	known := !t.Unsure
	within := t.Works != nil && t.Works.Min <= n && n <= t.Works.Max
	if known {
		size.State = SizeImpossible
		size.Unsat = whyOutside(t.Works)
		if within {
			size.State, size.Unsat = SizeWorks, nil
		}
	}
	if all.Err() != nil {
		return size, nil
	}
	solving, stop := context.WithTimeout(all, dryRunSizeTime)
	defer stop()
	problem.Machines = n
	layout, unsat, err := solver.Solve(solving, problem)
	switch {
	case errors.Is(err, loom.Unavailable):
		if !known {
			size.State = SizeUndecided
			if all.Err() != nil {
				size.State = SizeUntried
			}
		}
	case err != nil:
		return size, err
	case unsat != nil:
		size.State, size.Unsat = SizeImpossible, unsat
	default:
		size.State, size.Layout, size.Unsat = SizeWorks, layout, nil
	}
	return size, nil
}

// whyOutside is why a size has no layout, as far as the sizes that have one tell.
func whyOutside(works *loom.SizeRange) *loom.Unsat {
	u := &loom.Unsat{Code: solver.CodeUnsat, Headline: "No number of nodes has a layout.", Sizes: works}
	switch {
	case works == nil:
	case works.Max == loom.Unlimited:
		u.Headline = fmt.Sprintf("At least %d nodes are needed.", works.Min)
	default:
		u.Headline = fmt.Sprintf("Only %d–%d nodes have a layout.", works.Min, works.Max)
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
	// Missing are services that are needed and do not exist (any more): there is no plan
	// then, either.
	Missing []MissingService
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
	cv, err := u.readCatalog(ctx, actor.Tenant, template, "")
	if err != nil {
		return o, err
	}
	cv.services = maps.Clone(cv.services)
	cv.services[service.Name] = service
	names := cv.withRequired(service.Name)
	if o.Missing = cv.missingServices(slices.Concat(cv.template.Defaults.Services, names)); len(o.Missing) > 0 {
		return o, nil
	}
	allowed := cv.template.Compatibility.Services
	o.Allowed = true
	for _, name := range names {
		if !slices.Contains(cv.template.Defaults.Services, name) {
			o.With = append(o.With, name)
		}
		o.Allowed = o.Allowed && (len(allowed) == 0 || slices.Contains(allowed, name))
	}
	if !o.Allowed {
		cv.template.Compatibility.Services = slices.Concat(allowed, names)
	}
	least, _ := cv.template.Constraints.Size.Bounds()
	p := &prepared{view: cv, in: loom.CreateInput{Template: template, Services: names, Machines: max(1, least)}}
	layout, err := u.smallest(ctx, actor.Tenant, p, &o)
	if err != nil || o.Unsat != nil {
		return o, err
	}
	c := p.layoutChange(0, layout)
	o.Machines = len(c.After.Nodes)
	err = u.makePlan(ctx, actor.Tenant, c)
	o.Plan = c.plan
	return o, err
}

// smallest looks for a layout of the template's least size, or of the least one
// that works.
func (u *Clusters) smallest(ctx context.Context, tenant loom.TenantID, p *prepared, o *Order) (loom.Layout, error) {
	solving, stop := u.startSearch(ctx, tenant, u.opts.CheckTime)
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
