package catalog

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/lenient"
	"loom/app/loom"
)

// Decode reads an entry of a kind the way clients of the predecessor write it
// (entities.md 5 to 10) and checks its shape. What it gives is complete: what
// entities.md says is always in an answer is there. Errors are Invalid, with the
// names of all wrong fields, or line and column of a syntax error.
func Decode(kind loom.EntityKind, body []byte) (loom.Entry, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return nil, err
	}
	entry, err := decodeObject(kind, o)
	if err != nil {
		return nil, err
	}
	return entry, loom.InvalidFields(shapeErrors(entry, o.Errors()))
}

// shapeErrors adds to the errors of reading those of the entry's own check,
// leaving out fields that could not even be read.
func shapeErrors(entry loom.Entry, found []loom.FieldError) []loom.FieldError {
	errs := slices.Clone(found)
	for _, e := range entry.Validate() {
		if !slices.ContainsFunc(found, func(f loom.FieldError) bool { return f.Field == e.Field }) {
			errs = append(errs, e)
		}
	}
	return errs
}

// decodeObject reads an entry; its field errors are in o. The error is set for
// an unknown kind only.
func decodeObject(kind loom.EntityKind, o *lenient.Object) (loom.Entry, error) {
	base := decodeBase(o)
	switch kind {
	case loom.KindProvider:
		fields := o.FreeObject("provisioner")
		if fields == nil {
			fields = map[string]any{}
		}
		return &loom.Provider{Base: base, Type: o.Text("providertype"), Fields: fields, Fixed: o.Texts("fixed")}, nil
	case loom.KindHardwareType:
		return &loom.HardwareType{Base: base, ProviderMap: decodeProviderMap(o)}, nil
	case loom.KindImageType:
		return &loom.ImageType{Base: base, ProviderMap: decodeProviderMap(o)}, nil
	case loom.KindService:
		return decodeService(base, o), nil
	case loom.KindTemplate:
		return decodeTemplate(base, o), nil
	case loom.KindPartialTemplate:
		return &loom.PartialTemplate{
			Base: base, Defaults: decodeDefaults(o.Object("defaults")), Compatibility: decodeCompatibility(o.Object("compatibility")),
			Constraints: decodeConstraints(o.Object("constraints")), Administration: decodeAdministration(o.Object("administration")),
			Links: decodeLinks(o), Immutable: o.Bool("immutable"),
		}, nil
	case loom.KindProviderType, loom.KindAutomatorType:
		return decodePluginType(base, o), nil
	}
	return nil, loom.NewError(loom.NotFound, "There is no catalog kind “%s”.", kind)
}

func decodeBase(o *lenient.Object) loom.Base {
	o.Int64("version") // must be a number, is overwritten
	return loom.Base{
		Name: o.Text("name"), Label: o.Text("label"), Description: o.Text("description"),
		Icon: o.Text("icon"), Deprecated: o.Bool("deprecated"),
	}
}

func decodeProviderMap(o *lenient.Object) map[string]map[string]string {
	providers := o.Object("providermap")
	entries := map[string]map[string]string{}
	for _, name := range providers.Names() {
		entries[name] = providers.TextMap(name)
	}
	return entries
}

func decodeService(base loom.Base, o *lenient.Object) *loom.Service {
	d := o.Object("dependencies")
	s := &loom.Service{
		Base: base,
		Dependencies: loom.Dependencies{
			Provides: d.Texts("provides"), Conflicts: d.Texts("conflicts"),
			Install: decodePhase(d.Object("install")), Runtime: decodePhase(d.Object("runtime")),
		},
		Provisioner:   loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{}},
		Links:         decodeLinks(o),
		Follows:       o.Texts("follows"),
		Shrink:        o.Text("shrink"),
		DefaultConfig: o.FreeObject("defaultConfig"),
	}
	// Only the install phase has a scope.
	s.Dependencies.Install.Scope = d.Object("install").Text("scope")
	o.Object("provisioner").Each("actions", func(name string, a *lenient.Object) {
		action := loom.ServiceAction{Type: a.Text("type"), Fields: a.TextMap("fields")}
		// Old definitions of the shell automator say data for args.
		if data, old := action.Fields["data"]; old && action.Type == "shell" {
			if _, both := action.Fields["args"]; !both {
				action.Fields["args"] = data
			}
			delete(action.Fields, "data")
		}
		s.Provisioner.Actions[loom.TaskAction(name)] = action
	})
	return s
}

func decodePhase(o *lenient.Object) loom.PhaseDependency {
	return loom.PhaseDependency{Requires: o.Texts("requires"), Uses: o.Texts("uses")}
}

func decodeLinks(o *lenient.Object) []loom.Link {
	links := []loom.Link{}
	o.EachOf("links", func(_ int, l *lenient.Object) {
		links = append(links, loom.Link{Label: l.Text("label"), URL: l.Text("url")})
	})
	return links
}

func decodeTemplate(base loom.Base, o *lenient.Object) *loom.Template {
	t := &loom.Template{
		Base: base, Defaults: decodeDefaults(o.Object("defaults")), Compatibility: decodeCompatibility(o.Object("compatibility")),
		Constraints: decodeConstraints(o.Object("constraints")), Administration: decodeAdministration(o.Object("administration")),
		Links: decodeLinks(o),
	}
	if o.Has("preferences") {
		p := o.Object("preferences")
		t.Preferences = &loom.Preferences{HardwareTypes: p.Texts("hardwaretypes"), ImageTypes: p.Texts("imagetypes")}
	}
	if o.FreeObject("extends") != nil {
		e := o.Object("extends")
		t.Extends = &loom.NameRef{Name: e.Text("name")}
		if t.Extends.Name == "" {
			e.Fail("name", "Name the template that this one extends, or leave extends out.")
		}
	}
	o.EachOf("includes", func(_ int, e *lenient.Object) {
		ref := loom.NameRef{Name: e.Text("name")}
		if ref.Name == "" {
			e.Fail("name", "Name the partial template to include.")
		}
		t.Includes = append(t.Includes, ref)
	})
	return t
}

// decodeDefaults takes services as names and as {"name", "config"}; the config
// of the latter goes to defaults.config under the service's name.
func decodeDefaults(o *lenient.Object) loom.Defaults {
	d := loom.Defaults{
		Services: []string{}, Provider: o.Text("provider"), HardwareType: o.Text("hardwaretype"),
		ImageType: o.Text("imagetype"), DNSSuffix: o.Text("dnsSuffix"), Config: o.FreeObject("config"),
	}
	if d.Config == nil {
		d.Config = map[string]any{}
	}
	elements := o.Array("services")
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		at := "services[" + strconv.Itoa(i) + "]"
		name := ""
		switch v := element.(type) {
		case nil:
			continue
		case map[string]any:
			object := lenient.FromMap(o.Path(at), v)
			name = object.Text("name")
			if name == "" {
				object.Fail("name", "Name the service.")
			}
			if config := object.FreeObject("config"); config != nil {
				d.Config[name] = config
			}
			for _, e := range object.Errors() {
				o.Fail(at, "%s", e.Message)
			}
		default:
			single := lenient.FromMap(o.Path(at), map[string]any{"name": v})
			name = single.Text("name")
			for _, e := range single.Errors() {
				o.Fail(at, "%s", e.Message)
			}
		}
		if name != "" && !seen[name] {
			seen[name] = true
			d.Services = append(d.Services, name)
		}
	}
	return d
}

func decodeCompatibility(o *lenient.Object) loom.Compatibility {
	return loom.Compatibility{HardwareTypes: o.Texts("hardwaretypes"), ImageTypes: o.Texts("imagetypes"), Services: o.Texts("services")}
}

// decodeConstraints fills in the size: 1 to unlimited where nothing is given.
func decodeConstraints(o *lenient.Object) loom.Constraints {
	layout, size := o.Object("layout"), o.Object("size")
	c := loom.Constraints{
		Layout:   loom.LayoutConstraints{MustCoexist: layout.TextSets("mustcoexist"), CantCoexist: layout.TextSets("cantcoexist")},
		Services: map[string]loom.ServiceConstraint{},
		Size:     loom.SizeConstraint{Min: 1, Max: loom.Unlimited},
	}
	// Zero in loom.SizeConstraint means "not given", so an explicit one is caught
	// here; what is no number has been said to be none.
	bound := func(name string, to *int, zero string) {
		said := size.Found()
		n := size.IntPtr(name)
		if n == nil || size.Found() > said {
			return
		}
		if *to = *n; *n == 0 {
			size.Fail(name, "%s", zero)
		}
	}
	bound("min", &c.Size.Min, "A cluster has at least 1 node.")
	bound("max", &c.Size.Max, "The maximum (0) is below the minimum; leave it out for no maximum.")
	o.Each("services", func(name string, s *lenient.Object) {
		constraint := loom.ServiceConstraint{HardwareTypes: s.Texts("hardwaretypes"), ImageTypes: s.Texts("imagetypes")}
		if s.Has("quantities") {
			q := s.Object("quantities")
			constraint.Quantities = &loom.Quantities{Min: q.IntPtr("min"), Max: q.IntPtr("max")}
		}
		c.Services[name] = constraint
	})
	return c
}

func decodeAdministration(o *lenient.Object) loom.Administration {
	l := o.Object("leaseduration")
	return loom.Administration{
		Lease:     loom.LeaseRule{Initial: leaseMillis(l, "initial"), Max: leaseMillis(l, "max"), Step: leaseMillis(l, "step")},
		OnFailure: o.Text("onFailure"),
	}
}

var leaseText = regexp.MustCompile(`^([0-9]{1,18})(s|m|h|d)?$`)

// leaseMillis reads a duration in milliseconds, or a text such as "7d".
func leaseMillis(o *lenient.Object, name string) int64 {
	text, isText := o.Free(name).(string)
	if !isText {
		n := o.Int64(name)
		if n < 0 {
			o.Fail(name, "A duration cannot be negative.")
			return 0
		}
		return n
	}
	match := leaseText.FindStringSubmatch(text)
	if match == nil {
		o.Fail(name, "“%s” is no duration: give milliseconds, or a number with s, m, h or d, such as “7d”.", text)
		return 0
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	units := map[string]time.Duration{"": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	unit := units[match[2]].Milliseconds()
	if err != nil || n > math.MaxInt64/unit/int64(time.Millisecond) {
		o.Fail(name, "The duration “%s” is too long.", text)
		return 0
	}
	return n * unit
}

func decodePluginType(base loom.Base, o *lenient.Object) *loom.PluginType {
	t := &loom.PluginType{Base: base, Parameters: map[string]loom.FieldGroup{}, ResourceTypes: map[string]loom.ResourceType{}}
	o.Each("parameters", func(group string, g *lenient.Object) {
		fields := map[string]loom.FieldSchema{}
		g.Each("fields", func(name string, f *lenient.Object) { fields[name] = decodeField(f) })
		t.Parameters[group] = loom.FieldGroup{Fields: fields, Required: g.TextSets("required")}
	})
	// Some documents of the predecessor write it in lower case.
	for _, spelling := range []string{"resourcetypes", "resourceTypes"} {
		o.Each(spelling, func(name string, r *lenient.Object) {
			t.ResourceTypes[name] = loom.ResourceType{Format: r.TextOr("format", r.Text("filetype")), Permissions: r.Text("permissions")}
		})
	}
	if timeouts := o.Object("timeouts"); len(timeouts.Names()) > 0 {
		t.Timeouts = loom.PluginTimeouts{}
		for _, action := range timeouts.Names() {
			t.Timeouts[loom.TaskAction(strings.ToLower(action))] = timeouts.Int(action)
		}
	}
	for _, action := range o.Texts("actions") {
		t.Actions = append(t.Actions, loom.TaskAction(strings.ToLower(action)))
	}
	return t
}

func decodeField(o *lenient.Object) loom.FieldSchema {
	f := loom.FieldSchema{
		Label: o.Text("label"), Type: o.Text("type"), Tip: o.Text("tip"), Default: o.Free("default"),
		Override: o.Bool("override"), Sensitive: o.Bool("sensitive"), Pattern: o.Text("pattern"),
		Min: o.FloatPtr("min"), Max: o.FloatPtr("max"), ResourceType: o.Text("resourceType"), Role: loom.FieldRole(o.Text("role")),
	}
	if options := o.Texts("options"); len(options) > 0 {
		f.Options = options
	}
	if bound := o.Texts("boundTo"); len(bound) > 0 {
		f.BoundTo = bound
	}
	f.Format = o.Text("format")
	f.Sensitive = f.IsSensitive()
	return f
}
