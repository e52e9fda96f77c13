package clusters_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// remove deletes all versions of a service.
func (b *bundle) remove(service string) {
	b.t.Helper()
	b.exec(func(tx *sqlx.Tx) error {
		_, err := store.DeleteCatalogVersions(b.ctx, tx, b.tenant, loom.KindService, service, 0)
		return err
	})
}

// What a template names and nobody made, or somebody deleted, is said alone and in
// place of what a search would find, by everything that a create goes through.
func TestMissingServices(t *testing.T) {
	t.Parallel()
	const (
		named    = "The template site uses the service web, which does not exist. An administrator can create it, or remove it from the template."
		required = "The service web requires db, which does not exist, and no service provides it. An administrator can create it, or remove it from the dependencies of web."
	)
	allowing := siteTemplate()
	allowing.Defaults.Services, allowing.Compatibility.Services = []string{"base"}, []string{"base", "web"}
	requiring := siteTemplate()
	requiring.Defaults.Services = []string{"base", "web"}
	for name, c := range map[string]struct {
		template *loom.Template
		remove   string
		services []string
		field    string
		message  string
	}{
		"by default":            {siteTemplate(), "web", nil, "clusterTemplate", named},
		"by default, asked for": {siteTemplate(), "web", []string{"base", "web"}, "services", named},
		"allowed, asked for":    {allowing, "web", []string{"base", "web"}, "services", named},
		"required":              {requiring, "db", nil, "clusterTemplate", required},
		"required, asked for":   {requiring, "db", []string{"web", "base"}, "services", required},
		"named and required": {siteTemplate(), "db", nil, "clusterTemplate",
			strings.ReplaceAll(named, "service web", "service db")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.save(b.tenant, loom.KindTemplate, c.template)
			b.remove(c.remove)
			in := request(2)
			in.Services = c.services
			check, err := b.clusters.Check(b.ctx, b.ana(), in)
			if err != nil {
				t.Fatal(err)
			}
			if check.Fits || check.Unsat != nil || len(check.Layout) > 0 {
				t.Errorf("fits %v, layout %v, unsat %+v", check.Fits, check.Layout, check.Unsat)
			}
			_, previewed := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
			_, created := b.clusters.Create(b.ctx, b.ana(), in)
			want := loom.FieldError{Field: c.field, Message: c.message}
			for step, fields := range map[string][]loom.FieldError{
				"check": check.Fields, "preview": wantKind(t, previewed, loom.Invalid).Fields, "create": wantKind(t, created, loom.Invalid).Fields,
			} {
				if len(fields) != 1 || fields[0] != want {
					t.Errorf("%s: %+v, want only %+v", step, fields, want)
				}
			}
		})
	}
}

// A template that names a lost service makes clusters of its other services, and what
// only the request names is still told as the request's mistake.
func TestMissingServicesThatDoNotMatter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remove("web")
	in := request(2)
	in.Services = []string{"base", "db"}
	if check, err := b.clusters.Check(b.ctx, b.ana(), in); err != nil || !check.Fits {
		t.Errorf("%+v, %v", check, err)
	}
	in.Services = []string{"base", "ghost"}
	_, err := b.clusters.Create(b.ctx, b.ana(), in)
	if e := wantKind(t, err, loom.Unsolvable); e.Unsat == nil || !strings.Contains(e.Unsat.Reasons[0].Message, "ghost") {
		t.Errorf("%+v", e)
	}
}

// All that can be looked at by itself is told in one go.
func TestErrorsAreReportedTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := request(0)
	in.Name, in.Template, in.Provider, in.Machines = "a b", "nothing", "nowhere", 100_000
	_, err := b.clusters.Create(b.ctx, b.ana(), in)
	var fields []string
	for _, f := range wantKind(t, err, loom.Invalid).Fields {
		fields = append(fields, f.Field)
	}
	if got := strings.Join(fields, " "); got != "name numMachines clusterTemplate provider" {
		t.Errorf("fields %s in %v", got, err)
	}
	// Without mistakes of the request's own it stays “not found”.
	in = request(2)
	in.Template, in.Provider = "nothing", "nowhere"
	_, err = b.clusters.Create(b.ctx, b.ana(), in)
	if e := wantKind(t, err, loom.NotFound); len(e.Fields) != 2 || !strings.Contains(e.Message, "nothing") {
		t.Errorf("%+v", e)
	}
}
