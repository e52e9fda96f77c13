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
	"loom/app/web/form"
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
	moved := st.form.For != st.form.of("clusterTemplate")
	if moved {
		st.form.set("provider", "")
		st.form.settings = settingsForm{} // of another template
	}
	if st.form.of("clusterTemplate") == "" {
		return st, nil
	}
	facts, err := s.Clusters.FormFacts(ctx, actor, st.form.of("clusterTemplate"), st.form.of("provider"))
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
	st.takeSettings()
	return st, nil
}

// readChoices reads the templates and providers that are offered.
func (s *Server) readChoices(ctx context.Context, actor loom.Actor, st *settled) error {
	deprecated := false
	in := catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}, Deprecated: &deprecated, Released: true}
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
	template := f.of("clusterTemplate")
	f.Doc.Set(form.At("services"), append([]string{}, facts.Template.Defaults.Services...))
	f.ServicesShown = true
	for _, name := range []string{"hardwaretype", "imagetype", "initialLeaseDuration"} {
		f.Forget(form.At(name))
	}
	f.setConfig(facts.Config)
	low, high := facts.MinMachines, facts.MaxMachines
	n, err := strconv.Atoi(f.of("numMachines"))
	switch {
	case f.of("numMachines") == "":
		if n, err = s.firstSize(ctx, actor, st); err != nil {
			return err
		}
		f.Doc.Set(form.At("numMachines"), n)
	case err == nil && (n < low || n > high):
		n = min(max(n, low), high)
		f.Doc.Set(form.At("numMachines"), n)
	}
	f.For = template
	if name := f.of("name"); name != "" && name != f.Suggested {
		return nil
	}
	list, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: 1}, Template: template, Owner: string(actor.User), CountOnly: true})
	if err != nil {
		return err
	}
	f.Suggested = fmt.Sprintf("%s-%s-%d", template, actor.User, list.Total+1)
	f.set("name", f.Suggested)
	return nil
}

// firstSize is the number of nodes a form begins with: the smallest that works,
// which may be more than the template's bound says.
func (s *Server) firstSize(ctx context.Context, actor loom.Actor, st *settled) (int, error) {
	in := loom.CreateInput{Name: "first", Template: st.form.of("clusterTemplate"), Machines: st.facts.MinMachines, LeaseMillis: loom.TemplateLease}
	result, err := s.Clusters.Check(ctx, actor, in)
	if err != nil {
		return 0, err
	}
	if result.Unsat != nil && result.Sizes != nil {
		return result.Sizes.Min, nil
	}
	return in.Machines, nil
}

// keepChoices drops types that another provider does not have.
func (st *settled) keepChoices() {
	f := &st.form
	if f.ForProvider != "" && f.ForProvider != st.facts.Provider.Name {
		f.Doc.Delete(form.At("providerFields"))
		if !choosable(st.facts.HardwareTypes, f.of("hardwaretype")) {
			f.set("hardwaretype", "")
		}
		if !choosable(st.facts.ImageTypes, f.of("imagetype")) {
			f.set("imagetype", "")
		}
	}
	f.ForProvider = st.facts.Provider.Name
	if f.of("provider") == "" {
		f.set("provider", st.facts.Provider.Name)
	}
	if f.config() == "" {
		f.setConfig(st.facts.Config)
	}
}

// setConfig puts a config in place of what was typed.
func (f *createForm) setConfig(config map[string]any) {
	f.Forget(form.At("config"))
	if config == nil {
		config = map[string]any{}
	}
	f.Doc.Set(form.At("config"), config)
}

func choosable(choices []clusters.Choice, name string) bool {
	return slices.ContainsFunc(choices, func(c clusters.Choice) bool { return c.Name == name && c.WhyNot == "" })
}

// apply changes the form as a pressed suggestion says.
func (f *createForm) apply(suggestion string) error {
	texts, services := map[string]*string{}, f.services()
	for _, name := range []string{"numMachines", "hardwaretype", "imagetype", "provider"} {
		text := f.of(name)
		texts[name] = &text
	}
	err := page.ApplySuggestion(suggestion, texts, &services)
	for name, text := range texts {
		f.set(name, *text)
	}
	f.Doc.Set(form.At("services"), append([]string{}, services...))
	return err
}
