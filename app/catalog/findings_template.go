package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/solver"
)

// How long a check searches for layouts: of one template, and of all together.
const (
	solveOne = 250 * time.Millisecond
	solveAll = 3 * time.Second
)

// budget bounds the time that solving takes.
type budget struct {
	all  context.Context
	stop context.CancelFunc
}

func newBudget(ctx context.Context) budget {
	all, stop := context.WithTimeout(ctx, solveAll)
	return budget{all, stop}
}

// template looks at a cluster template as it is when all it builds on is merged.
func (f *finder) template(t *loom.Template) {
	f.layout(t.Constraints.Layout)
	f.macros(t.Defaults.Config, "defaults", "config")
	f.links(t.Links)
	if !f.chain(t) {
		return
	}
	merged := f.merge(t)
	if merged.err != nil {
		f.breach(t, merged.err)
		return
	}
	f.widened(t, merged.template)
	f.strangers(t, merged.template)
	f.settings(merged.template)
	f.defaults(t, merged.template)
}

// chain follows extends. It reports false when the chain has no end; that is
// said about the templates it concerns: those of the circle, or the one that is
// one too deep.
func (f *finder) chain(t *loom.Template) bool {
	path := []string{t.Name}
	for current := t; current.Extends != nil && current.Extends.Name != ""; {
		name := current.Extends.Name
		if name == t.Name {
			f.say(loom.FindingError, loom.FindingCycle, pointer("extends", "name"), t.Extends.Name,
				"Templates extend each other in a circle: "+strings.Join(append(path, name), " → ")+".", "Take one of them out of the circle.")
			return false
		}
		if slices.Contains(path, name) {
			return false // the circle lies further up
		}
		path = append(path, name)
		if len(path) > loom.MaxTemplateDepth {
			f.say(loom.FindingError, loom.FindingCycle, pointer("extends", "name"), t.Extends.Name,
				fmt.Sprintf("Templates may extend each other %d deep; this chain is longer.", loom.MaxTemplateDepth), "Merge some of its templates into one.")
			return false
		}
		next, there := f.entries[loom.KindTemplate][name].(*loom.Template)
		if !there {
			return true // dangling
		}
		current = next
	}
	return true
}

func (f *finder) merge(t *loom.Template) mergeResult {
	if result, known := f.merged[t.Name]; known {
		return result
	}
	merged, err := loom.MergeTemplate(*t, loom.TemplateLookup{Template: lookUp[loom.Template](f, loom.KindTemplate), Partial: lookUp[loom.PartialTemplate](f, loom.KindPartialTemplate)})
	f.merged[t.Name] = mergeResult{merged, err}
	return f.merged[t.Name]
}

func lookUp[T any](f *finder, kind loom.EntityKind) func(name string) (T, error) {
	return func(name string) (T, error) {
		var zero T
		entry, there := f.entries[kind][name]
		if !there {
			return zero, loom.NewError(loom.NotFound, "There is no %s “%s”.", kind.Word(), name)
		}
		return *any(entry).(*T), nil
	}
}

// breach says where a config key is set again that an immutable partial template
// keeps to itself. What is missing has been said as dangling, and what goes wrong
// in a parent is said about the parent.
func (f *finder) breach(t *loom.Template, err error) {
	e := loom.AsError(err)
	if !errors.Is(err, loom.Invalid) || len(e.Fields) == 0 {
		return
	}
	key, isConfig := strings.CutPrefix(e.Fields[0].Field, "defaults.config.")
	if !isConfig {
		return
	}
	if t.Extends != nil {
		if parent, there := f.entries[loom.KindTemplate][t.Extends.Name].(*loom.Template); there && f.merge(parent).err != nil {
			return
		}
	}
	field := pointer("defaults", "config", key)
	if _, own := t.Defaults.Config[key]; !own {
		for i, include := range t.Includes {
			if p, there := f.entries[loom.KindPartialTemplate][include.Name].(*loom.PartialTemplate); there && p.Defaults.Config[key] != nil {
				field = pointer("includes", i, "name")
			}
		}
	}
	f.say(loom.FindingError, loom.FindingImmutable, field, key, e.Fields[0].Message, "Take the key out, or do not include the immutable partial template.")
}

// defaults looks whether the defaults make a cluster of the smallest size.
func (f *finder) defaults(t *loom.Template, merged loom.Template) {
	d := merged.Defaults
	for _, e := range loom.CheckDNSSuffix("dnsSuffix", d.DNSSuffix) {
		f.say(loom.FindingError, loom.FindingUnsolvable, pointer("defaults", "dnsSuffix"), d.DNSSuffix, e.Message, "Give a name such as “lab.example”.")
	}
	// A template that others build on may leave these to them, and any may leave
	// them to the request.
	lacks := func(field, what string) {
		if !f.extended[t.Name] {
			f.say(loom.FindingWarning, loom.FindingUnsolvable, pointer("defaults", field), "", "It names no default "+what+", so every request must.", "Name one in “defaults”.")
		}
	}
	if d.Provider == "" {
		lacks("provider", "provider")
	}
	if len(d.Services) == 0 {
		lacks("services", "services")
	}
	if f.quick || d.Provider == "" || len(d.Services) == 0 || !f.present(d) {
		return
	}
	if f.budget.all.Err() != nil {
		f.late()
		return
	}
	ctx, cancel := context.WithTimeout(f.budget.all, solveOne)
	defer cancel()
	unsat, err := f.solve(ctx, merged)
	switch {
	case errors.Is(err, loom.Unavailable):
		f.late()
	case err != nil:
		f.say(loom.FindingError, loom.FindingUnsolvable, pointer("constraints"), "", loom.AsError(err).Message, "Make the constraints simpler.")
	case unsat != nil:
		f.unsolvable(merged, unsat)
	}
}

// settings holds the config of a template against the parameters of its services. What is
// missing a request can still bring.
func (f *finder) settings(merged loom.Template) {
	chosen, config := map[string]loom.Service{}, map[string]any{}
	for _, name := range slices.Sorted(slices.Values(merged.Defaults.Services)) {
		if s, there := f.services[name]; there {
			chosen[name] = s
			config = loom.MergePatch(config, s.Defaults())
		}
	}
	config = loom.MergePatch(config, merged.Defaults.Config)
	for _, e := range (loom.SettingsCheck{Services: chosen, Partly: true}).Check(config) {
		at := pointer("defaults", "services")
		key, isValue := strings.CutPrefix(e.Field, "config.")
		if isValue {
			at = pointer("defaults", "config") + pointer(anyOf(strings.Split(key, "."))...)
		}
		f.say(loom.FindingError, loom.FindingParameter, at, key, e.Message, "Correct the value, or the parameter of the service.")
	}
}

func anyOf(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

func (f *finder) late() {
	f.say(loom.FindingWarning, loom.FindingUnsolvable, pointer("constraints"), "", "Whether its defaults have a layout was not found out in time.",
		"Check this template alone; if that does not help, make its constraints simpler.")
}

// present reports whether all that defaults name is there; what is not has been
// said as dangling.
func (f *finder) present(d loom.Defaults) bool {
	has := func(kind loom.EntityKind, name string) bool {
		_, there := f.entries[kind][name]
		return there || name == ""
	}
	return has(loom.KindProvider, d.Provider) && has(loom.KindHardwareType, d.HardwareType) && has(loom.KindImageType, d.ImageType) &&
		!slices.ContainsFunc(d.Services, func(name string) bool { return !has(loom.KindService, name) })
}

// solve says why a merged template has no layout at its smallest size, nil when
// it has one.
func (f *finder) solve(ctx context.Context, merged loom.Template) (*loom.Unsat, error) {
	smallest, _ := merged.Constraints.Size.Bounds()
	d, c := merged.Defaults, merged.Constraints
	in := solver.Input{Template: merged, Machines: smallest, Catalog: f.services}
	named := [2]map[string]bool{{}, {}}
	for _, s := range c.Services {
		for _, name := range s.HardwareTypes {
			named[0][name] = true
		}
		for _, name := range s.ImageTypes {
			named[1][name] = true
		}
	}
	for _, name := range f.candidates(loom.KindHardwareType, f.hardware[d.Provider], d.HardwareType, merged.Compatibility.HardwareTypes, named[0]) {
		in.HardwareTypes = append(in.HardwareTypes, *f.entries[loom.KindHardwareType][name].(*loom.HardwareType))
	}
	for _, name := range f.candidates(loom.KindImageType, f.images[d.Provider], d.ImageType, merged.Compatibility.ImageTypes, named[1]) {
		in.ImageTypes = append(in.ImageTypes, *f.entries[loom.KindImageType][name].(*loom.ImageType))
	}
	problem, unsat := solver.NewProblem(in)
	if unsat != nil {
		return unsat, nil
	}
	if sizes, some, err := solver.Sizes(ctx, problem); err != nil || some && sizes.Min <= smallest && smallest <= sizes.Max {
		return nil, err
	}
	_, unsat, err := solver.Solve(ctx, problem)
	return unsat, err
}

// candidates are the types that tell whether there is a layout: the one that is
// wanted, else those allowed, else all that the provider can use. Of those that no
// constraint names one stands for all, so that a template costs no more in a
// catalog of thousands of types.
func (f *finder) candidates(kind loom.EntityKind, usable []string, wanted string, allowed []string, named map[string]bool) []string {
	if wanted != "" {
		return []string{wanted}
	}
	if len(allowed) > 0 {
		return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(allowed))), func(name string) bool { return f.entries[kind][name] == nil })
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if f.entries[kind][name] != nil {
			out = append(out, name)
		}
	}
	for _, name := range usable {
		if !named[name] {
			return append(out, name)
		}
	}
	return out
}

// unsolvable says why the defaults have no layout at the smallest size. It is an
// error when there is none at any size.
func (f *finder) unsolvable(merged loom.Template, unsat *loom.Unsat) {
	var reasons []string
	for _, r := range unsat.Reasons {
		reasons = append(reasons, r.Message)
	}
	smallest, _ := merged.Constraints.Size.Bounds()
	field, value := pointer("defaults"), strconv.Itoa(smallest)
	severity, remedy := loom.FindingError, "Change the defaults or the constraints named here."
	if unsat.Sizes != nil {
		field, severity = pointer("constraints", "size", "min"), loom.FindingWarning
		remedy = fmt.Sprintf("Set the smallest size to %d, or change the constraints named here.", unsat.Sizes.Min)
	}
	message := fmt.Sprintf("Its defaults have no layout at the smallest size, %d: %s", smallest, strings.Join(append([]string{unsat.Headline}, reasons...), " "))
	f.say(severity, loom.FindingUnsolvable, field, value, message, remedy)
}
