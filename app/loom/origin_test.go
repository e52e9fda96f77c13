package loom_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
)

func originWorld() (loom.Template, loom.TemplateLookup) {
	base := loom.Template{
		Base:     loom.Base{Name: "base"},
		Defaults: loom.Defaults{Services: []string{"os"}, Provider: "lab", HardwareType: "small", Config: map[string]any{"a": 1, "b": 1}},
		Constraints: loom.Constraints{Size: loom.SizeConstraint{Min: 2, Max: 9}, Layout: loom.LayoutConstraints{CantCoexist: [][]string{{"x", "y"}}},
			Services: map[string]loom.ServiceConstraint{"x": {HardwareTypes: []string{"small"}}}},
		Administration: loom.Administration{Lease: loom.LeaseRule{Initial: 86400000}, OnFailure: "undo", Health: loom.HealthRule{Interval: new(60)}, Repair: loom.RepairPolicy{Service: loom.RepairDo, Gone: loom.RepairTell}},
		Links:          []loom.Link{{Label: "Console", URL: "http://one"}},
		Includes:       []loom.NameRef{{Name: "audit"}},
	}
	audit := loom.PartialTemplate{Base: loom.Base{Name: "audit"}, Immutable: true,
		Defaults: loom.Defaults{Services: []string{"agent"}, Provider: "cloud", Config: map[string]any{"audit": true}},
		// Partial templates have no say in these.
		Constraints: loom.Constraints{Size: loom.SizeConstraint{Min: 5}}, Administration: loom.Administration{OnFailure: "keep"}}
	own := loom.Template{Base: loom.Base{Name: "own"}, Extends: &loom.NameRef{Name: "base"},
		Defaults:       loom.Defaults{Services: []string{"web", "os"}, HardwareType: "large", Config: map[string]any{"b": 2}},
		Compatibility:  loom.Compatibility{Services: []string{"web"}},
		Constraints:    loom.Constraints{Services: map[string]loom.ServiceConstraint{"x": {HardwareTypes: []string{"large"}}}, Layout: loom.LayoutConstraints{CantCoexist: [][]string{{"y", "x"}}}},
		Links:          []loom.Link{{Label: "Console", URL: "http://two"}},
		Administration: loom.Administration{Repair: loom.RepairPolicy{Gone: loom.RepairAsk}},
	}
	return own, loom.TemplateLookup{
		Template: func(name string) (loom.Template, error) {
			if name == "base" {
				return base, nil
			}
			return loom.Template{}, loom.NewError(loom.NotFound, "no %s", name)
		},
		Partial: func(name string) (loom.PartialTemplate, error) {
			if name == "audit" {
				return audit, nil
			}
			return loom.PartialTemplate{}, loom.NewError(loom.NotFound, "no %s", name)
		},
	}
}

func TestTemplateOrigins(t *testing.T) {
	t.Parallel()
	own, find := originWorld()
	found, err := loom.TemplateOrigins(own, find)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, o := range found {
		line := fmt.Sprintf("%s = %s from %s %s", o.Path, o.Value, o.Kind.Word(), o.Name)
		if len(o.Over) > 0 {
			line += " over " + strings.Join(o.Over, ", ")
		}
		if o.Locked {
			line += ", locked"
		}
		lines = append(lines, line)
	}
	want := []string{
		"defaults.services.agent = agent from partial template audit",
		"defaults.services.os = os from template base",
		"defaults.services.web = web from template own",
		"defaults.provider = lab from template base over audit",
		"defaults.hardwaretype = large from template own over base",
		"defaults.config.a = 1 from template base",
		"defaults.config.audit = true from partial template audit, locked",
		"defaults.config.b = 2 from template own over base",
		"compatibility.services.web = web from template own",
		"constraints.size = 2 to 9 from template base",
		"constraints.layout.cantcoexist.x, y = x, y from template base",
		`constraints.services.x = {"hardwaretypes":["large"],"imagetypes":null} from template own over base`,
		"administration.leaseduration = initial 1 day, maximum unlimited, step unlimited from template base",
		"administration.onFailure = undo from template base",
		"administration.health.interval = 60 from template base",
		"administration.repair.service = do from template base",
		"administration.repair.gone = ask from template own over base",
		"links.Console = http://two from template own over base",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	// What has an origin is what the merged template has.
	merged, err := loom.MergeTemplate(own, find)
	if err != nil || len(merged.Defaults.Config) != 3 || merged.Defaults.Provider != "lab" {
		t.Errorf("merged %+v, %v", merged.Defaults, err)
	}
	own.Defaults.Config["audit"] = false
	if _, err := loom.TemplateOrigins(own, find); !errors.Is(err, loom.Invalid) {
		t.Errorf("a locked key: %v", err)
	}
	own.Includes = []loom.NameRef{{Name: "none"}}
	if _, err := loom.TemplateOrigins(own, find); !errors.Is(err, loom.NotFound) {
		t.Errorf("a part that is not there: %v", err)
	}
}

// TestMergeKeepsEveryField: a template that builds on nothing is merged to itself, and so is
// one that says nothing and extends it.
func TestMergeKeepsEveryField(t *testing.T) {
	t.Parallel()
	full := *testkit.FullEntry(loom.KindTemplate).(*loom.Template)
	full.Extends, full.Includes = nil, nil
	find := loom.TemplateLookup{Template: func(string) (loom.Template, error) { return full, nil }}
	empty := loom.Template{Base: loom.Base{Name: "empty"}, Extends: &loom.NameRef{Name: full.Name}}
	for _, given := range []loom.Template{full, empty} {
		merged, err := loom.MergeTemplate(given, find)
		if err != nil {
			t.Fatal(err)
		}
		want := full
		want.Base, want.Extends = given.Base, given.Extends
		if !reflect.DeepEqual(merged, want) {
			t.Errorf("%s: merged\n%+v\nwant\n%+v", given.Name, merged, want)
		}
	}
}
