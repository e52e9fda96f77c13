package clusters

import (
	"context"
	"errors"
	"slices"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// CheckResult is what the form for a new cluster shows beside itself.
type CheckResult struct {
	// Fits says that a request like this would be accepted, provided the quota
	// and the missing provider fields.
	Fits   bool
	Layout loom.Layout
	// Unsat says why there is no layout, with what would help.
	Unsat *loom.Unsat
	// Sizes are the machine counts that would work, nil when none does or when it
	// is not known.
	Sizes *loom.SizeRange
	// Unsure says that the time of a check was too short; a preview searches longer.
	Unsure bool
	// Quota is what the tenant would use afterwards; Exceeded is the sentence
	// which quota that breaks, or "".
	Quota    loom.QuotaUse
	Exceeded string
	// Within are changes that would keep within the quota of nodes.
	Within []loom.Suggestion
	// Tasks and Stages count the plan.
	Tasks, Stages int
	Warnings      []string
	Fields        []loom.FieldError
	// Missing are provider fields that must be given before the cluster is made.
	Missing []map[string]loom.FieldSchema
	// Price of an hour where all hardware types of the layout name one.
	Price *float64
}

// TemplateFacts are what a form for a new cluster needs to know.
type TemplateFacts struct {
	// Template is resolved: merged with all it extends and includes.
	Template loom.Template
	// Provider is the chosen one, or the template's.
	Provider loom.Base
	// ProviderFields may be given by the user; Required are the sets of which one
	// must be complete.
	ProviderFields map[string]loom.FieldSchema
	Required       [][]string
	// FixedFields are those that the provider keeps users from giving.
	FixedFields []FixedField
	// Resources are, by their type, the names of plugin resources that fields of the
	// type resource can name.
	Resources     map[string][]string
	HardwareTypes []Choice
	ImageTypes    []Choice
	Services      []Choice
	// Dependencies are those of the services, by name.
	Dependencies map[string]loom.Dependencies
	// Config is used when the request brings none.
	Config map[string]any
	// Catalog are the services with their parameters, by name.
	Catalog map[string]loom.Service
	// MaxMachines is the template's upper bound within the installation's.
	MinMachines, MaxMachines int
}

// Choice is an entry that a form offers; WhyNot says why it cannot be chosen.
type Choice struct {
	Name, Description string
	WhyNot            string
}

// Check answers whether a request would work, and what would come of it. It
// stores nothing. A request that does not fit is an answer, not an error; errors
// are about rights and about the database.
func (u *Clusters) Check(ctx context.Context, actor loom.Actor, in loom.CreateInput) (CheckResult, error) {
	result, err := u.check(ctx, actor, in)
	result.Fields = loom.BoundFields(result.Fields, 0)
	return result, err
}

func (u *Clusters) check(ctx context.Context, actor loom.Actor, in loom.CreateInput) (CheckResult, error) {
	var result CheckResult
	if err := actor.MayAtAll(loom.Create.Reading()); err != nil {
		return result, err
	}
	tenant, err := store.Tenant(ctx, u.q, actor.Tenant)
	if err != nil {
		return result, err
	}
	if result.Quota, err = u.quotaUse(ctx, actor.Tenant); err != nil {
		return result, err
	}
	p, err := u.prepare(ctx, actor, in)
	result.Fields, result.Missing = p.errs, p.fields.missing
	if err != nil {
		// What is wrong with template or provider is an answer as well.
		e := loom.AsError(err)
		if len(e.Fields) == 0 {
			return result, err
		}
		for _, f := range e.Fields {
			if !slices.Contains(result.Fields, f) {
				result.Fields = append(result.Fields, f)
			}
		}
		return result, nil
	}
	if len(p.hopeless) > 0 {
		return result, nil
	}
	return result, u.checkLayout(ctx, actor, tenant, p, &result)
}

// checkLayout searches even where fields are wrong that the search does not look
// at, so that the panel stays useful while a name is being typed.
func (u *Clusters) checkLayout(ctx context.Context, actor loom.Actor, tenant loom.Tenant, p *prepared, result *CheckResult) error {
	if p.in.Machines <= 0 || p.in.Machines > u.opts.MaxMachines {
		return nil
	}
	quota := result.Quota
	if err := quota.Check(1, p.in.Machines); err != nil {
		result.Exceeded = loom.AsError(err).Message
	}
	result.Quota.Clusters++
	result.Quota.Nodes += p.in.Machines
	solving, stop := u.startSearch(ctx, actor.Tenant, u.opts.CheckTime)
	defer stop()
	problem, layout, unsat, err := u.solve(solving, p, quota)
	switch {
	case errors.Is(err, loom.Unavailable) && ctx.Err() == nil:
		result.Unsure = true
		return nil
	case err != nil:
		if e := loom.AsError(err); e.Kind == loom.Invalid {
			result.Fields = append(result.Fields, loom.FieldError{Field: "services", Message: e.Message})
			return nil
		}
		return err
	case unsat != nil:
		result.Unsat, result.Sizes = unsat, unsat.Sizes
		return nil
	}
	result.Layout = layout
	if result.Exceeded != "" {
		result.Within = u.suggestWithinQuota(solving, p, quota)
	}
	if sizes, some, err := solver.Sizes(solving, problem); err == nil && some {
		result.Sizes = &sizes
	}
	stop()
	c, err := p.change(actor, 0, "", layout)
	if err == nil {
		err = u.makePlan(ctx, actor.Tenant, c)
		result.Tasks, result.Stages = len(c.plan.Tasks), c.plan.Levels()
	}
	if err != nil {
		e := loom.AsError(err)
		if e.Kind == loom.Internal || e.Kind == loom.Throttled {
			return err
		}
		for _, f := range e.Fields {
			if !slices.Contains(result.Fields, f) {
				result.Fields = append(result.Fields, f)
			}
		}
		if len(e.Fields) == 0 { // services that depend on each other in a circle
			result.Fields = append(result.Fields, loom.FieldError{Field: "services", Message: e.Message})
		}
		return nil
	}
	result.Warnings, result.Price = c.Warnings, c.New.Price
	if tenant.Workers == 0 {
		result.Warnings = append(result.Warnings, noWorkers)
	}
	result.Fits = len(result.Fields) == 0 && result.Exceeded == ""
	return nil
}

// FormFacts returns what the form for a new cluster of a template is made of;
// provider "" means the template's. NotFound for an unknown template.
func (u *Clusters) FormFacts(ctx context.Context, actor loom.Actor, template, provider string) (TemplateFacts, error) {
	if err := actor.May(loom.Create.Reading(), actor.FromTemplate(template)); err != nil {
		return TemplateFacts{}, err
	}
	cv, err := u.readCatalog(ctx, actor.Tenant, template, provider)
	if cv == nil || err != nil && !isNotFound(err) {
		return TemplateFacts{}, err
	}
	f := u.templateFacts(&prepared{view: cv, in: loom.CreateInput{Template: template, Provider: provider}})
	f.Resources, err = u.resourceNames(ctx, actor.Tenant, cv.providerType.Name, f.ProviderFields)
	return *f, err
}

// resourceNames reads which resources of a type of provider its fields can name: those with
// a version that is in use.
func (u *Clusters) resourceNames(ctx context.Context, tenant loom.TenantID, plugin string, fields map[string]loom.FieldSchema) (map[string][]string, error) {
	out := map[string][]string{}
	for _, schema := range fields {
		kind := schema.ResourceType
		if _, read := out[kind]; kind == "" || read {
			continue
		}
		out[kind] = []string{}
		all, err := store.Resources(ctx, u.q, tenant, loom.ResourceRef{Kind: string(loom.KindProviderType), Plugin: plugin, Type: kind})
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if r.Status() == loom.ResourceActive && !slices.Contains(out[kind], r.Name) {
				out[kind] = append(out[kind], r.Name)
			}
		}
	}
	return out, nil
}

func (u *Clusters) templateFacts(p *prepared) *TemplateFacts {
	cv := p.view
	f := &TemplateFacts{
		Template: cv.template, Provider: cv.provider.Base, ProviderFields: settableFields(cv.providerType, cv.provider),
		FixedFields: fixedFields(cv.providerType, cv.provider),
		Required:    cv.providerType.Parameters["user"].Required, Config: cv.config(loom.CreateInput{Services: p.in.Services}),
	}
	f.MinMachines, f.MaxMachines = cv.template.Constraints.Size.Bounds()
	f.MaxMachines = min(f.MaxMachines, u.opts.MaxMachines)
	c := cv.template.Compatibility
	for i := range cv.hardware {
		e := &cv.hardware[i]
		f.HardwareTypes = append(f.HardwareTypes, choice(e.Base, c.HardwareTypes, e.ProviderMap[cv.provider.Name]["flavor"] != "", cv.provider.Name))
	}
	for i := range cv.images {
		e := &cv.images[i]
		f.ImageTypes = append(f.ImageTypes, choice(e.Base, c.ImageTypes, e.ProviderMap[cv.provider.Name]["image"] != "", cv.provider.Name))
	}
	f.Catalog = cv.services
	f.Dependencies = map[string]loom.Dependencies{}
	for _, name := range sortedNames(cv.services) {
		f.Dependencies[name] = cv.services[name].Dependencies
		f.Services = append(f.Services, choice(cv.services[name].Base, c.Services, true, ""))
	}
	return f
}

func choice(e loom.Base, compatible []string, mapped bool, provider string) Choice {
	c := Choice{Name: e.Name, Description: e.Description}
	switch {
	case len(compatible) > 0 && !slices.Contains(compatible, e.Name):
		c.WhyNot = "The template does not allow it."
	case !mapped:
		c.WhyNot = "It has no entry for the provider “" + provider + "”."
	case e.Deprecated:
		c.WhyNot = "It is deprecated."
	}
	return c
}
