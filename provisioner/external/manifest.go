package external

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// Kinds of types.
const (
	KindProvider  = "provider"
	KindAutomator = "automator"
)

// Manifest is the file plugin.json.
type Manifest struct {
	// Protocol are the versions that the plugin speaks, Revision is the newest of version 1:
	// 1 for 1.1. Version is the plugin's own.
	Protocol                             []int
	Revision                             int
	Name, Version, Description, Homepage string
	// Command is the argument list: the first element is relative to the
	// plugin's directory if it has a slash, else found in the PATH.
	Command []string
	Types   map[string]Type
	// Timeouts are seconds per action; what is missing has no limit of its own.
	Timeouts map[string]int
	// Env names variables of the host that are passed on.
	Env []string
	// ExitCode says that no result message is needed.
	ExitCode bool
	// MemoryMB is the limit of address space in MB, 0 for none; OpenFiles of files.
	MemoryMB, OpenFiles int
	// Replaces names built-in types that the plugin takes over.
	Replaces []string
}

// Type is one type of a manifest.
type Type struct {
	Kind string
	// Actions in lower case; those left out are never called.
	Actions []string
	// CloudConfirm: the plugin waits for the cloud only, Loom does the rest of
	// CONFIRM.
	CloudConfirm bool
	// NeedsProviderCredentials returns an automator the sensitive fields of the
	// provider.
	NeedsProviderCredentials bool
	// Describes is the type for the catalog.
	Describes loom.PluginType
}

// actionList lists the machines of a provider. It is no task.
const actionList = "list"

var (
	providerActions  = []string{"create", "confirm", "delete"}
	automatorActions = []string{"bootstrap", "install", "configure", "initialize", "start", "stop", "remove"}
	// optionalActions are those that a type has only when it says so, by kind.
	optionalActions = map[string][]string{KindProvider: {actionList, string(loom.ActionReboot)}, KindAutomator: {"drain"}}

	pluginName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Has reports whether the type carries out an action.
func (t Type) Has(action string) bool { return slices.Contains(t.Actions, action) }

// DecodeManifest reads a manifest. The error, of kind loom.Invalid, names every
// field that is wrong; warnings are about keys that are not known.
func DecodeManifest(data []byte) (m Manifest, warnings []string, err error) {
	to := &problems{}
	o, err := readObject(data, to)
	if err != nil {
		return m, nil, loom.NewError(loom.Invalid, "The manifest cannot be read: %v.", err)
	}
	m = Manifest{Name: o.text("name"), Version: o.text("version"), Description: o.text("description"), Homepage: o.text("homepage"),
		Command: o.texts("command"), Env: o.texts("env"), Replaces: o.texts("replaces"), Types: map[string]Type{}, Timeouts: map[string]int{}}
	o.take("$schema") // for editors
	m.protocols(o)
	o.each("types", func(name string, t *object) { m.Types[name] = decodeType(name, t, m.Description) })
	if timeouts := o.member("timeouts"); timeouts != nil {
		for _, action := range slices.Concat(providerActions, automatorActions, optionalActions[KindProvider], optionalActions[KindAutomator]) {
			if n := timeouts.whole(action, 1, 86400); n > 0 {
				m.Timeouts[action] = n
			}
		}
		timeouts.done()
		m.tellTimeouts()
	}
	if limits := o.member("limits"); limits != nil {
		m.MemoryMB, m.OpenFiles = limits.whole("memory_mb", 16, 1<<20), limits.whole("open_files", 16, 1<<20)
		limits.done()
	}
	m.OpenFiles = or(m.OpenFiles, OpenFiles)
	switch result := o.text("result"); result {
	case "", "message":
	case "exit-code":
		m.ExitCode = true
	default:
		to.fail("result", "It is “message” or “exit-code”, not “%s”.", result)
	}
	m.check(to)
	o.done()
	return m, to.warnings, loom.InvalidFields(to.errs)
}

func (m *Manifest) protocols(o *object) {
	for i, value := range o.list("protocol") {
		text, revised, _ := strings.Cut(fmt.Sprint(value), ".")
		version, err := strconv.Atoi(text)
		revision, bad := 0, error(nil)
		if revised != "" {
			revision, bad = strconv.Atoi(revised)
		}
		if err != nil || bad != nil || version < 1 || revision < 0 {
			o.to.fail(fmt.Sprintf("protocol[%d]", i), "It takes the number of a version, such as 1 or 1.1, not %v.", value)
			continue
		}
		m.Protocol = append(m.Protocol, version)
		if version == Protocol {
			m.Revision = max(m.Revision, revision)
		}
	}
}

// tellTimeouts makes the time limits part of what the catalog knows of the types.
func (m *Manifest) tellTimeouts() {
	for name, t := range m.Types {
		t.Describes.Timeouts = loom.PluginTimeouts{}
		for action, seconds := range m.Timeouts {
			if t.Has(action) && action != actionList {
				t.Describes.Timeouts[loom.TaskAction(action)] = seconds
			}
		}
		m.Types[name] = t
	}
}

func (m *Manifest) check(to *problems) {
	if !pluginName.MatchString(m.Name) {
		to.fail("name", "A name has 1 to 63 small letters, digits and dashes and begins with no dash; this one is “%.80s”.", m.Name)
	}
	if m.Version == "" {
		to.fail("version", "Say which version of the plugin this is.")
	}
	if len(m.Command) == 0 || m.Command[0] == "" {
		to.fail("command", "Say what to run, such as [\"./my-plugin\"].")
	}
	if slices.ContainsFunc(m.Command, func(s string) bool { return strings.Contains(s, "\x00") }) {
		to.fail("command", "It holds a NUL.")
	}
	if !slices.Contains(m.Protocol, Protocol) {
		to.fail("protocol", "This Loom speaks version %d of the plugin protocol; the plugin speaks %v.", Protocol, m.Protocol)
	}
	if len(m.Types) == 0 {
		to.fail("types", "Declare at least one provider or automator type.")
	}
	for i, name := range m.Env {
		switch {
		case !variable.MatchString(name):
			to.fail(fmt.Sprintf("env[%d]", i), "“%s” is no name of a variable.", name)
		case strings.HasPrefix(name, "LOOM_"), strings.HasPrefix(name, "PG"), name == "DATABASE_URL":
			to.fail(fmt.Sprintf("env[%d]", i), "%s belongs to Loom itself and is never passed on.", name)
		}
	}
	if m.ExitCode {
		for _, name := range sortedKeys(m.Types) {
			if m.Types[name].Kind == KindProvider {
				to.fail("result", "“exit-code” is for automators: the provider type “%s” has to say which machine it made.", name)
			}
		}
	}
}

func decodeType(name string, o *object, description string) Type {
	t := Type{Kind: o.text("kind"), NeedsProviderCredentials: o.flag("needs_provider_credentials")}
	known := []string{}
	switch t.Kind {
	case KindProvider:
		known, t.Actions = slices.Concat(providerActions, optionalActions[t.Kind]), providerActions
	case KindAutomator:
		known, t.Actions = slices.Concat(automatorActions, optionalActions[t.Kind]), automatorActions
	default:
		o.to.fail(o.name("kind"), "A type is a “provider” or an “automator”, not “%s”.", t.Kind)
	}
	if listed := o.texts("actions"); len(listed) > 0 {
		t.Actions = listed
		for i, action := range listed {
			if !slices.Contains(known, action) {
				o.to.fail(fmt.Sprintf("%s[%d]", o.name("actions"), i), "“%s” is no action of %ss; they are %s.", action, or(t.Kind, "plugin"), strings.Join(known, ", "))
			}
		}
	}
	if t.Kind == KindProvider {
		for _, action := range providerActions {
			if !t.Has(action) {
				o.to.fail(o.name("actions"), "A provider has all of %s.", strings.Join(providerActions, ", "))
				break
			}
		}
	}
	switch confirm := o.text("confirm"); {
	case confirm == "cloud" && t.Kind == KindProvider:
		t.CloudConfirm = true
	case confirm != "" && (confirm != "full" || t.Kind != KindProvider):
		o.to.fail(o.name("confirm"), "It is “full” or “cloud”, for providers only, not “%s”.", confirm)
	}
	if t.NeedsProviderCredentials && t.Kind == KindProvider {
		o.to.fail(o.name("needs_provider_credentials"), "Providers get their fields anyway; leave it out.")
	}
	t.Describes = describe(name, o, description)
	if t.Kind == KindAutomator {
		for _, action := range t.Actions {
			if a := loom.TaskAction(action); slices.Contains(known, action) && !a.OfNode() { // the others are not for services to name
				t.Describes.Actions = append(t.Describes.Actions, a)
			}
		}
	}
	if !pluginName.MatchString(name) {
		o.to.fail(o.at, "The name of a type has small letters, digits and dashes and begins with no dash.")
	}
	for _, e := range t.Describes.Validate() {
		o.to.fail(o.name(e.Field), "%s", e.Message)
	}
	return t
}

// describe reads the type object of the catalog.
func describe(name string, o *object, description string) loom.PluginType {
	p := loom.PluginType{
		Base:          loom.Base{Name: name, Label: o.text("label"), Description: or(o.text("description"), description), Icon: o.text("icon")},
		Parameters:    map[string]loom.FieldGroup{},
		ResourceTypes: map[string]loom.ResourceType{},
	}
	if stated := o.text("name"); stated != "" && stated != name {
		o.to.fail(o.name("name"), "It says “%s”, but the type is declared as “%s”.", stated, name)
	}
	o.each("parameters", func(group string, g *object) {
		fields := loom.FieldGroup{Fields: map[string]loom.FieldSchema{}, Required: [][]string{}}
		g.each("fields", func(field string, f *object) { fields.Fields[field] = decodeField(f) })
		for i, set := range g.list("required") {
			list, ok := set.([]any)
			if !ok {
				o.to.fail(fmt.Sprintf("%s[%d]", g.name("required"), i), "“required” is a list of lists of fields.")
				continue
			}
			fields.Required = append(fields.Required, textsOf(fmt.Sprintf("%s[%d]", g.name("required"), i), list, o.to))
		}
		p.Parameters[group] = fields
	})
	for _, group := range []string{"admin", "user"} {
		if _, ok := p.Parameters[group]; !ok {
			p.Parameters[group] = loom.FieldGroup{Fields: map[string]loom.FieldSchema{}, Required: [][]string{}}
		}
	}
	o.each("resourceTypes", func(kind string, r *object) {
		p.ResourceTypes[kind] = loom.ResourceType{Format: r.text("format"), Permissions: r.text("permissions")}
	})
	return p
}

func decodeField(o *object) loom.FieldSchema {
	f := loom.FieldSchema{Label: o.text("label"), Type: o.text("type"), Tip: o.text("tip"), Override: o.flag("override"),
		Sensitive: o.flag("sensitive"), Options: o.texts("options"), Pattern: o.text("pattern"),
		Min: o.float("min"), Max: o.float("max"), ResourceType: o.text("resourceType"),
		BoundTo: o.texts("boundTo"), Role: loom.FieldRole(o.text("role")), Format: o.text("format"),
		Group: o.text("group"), Order: o.whole("order", 0, loom.MaxFieldOrder), Method: o.text("method")}
	f.Default, _ = o.take("default")
	f.Sensitive = f.IsSensitive()
	if f.Pattern != "" {
		if _, err := regexp.Compile(f.Pattern); err != nil {
			o.to.fail(o.name("pattern"), "It is no regular expression: %v.", err)
		}
	}
	return f
}
