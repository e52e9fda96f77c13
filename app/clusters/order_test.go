package clusters_test

import (
	"slices"
	"testing"

	"loom/app/loom"
)

// levelOf gives the level of a service's action in a plan, the highest of several; 0
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
	if err != nil || len(o.Lost) != 1 || len(o.Plan.Tasks) != 0 {
		t.Errorf("a requirement that cannot be met: %+v, %v", o, err)
	}
	if _, err := b.clusters.Order(b.ctx, loom.Actor{Tenant: b.tenant}, "site", db); err == nil {
		t.Error("somebody without any right may see it")
	}
}
