package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/loom"
)

// What an edit of a service takes from other services and from templates is named, and
// nothing that was wrong before.
func TestBreaks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{
		`{"name":"db","dependencies":{"provides":["store"]}}`, `{"name":"web","dependencies":{"runtime":{"requires":["store"]}}}`,
		`{"name":"front","dependencies":{"runtime":{"uses":["web"]}}}`, `{"name":"lost","dependencies":{"runtime":{"requires":["never"]}}}`, `{"name":"calm"}`,
	} {
		b.save(t, b.admin, loom.KindService, "%s", body)
	}
	b.save(t, b.admin, loom.KindProvider, `{"name":"lab","providertype":"any"}`)
	b.save(t, b.admin, loom.KindHardwareType, `{"name":"small","providermap":{"lab":{"flavor":"s"}}}`)
	b.save(t, b.admin, loom.KindImageType, `{"name":"debian","providermap":{"lab":{"image":"d"}}}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name":"site","defaults":{"provider":"lab","services":["db","web"]}}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name":"pair","defaults":{"provider":"lab","services":["db","calm"]},"constraints":{"size":{"min":1,"max":1}}}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name":"apart","defaults":{"provider":"lab","services":["calm"]}}`)
	for name, c := range map[string]struct {
		body  string
		solve bool
		want  string
	}{
		"nothing":          {`{"name":"db","label":"Store","dependencies":{"provides":["store"]}}`, true, ""},
		"provides no more": {`{"name":"db"}`, false, "services web There is no service “store”, nor one that provides it.; clustertemplates site Its service “web” could no longer be in a cluster."},
		"conflicts":        {`{"name":"db","dependencies":{"provides":["store"],"conflicts":["calm"]}}`, true, "clustertemplates pair"},
		"conflicts, quick": {`{"name":"db","dependencies":{"provides":["store"],"conflicts":["calm"]}}`, false, ""},
		"circle":           {`{"name":"db","dependencies":{"provides":["store"],"runtime":{"requires":["web"]}}}`, false, "services web"},
		"not stored yet":   {`{"name":"new","dependencies":{"conflicts":["calm"]}}`, true, ""},
	} {
		found, err := b.Breaks(b.ctx, b.user, decode(t, loom.KindService, "%s", c.body).(*loom.Service), c.solve)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, f := range found {
			got = append(got, string(f.Kind)+" "+f.Name+" "+f.Message)
		}
		if all := strings.Join(got, "; "); !strings.HasPrefix(all, c.want) || c.want == "" && all != "" {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
	stranger := b.user
	stranger.Scopes = []loom.Scope{}
	if _, err := b.Breaks(b.ctx, stranger, decode(t, loom.KindService, `{"name":"db"}`).(*loom.Service), false); !errors.Is(err, loom.Forbidden) {
		t.Errorf("without rights: %v", err)
	}
}
