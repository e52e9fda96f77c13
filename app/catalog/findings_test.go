package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// catalogOf makes a finder of entries by kind, each a JSON body.
func catalogOf(t testing.TB, bodies map[loom.EntityKind][]string) *finder {
	t.Helper()
	f := newFinder()
	for kind, list := range bodies {
		for _, body := range list {
			entry, err := Decode(kind, []byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			entry.Meta().Version = 7
			f.add(kind, entry)
		}
	}
	return f
}

func everything(loom.EntityKind, string) bool { return true }

// sound is a catalog without findings.
func sound() map[loom.EntityKind][]string {
	return map[loom.EntityKind][]string{
		loom.KindProviderType: {`{"name":"cloud","parameters":{"admin":{"fields":{"user":{"label":"U","type":"text"},"secret":{"label":"S","type":"password"},"key":{"label":"K","type":"text"}},
			"required":[["user","secret"],["key"]]}}}`},
		loom.KindAutomatorType: {`{"name":"shell"}`},
		loom.KindProvider:      {`{"name":"lab","providertype":"cloud","provisioner":{"key":"k"}}`},
		loom.KindHardwareType:  {`{"name":"small","providermap":{"lab":{"flavor":"s"}}}`, `{"name":"large","providermap":{"lab":{"flavor":"l"}}}`},
		loom.KindImageType:     {`{"name":"deb12","providermap":{"lab":{"image":"i"}}}`},
		loom.KindService: {
			`{"name":"db","dependencies":{"provides":["store"]},"provisioner":{"actions":{"start":{"type":"shell"}}}}`,
			`{"name":"web","dependencies":{"runtime":{"requires":["store"],"uses":["db"]}},"follows":["store"],"links":[{"url":"http://%ip.self%/"}]}`,
		},
		loom.KindPartialTemplate: {`{"name":"locked","immutable":true,"defaults":{"config":{"audit":true}}}`},
		loom.KindTemplate: {
			`{"name":"base","includes":[{"name":"locked"}],"defaults":{"provider":"lab"}}`, // others build on it
			`{"name":"site","extends":{"name":"base"},"defaults":{"services":["web","db"],"config":{"peers":"%host.service.db%"}},
				"constraints":{"size":{"min":2},"layout":{"cantcoexist":[["web","db"]]}}}`,
		},
	}
}

// TestFindings breaks the sound catalog in one place each.
func TestFindings(t *testing.T) {
	t.Parallel()
	template := func(rest string) string {
		return `{"name":"t","defaults":{"provider":"lab","services":["db"]}` + rest + `}`
	}
	for _, c := range []struct {
		name string
		kind loom.EntityKind
		body string
		want []string // severity code kind/name field value
	}{
		{"provider type", loom.KindProvider, `{"name":"p","providertype":"none"}`, []string{"error dangling providers/p /providertype none"}},
		{"incomplete", loom.KindProvider, `{"name":"p","providertype":"cloud","provisioner":{"user":"u","key":""}}`, []string{"error incomplete providers/p /provisioner "}},
		{"complete", loom.KindProvider, `{"name":"p","providertype":"cloud","provisioner":{"user":"u","secret":"s"}}`, nil},
		{"no map", loom.KindHardwareType, `{"name":"h"}`, []string{"warning no_mapping hardwaretypes/h /providermap "}},
		{"no flavor", loom.KindHardwareType, `{"name":"h","providermap":{"lab":{"flavour":"x"}}}`, []string{"warning no_mapping hardwaretypes/h /providermap "}},
		{"no image", loom.KindImageType, `{"name":"i","providermap":{"lab":{"flavor":"x"}}}`, []string{"warning no_mapping imagetypes/i /providermap "}},
		{"other provider", loom.KindImageType, `{"name":"i","providermap":{"far/east":{"image":"x"}}}`,
			[]string{"warning dangling imagetypes/i /providermap/far~1east far/east", "warning no_mapping imagetypes/i /providermap "}},
		{"one provider more", loom.KindHardwareType, `{"name":"h","providermap":{"lab":{"flavor":"x"},"far":{"flavor":"x"}}}`, []string{"warning dangling hardwaretypes/h /providermap/far far"}},
		{"service", loom.KindService, `{"name":"s","dependencies":{"conflicts":["c"],"install":{"requires":["a","store"],"uses":["b"]}},"follows":["d"],"provisioner":{"actions":{"stop":{"type":"magic"}}}}`,
			[]string{"error dangling services/s /dependencies/install/requires/0 a", "error dangling services/s /provisioner/actions/stop/type magic",
				"warning dangling services/s /dependencies/conflicts/0 c", "warning dangling services/s /dependencies/install/uses/0 b", "warning dangling services/s /follows/0 d"}},
		{"circle", loom.KindService, `{"name":"db","dependencies":{"provides":["store"],"install":{"uses":["db"]},"runtime":{"requires":["web"]}}}`,
			[]string{"error cycle services/db /dependencies/runtime/requires/0 web", "error cycle services/web /dependencies/runtime/requires/0 db"}},
		{"macros of a service", loom.KindService, `{"name":"s","links":[{"url":"x"},{"url":"http://%ip.nobody%/"}],"defaultConfig":{"a/b":["%host.service.%"]}}`,
			[]string{"error macro services/s /defaultConfig/a~1b/0 %host.service.%", "error macro services/s /links/1/url %ip.nobody%"}},
		{"macros of a template", loom.KindTemplate, `{"name":"t","defaults":{"provider":"lab","services":["db"],"config":{"p":"50% to 60%"}},"links":[{"url":"%host.%"}]}`,
			[]string{"error macro clustertemplates/t /defaults/config/p % to 60%", "error macro clustertemplates/t /links/0/url %host.%"}},
		{"macros of a part", loom.KindPartialTemplate, `{"name":"p","defaults":{"config":{"p":"%no%"}}}`, []string{"error macro partialtemplates/p /defaults/config/p %no%"}},
		{"defaults", loom.KindTemplate, `{"name":"t","defaults":{"provider":"p","services":["db","x"],"hardwaretype":"h","imagetype":"i"}}`,
			[]string{"error dangling clustertemplates/t /defaults/services/1 x", "error dangling clustertemplates/t /defaults/provider p",
				"error dangling clustertemplates/t /defaults/hardwaretype h", "error dangling clustertemplates/t /defaults/imagetype i"}},
		{"a provided name is no service", loom.KindTemplate, `{"name":"t","defaults":{"provider":"lab","services":["store"]}}`, []string{"error dangling clustertemplates/t /defaults/services/0 store"}},
		{"compatibility", loom.KindTemplate, template(`,"compatibility":{"services":["db","x"],"hardwaretypes":["small","h"],"imagetypes":["deb12","i"]}`),
			[]string{"warning dangling clustertemplates/t /compatibility/hardwaretypes/1 h", "warning dangling clustertemplates/t /compatibility/imagetypes/1 i",
				"warning dangling clustertemplates/t /compatibility/services/1 x"}},
		{"constraints", loom.KindTemplate, template(`,"preferences":{"hardwaretypes":["h"],"imagetypes":["i"]},"constraints":{"services":{"x":{"hardwaretypes":["h"],"imagetypes":["i"]}},"layout":{"mustcoexist":[["db","y"]],"cantcoexist":[["z","db"]]}}`),
			[]string{"warning dangling clustertemplates/t /constraints/layout/mustcoexist/0/1 y", "warning dangling clustertemplates/t /constraints/layout/cantcoexist/0/0 z",
				"warning dangling clustertemplates/t /constraints/services/x x", "warning dangling clustertemplates/t /constraints/services/x/hardwaretypes/0 h",
				"warning dangling clustertemplates/t /constraints/services/x/imagetypes/0 i", "warning dangling clustertemplates/t /preferences/hardwaretypes/0 h",
				"warning dangling clustertemplates/t /preferences/imagetypes/0 i"}},
		{"parents", loom.KindTemplate, template(`,"extends":{"name":"x"},"includes":[{"name":"locked"},{"name":"y"}]`),
			[]string{"error dangling clustertemplates/t /extends/name x", "error dangling clustertemplates/t /includes/1/name y"}},
		{"extends itself", loom.KindTemplate, template(`,"extends":{"name":"t"}`), []string{"error cycle clustertemplates/t /extends/name t"}},
		{"circle of templates", loom.KindTemplate, `{"name":"base","extends":{"name":"site"}}`,
			[]string{"error cycle clustertemplates/base /extends/name site", "error cycle clustertemplates/site /extends/name base"}},
		{"immutable", loom.KindTemplate, `{"name":"t","extends":{"name":"base"},"defaults":{"services":["db"],"config":{"audit":1}}}`, []string{"error immutable clustertemplates/t /defaults/config/audit audit"}},
		{"immutable, in the parent only", loom.KindTemplate, `{"name":"base","includes":[{"name":"locked"}],"defaults":{"provider":"lab","config":{"audit":1}}}`,
			[]string{"error immutable clustertemplates/base /defaults/config/audit audit"}},
		{"one alone may be nowhere", loom.KindTemplate, template(`,"constraints":{"layout":{"cantcoexist":[[],["web"]]}}`),
			[]string{"warning pointless clustertemplates/t /constraints/layout/cantcoexist/1 web"}},
		{"no provider", loom.KindTemplate, `{"name":"t","defaults":{"services":["db"]}}`, []string{"warning unsolvable clustertemplates/t /defaults/provider "}},
		{"no services", loom.KindTemplate, `{"name":"t","defaults":{"provider":"lab"}}`, []string{"warning unsolvable clustertemplates/t /defaults/services "}},
		{"suffix", loom.KindTemplate, `{"name":"t","defaults":{"provider":"lab","services":["db"],"dnsSuffix":"a..b"}}`, []string{"error unsolvable clustertemplates/t /defaults/dnsSuffix a..b"}},
		{"smallest size", loom.KindTemplate, `{"name":"site","extends":{"name":"base"},"defaults":{"services":["web","db"]},"constraints":{"layout":{"cantcoexist":[["web","db"]]}}}`,
			[]string{"warning unsolvable clustertemplates/site /constraints/size/min 1"}},
		{"any size", loom.KindTemplate, template(`,"constraints":{"size":{"min":3,"max":4},"services":{"db":{"quantities":{"max":2}}}}`), []string{"error unsolvable clustertemplates/t /defaults 3"}},
		{"requirement", loom.KindTemplate, `{"name":"t","defaults":{"provider":"lab","services":["web"]}}`, []string{"error unsolvable clustertemplates/t /defaults 1"}},
		{"no size of machine", loom.KindTemplate, template(`,"compatibility":{"imagetypes":["deb12"],"hardwaretypes":["other"]}`),
			[]string{"error unsolvable clustertemplates/t /defaults 1", "warning dangling clustertemplates/t /compatibility/hardwaretypes/0 other"}},
		{"machines for one service only", loom.KindTemplate, template(`,"constraints":{"services":{"db":{"hardwaretypes":["large"],"quantities":{"min":1}}}}`), nil},
		{"deprecated entries are there", loom.KindProvider, `{"name":"lab","providertype":"cloud","deprecated":true,"provisioner":{"key":"k"}}`, nil},
	} {
		bodies := sound()
		f := catalogOf(t, bodies)
		entry, err := Decode(c.kind, []byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if p, ok := entry.(*loom.Provider); ok && p.Fields["secret"] != nil {
			delete(p.Fields, "secret")
			p.Sealed = []string{"secret"}
		}
		entry.Meta().Version = 7
		f.add(c.kind, entry)
		found, err := f.find(t.Context(), everything)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range found {
			got = append(got, fmt.Sprintf("%s %s %s/%s %s %s", x.Severity, x.Code, x.Kind, x.Name, x.Field, x.Value))
			if x.Message == "" || x.Remedy == "" || x.Version != 7 || !strings.HasSuffix(x.Message, ".") && !strings.HasSuffix(x.Message, ")") {
				t.Errorf("%s: incomplete finding %+v", c.name, x)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestChainsThatAreTooDeep(t *testing.T) {
	t.Parallel()
	f := catalogOf(t, sound())
	for i := range loom.MaxTemplateDepth + 2 {
		parent := fmt.Sprintf("t%02d", i-1)
		if i == 0 {
			parent = "base"
		}
		entry, err := Decode(loom.KindTemplate, fmt.Appendf(nil, `{"name":"t%02d","extends":{"name":%q},"defaults":{"services":["db"]}}`, i, parent))
		if err != nil {
			t.Fatal(err)
		}
		f.add(loom.KindTemplate, entry)
	}
	found, err := f.find(t.Context(), func(kind loom.EntityKind, name string) bool { return kind == loom.KindTemplate && name[0] == 't' })
	if err != nil || len(found) != 3 || found[0].Name != "t15" || found[0].Code != loom.FindingCycle {
		t.Errorf("found %+v, %v", found, err)
	}
}

// large is a catalog of n entries in which everything is connected.
func large(t testing.TB, n int) *finder {
	bodies := sound()
	for i := range n / 4 {
		bodies[loom.KindHardwareType] = append(bodies[loom.KindHardwareType], fmt.Sprintf(`{"name":"h%d","providermap":{"lab":{"flavor":"x"}}}`, i))
		bodies[loom.KindImageType] = append(bodies[loom.KindImageType], fmt.Sprintf(`{"name":"i%d","providermap":{"lab":{"image":"x"}}}`, i))
		bodies[loom.KindService] = append(bodies[loom.KindService],
			fmt.Sprintf(`{"name":"s%d","dependencies":{"runtime":{"requires":["s%d"]}},"provisioner":{"actions":{"start":{"type":"shell"}}}}`, i, (i+1)%(n/4)))
		bodies[loom.KindTemplate] = append(bodies[loom.KindTemplate],
			fmt.Sprintf(`{"name":"t%d","extends":{"name":"site"},"defaults":{"config":{"n":%d}},"constraints":{"services":{"web":{"hardwaretypes":["h%d"],"quantities":{"max":3}}}}}`, i, i, i))
	}
	return catalogOf(t, bodies)
}

// A catalog of 10,000 entries is checked as a whole: every service is in one
// circle, and every template is solved.
func TestLargeCatalog(t *testing.T) {
	t.Parallel()
	f := large(t, 10_000)
	found, err := f.find(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[loom.FindingCode]int{}
	for _, x := range found {
		codes[x.Code]++
	}
	if codes[loom.FindingCycle] != 2500 || codes[loom.FindingNoMapping] != 0 {
		t.Errorf("found %v", codes)
	}
}

// However services name each other, the work grows with what is written.
func TestManyServicesOfOneName(t *testing.T) {
	t.Parallel()
	bodies := map[loom.EntityKind][]string{}
	for i := range 10_000 {
		bodies[loom.KindService] = append(bodies[loom.KindService], fmt.Sprintf(`{"name":"s%d","dependencies":{"provides":["x"],"install":{"requires":["x"]}}}`, i))
	}
	found, err := catalogOf(t, bodies).find(t.Context(), everything)
	if err != nil || len(found) != 2 || found[0].Code != loom.FindingCycle || found[0].Field != "/dependencies/install/requires/0" {
		t.Errorf("found %+v, %v", found, err)
	}
}

func BenchmarkFindings(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		f := large(b, 10_000)
		b.StartTimer()
		if _, err := f.find(context.Background(), everything); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if found, err := catalogOf(t, sound()).find(ctx, everything); err == nil {
		t.Errorf("a check that had no time found %v", found)
	}
}

// TestFlavorsOfLocalMachines: the form of their flavors is known, and so is what hosts
// allow.
func TestFlavorsOfLocalMachines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flavor, want string }{
		{"mem=512m,cores=1", ""},
		{"mem=4g", ""}, // one host takes it
		{"mem=32g", "“mem=32g” is more than “mem=8g”"},
		{"m1.small", "is not one of local machines: “m1.small”"},
	} {
		f := catalogOf(t, map[loom.EntityKind][]string{
			loom.KindProvider:     {`{"name":"here","providertype":"local"}`, `{"name":"cloud","providertype":"aws"}`},
			loom.KindHardwareType: {fmt.Sprintf(`{"name":"small","providermap":{"here":{"flavor":%q},"cloud":{"flavor":"anything"}}}`, c.flavor)},
		})
		f.local = []loom.LocalLimits{{Memory: 2 << 30}, {Memory: 8 << 30}}
		found, err := f.find(t.Context(), func(kind loom.EntityKind, _ string) bool { return kind == loom.KindHardwareType })
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, c.want) || found[0].Field != "/providermap/here/flavor") {
			t.Errorf("%s: %+v", c.flavor, found)
		}
	}
}
