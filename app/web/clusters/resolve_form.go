package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
)

// settled is a form together with what the catalog says about it.
type settled struct {
	form      createForm
	templates []loom.Template
	providers []loom.Base
	// facts is nil without a usable template; unusable says why.
	facts    *clusters.TemplateFacts
	unusable []loom.FieldError
	note     string
	// restored is when the form was kept that is shown again, zero for a new one.
	restored time.Time
}

// settle reads what a form is made of. Where the template is another than the one
// the fields were made for, all that depends on it starts anew.
func (s *Server) settle(ctx context.Context, actor loom.Actor, f createForm) (*settled, error) {
	st := &settled{form: f}
	if err := s.readChoices(ctx, actor, st); err != nil {
		return nil, err
	}
	moved := st.form.For != st.form.Template
	if moved {
		st.form.Provider = ""
	}
	if st.form.Template == "" {
		return st, nil
	}
	facts, err := s.Clusters.FormFacts(ctx, actor, st.form.Template, st.form.Provider)
	if err != nil {
		e := loom.AsError(err)
		if len(e.Fields) == 0 {
			return nil, err
		}
		st.unusable = e.Fields
		return st, nil
	}
	st.facts = &facts
	if moved {
		if err := s.startOver(ctx, actor, st); err != nil {
			return nil, err
		}
	}
	st.keepChoices()
	return st, nil
}

// readChoices reads the templates and providers that are offered.
func (s *Server) readChoices(ctx context.Context, actor loom.Actor, st *settled) error {
	deprecated := false
	in := catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}, Deprecated: &deprecated}
	templates, err := s.Catalog.Entries(ctx, actor, loom.KindTemplate, in)
	if err != nil {
		return err
	}
	for _, item := range templates.Items {
		if t, ok := item.Entry.(*loom.Template); ok {
			st.templates = append(st.templates, *t)
		}
	}
	providers, err := s.Catalog.Entries(ctx, actor, loom.KindProvider, in)
	for _, item := range providers.Items {
		st.providers = append(st.providers, *item.Entry.Meta())
	}
	return err
}

// startOver fills the form with what the template says. What was typed stays
// where it still has a meaning: the description, a name of one's own, a size
// within the bounds.
func (s *Server) startOver(ctx context.Context, actor loom.Actor, st *settled) error {
	f, facts := &st.form, st.facts
	f.Services, f.ServicesShown = slices.Clone(facts.Template.Defaults.Services), true
	f.Hardware, f.Image, f.Lease = "", "", ""
	f.Config = configText(facts.Config)
	low, high := facts.MinMachines, facts.MaxMachines
	n, err := strconv.Atoi(f.Machines)
	switch {
	case f.Machines == "":
		if f.Machines, err = s.firstSize(ctx, actor, st); err != nil {
			return err
		}
	case err == nil && (n < low || n > high):
		f.Machines = strconv.Itoa(min(max(n, low), high))
		st.note = fmt.Sprintf("The number of nodes was set to %s: %s is made of %s.", f.Machines, f.Template, page.NodesRange(low, high))
	}
	if f.Name != "" && f.Name != f.Suggested {
		f.For = f.Template
		return nil
	}
	list, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: 1}, Template: f.Template, Owner: string(actor.User), CountOnly: true})
	if err != nil {
		return err
	}
	f.Name = fmt.Sprintf("%s-%s-%d", f.Template, actor.User, list.Total+1)
	f.Suggested, f.For = f.Name, f.Template
	return nil
}

// firstSize is the number of nodes a form begins with: the smallest that works,
// which may be more than the template's bound says.
func (s *Server) firstSize(ctx context.Context, actor loom.Actor, st *settled) (string, error) {
	in := loom.CreateInput{Name: "first", Template: st.form.Template, Machines: st.facts.MinMachines, LeaseMillis: loom.TemplateLease}
	result, err := s.Clusters.Check(ctx, actor, in)
	if err != nil {
		return "", err
	}
	if result.Unsat != nil && result.Sizes != nil {
		return strconv.Itoa(result.Sizes.Min), nil
	}
	return strconv.Itoa(in.Machines), nil
}

// keepChoices drops types that another provider does not have.
func (st *settled) keepChoices() {
	f := &st.form
	if f.ForProvider != "" && f.ForProvider != st.facts.Provider.Name {
		f.Fields = map[string]string{}
		if !choosable(st.facts.HardwareTypes, f.Hardware) {
			f.Hardware = ""
		}
		if !choosable(st.facts.ImageTypes, f.Image) {
			f.Image = ""
		}
	}
	f.ForProvider = st.facts.Provider.Name
	if f.Provider == "" {
		f.Provider = st.facts.Provider.Name
	}
	if f.Config == "" {
		f.Config = configText(st.facts.Config)
	}
}

func choosable(choices []clusters.Choice, name string) bool {
	return slices.ContainsFunc(choices, func(c clusters.Choice) bool { return c.Name == name && c.WhyNot == "" })
}

// apply changes the form as a pressed suggestion says.
func (f *createForm) apply(suggestion string) error {
	return page.ApplySuggestion(suggestion, map[string]*string{"numMachines": &f.Machines, "hardwaretype": &f.Hardware, "imagetype": &f.Image, "provider": &f.Provider}, &f.Services)
}
