package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/solver"
)

// gapTemplate allows 1 to 9 machines, of which 3 to 5 have a layout: db once or
// twice and web two or three times, never on one node.
func gapTemplate() *loom.Template {
	n := func(low, high int) loom.ServiceConstraint {
		return loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &low, Max: &high}}
	}
	t := siteTemplate()
	t.Name = "gaps"
	t.Constraints.Size = loom.SizeConstraint{Min: 1, Max: 9}
	t.Constraints.Services = map[string]loom.ServiceConstraint{"db": n(1, 2), "web": n(2, 3), "base": n(0, 9)}
	t.Constraints.Layout = loom.LayoutConstraints{MustCoexist: [][]string{{"base", "web"}}, CantCoexist: [][]string{{"db", "web"}}}
	return t
}

func TestDryRunShowsGaps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(b.tenant, loom.KindTemplate, gapTemplate())
	for _, in := range []clusters.DryRunInput{{Template: "gaps"}, {Unsaved: gapTemplate()}} {
		trial, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), in)
		if err != nil {
			t.Fatal(err)
		}
		if len(trial.Fields) > 0 || trial.Unsure || trial.Works == nil || *trial.Works != (loom.SizeRange{Min: 3, Max: 5}) {
			t.Fatalf("fields %v, works %v", trial.Fields, trial.Works)
		}
		if trial.Chosen.Machines != 3 || trial.Chosen.State != clusters.SizeWorks || trial.Tasks == 0 || trial.Stages == 0 {
			t.Errorf("asked %+v, %d tasks", trial.Chosen, trial.Tasks)
		}
		if len(trial.Sizes) != 9 || trial.More {
			t.Fatalf("%d sizes, more %t", len(trial.Sizes), trial.More)
		}
		for i, size := range trial.Sizes {
			fits := i+1 >= 3 && i+1 <= 5
			if size.Machines != i+1 || (size.State == clusters.SizeWorks) != fits || (size.Why() == "") != fits || fits && size.Layout.Machines() != i+1 {
				t.Errorf("size %d: %+v %q", i+1, size, size.Why())
			}
			if fits {
				// Whatever a trial shows, a request gets.
				in := request(i + 1)
				in.Template = "gaps"
				if v := b.preview(b.ana(), in); fmt.Sprint(v.Layout) != fmt.Sprint(size.Layout) {
					t.Errorf("size %d: the trial shows %v, a preview %v", i+1, size.Layout, v.Layout)
				}
			}
		}
	}
	if n := b.count(`SELECT count(*) FROM clusters`) + b.count(`SELECT count(*) FROM audit WHERE verb <> 'save'`); n != 0 {
		t.Errorf("a trial left %d rows", n)
	}
}

func TestDryRunOfASizeThatDoesNotFit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trial, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Unsaved: gapTemplate(), Machines: 8})
	if err != nil {
		t.Fatal(err)
	}
	u := trial.Chosen.Unsat
	if trial.Chosen.State != clusters.SizeImpossible || u == nil || len(u.Reasons) == 0 || len(u.Suggestions) == 0 || u.Suggestions[0].Machines != 5 {
		t.Fatalf("asked %+v", trial.Chosen)
	}
	// What is chosen otherwise counts.
	trial, err = b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Unsaved: gapTemplate(), Services: []string{"db", "base"}, From: 2, To: 4})
	if err != nil || trial.Works == nil || trial.Works.Max != 9 || len(trial.Sizes) != 3 || trial.Sizes[0].Machines != 2 {
		t.Errorf("works %v, sizes %v, %v", trial.Works, trial.Sizes, err)
	}
	trial, err = b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Unsaved: gapTemplate(), Services: []string{"web"}})
	if err != nil || trial.Works != nil || trial.Chosen.Unsat == nil || trial.Chosen.Unsat.Code != solver.CodeDependency || trial.Sizes[4].Why() == "" {
		t.Errorf("web alone lacks base: %+v, %v", trial.Chosen, err)
	}
}

func TestDryRunOfInvalidTemplates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		name   string
		change func(t *loom.Template)
		field  string
	}{
		{"sizes the wrong way", func(t *loom.Template) { t.Constraints.Size = loom.SizeConstraint{Min: 5, Max: 2} }, "constraints.size.max"},
		{"no provider", func(t *loom.Template) { t.Defaults.Provider = "" }, "provider"},
		{"no such provider", func(t *loom.Template) { t.Defaults.Provider = "moon" }, "provider"},
		{"no such parent", func(t *loom.Template) { t.Extends = &loom.NameRef{Name: "nobody"} }, "clusterTemplate"},
		{"its own parent", func(t *loom.Template) { t.Name = "loop"; t.Extends = &loom.NameRef{Name: "loop"} }, "clusterTemplate"},
	} {
		draft := gapTemplate()
		draft.Name = ""
		c.change(draft)
		trial, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Unsaved: draft})
		if err != nil || len(trial.Fields) != 1 || trial.Fields[0].Field != c.field || len(trial.Sizes) > 0 {
			t.Errorf("%s: %+v, %v", c.name, trial.Fields, err)
		}
	}
	empty := &loom.Template{}
	empty.Defaults.Provider = "lab"
	trial, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Unsaved: empty})
	if err != nil || trial.Chosen.State != clusters.SizeImpossible || trial.Works != nil || !trial.More || len(trial.Sizes) != clusters.MaxDryRunSizes {
		t.Errorf("nothing in it: %+v, %d sizes, %v", trial.Chosen, len(trial.Sizes), err)
	}
	if _, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Template: "nobody"}); !errors.Is(err, loom.NotFound) {
		t.Errorf("no such template: %v", err)
	}
	if _, err := b.clusters.DryRunTemplate(b.ctx, b.ana(), clusters.DryRunInput{Template: "site"}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user: %v", err)
	}
}

// A draft stands in for what is stored under its name, for itself as for nothing else.
func TestDryRunOfAChangedTemplate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	draft := siteTemplate()
	draft.Constraints.Size.Max = 3
	trial, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Unsaved: draft})
	if err != nil || len(trial.Sizes) != 2 {
		t.Errorf("%d sizes, %v", len(trial.Sizes), err)
	}
	stored, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Template: "site"})
	if err != nil || len(stored.Sizes) != 19 {
		t.Errorf("the stored one has %d sizes, %v", len(stored.Sizes), err)
	}
}

func TestDryRunEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.clusters.DryRunTemplate(ctx, b.admin(), clusters.DryRunInput{Template: "site"}); err == nil {
		t.Error("a request that is over has no answer")
	}
}

// levelOf returns the level of a service's action in a plan, the highest of several; 0
// for none.
func levelOf(plan loom.Plan, service string, action loom.TaskAction) int {
	level := 0
	for _, t := range plan.Tasks {
		if t.Service == service && t.Action == action {
			level = max(level, t.Level)
		}
	}
	return level
}

func TestOrderOfAService(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actor := b.actor("admin", loom.RoleAdmin)
	extra := *service("extra", []string{"web"})
	extra.Dependencies.Runtime.Requires = []string{"queue"}
	b.save(b.tenant, loom.KindService, &loom.Service{Base: loom.Base{Name: "rabbit"}, Dependencies: loom.Dependencies{Provides: []string{"queue"}},
		Provisioner: service("rabbit", nil).Provisioner})

	tight := siteTemplate()
	tight.Name, tight.Compatibility.Services = "tight", []string{"base", "db", "web"}
	b.save(b.tenant, loom.KindTemplate, tight)
	if o, err := b.clusters.Order(b.ctx, actor, "site", extra); err != nil || !o.Allowed || len(o.Plan.Tasks) == 0 {
		t.Errorf("a template that allows every service: %+v, %v", o, err)
	}

	// A service that nobody stored, in a template that does not know it.
	o, err := b.clusters.Order(b.ctx, actor, "tight", extra)
	if err != nil {
		t.Fatal(err)
	}
	if o.Unsat != nil || o.Machines != 2 || o.Allowed || !slices.Contains(o.With, "extra") || !slices.Contains(o.With, "rabbit") || slices.Contains(o.With, "web") {
		t.Fatalf("%+v", o)
	}
	for _, before := range []struct {
		service string
		action  loom.TaskAction
		own     loom.TaskAction
	}{{"web", loom.ActionInstall, loom.ActionInstall}, {"rabbit", loom.ActionStart, loom.ActionStart}} {
		first, then := levelOf(o.Plan, before.service, before.action), levelOf(o.Plan, "extra", before.own)
		if first == 0 || then <= first {
			t.Errorf("%s of extra is in stage %d, %s of %s in %d", before.own, then, before.action, before.service, first)
		}
	}

	// The template's own, as stored.
	web := *service("web", []string{"base"})
	o, err = b.clusters.Order(b.ctx, actor, "tight", web)
	if err != nil || !o.Allowed || len(o.Plan.Tasks) == 0 || levelOf(o.Plan, "extra", loom.ActionInstall) != 0 {
		t.Fatalf("%+v: %v", o, err)
	}
}

func TestOrderRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actor := b.actor("admin", loom.RoleAdmin)
	if _, err := b.clusters.Order(b.ctx, actor, "none", *service("x", nil)); loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("an unknown template: %v", err)
	}
	// In a circle with a service of the template.
	db := *service("db", []string{"base"})
	db.Dependencies.Runtime.Requires = []string{"web"}
	if _, err := b.clusters.Order(b.ctx, actor, "site", db); loom.AsError(err).Kind != loom.Invalid {
		t.Errorf("a circle: %v", err)
	}
	// What nobody provides.
	o, err := b.clusters.Order(b.ctx, actor, "site", *service("x", []string{"nowhere"}))
	if err != nil || len(o.Missing) != 1 || len(o.Plan.Tasks) != 0 {
		t.Errorf("a requirement that cannot be met: %+v, %v", o, err)
	}
	if _, err := b.clusters.Order(b.ctx, loom.Actor{Tenant: b.tenant}, "site", db); err == nil {
		t.Error("somebody without any right may see it")
	}
}
