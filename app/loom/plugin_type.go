package loom

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// The formats of texts in fields.
const (
	// FormatURL is the address of an API, with HTTPS.
	FormatURL = "url"
	// FormatPEM is certificates in PEM form.
	FormatPEM = "pem"
)

// FieldSchema describes one field of a plugin's form.
type FieldSchema struct {
	Label        string   `json:"label" required:"true"`
	Type         string   `json:"type" required:"true"`
	Tip          string   `json:"tip"`
	Default      any      `json:"default,omitempty"`
	Override     bool     `json:"override"`
	Sensitive    bool     `json:"sensitive"`
	Options      []string `json:"options,omitempty"`
	Pattern      string   `json:"pattern,omitempty"`
	Min          *float64 `json:"min,omitempty"`
	Max          *float64 `json:"max,omitempty"`
	ResourceType string   `json:"resourceType,omitempty"`
	// Format says what a text is, one of the formats; usually empty.
	Format string `json:"format,omitempty"`
	// BoundTo names, for a sensitive field whose value is sent, the fields that decide
	// where and how: addresses and what is checked there. Others need not be declared.
	// Who changes one of them has to give the value again.
	BoundTo []string `json:"boundTo,omitempty"`
	// Role says, of a field of a provider type, what hangs on its value; see FieldRole.
	Role FieldRole `json:"role,omitempty"`
	// Group is the heading of the field in forms, Order its place there, Method the choice
	// of one, such as a way to sign in, that it belongs to; see FieldGroup.Sections.
	Group  string `json:"group,omitempty" description:"The heading that forms show the field under; “Advanced” is folded."`
	Order  int    `json:"order,omitempty" description:"Forms sort fields by it; those without it come last."`
	Method string `json:"method,omitempty" description:"The choice within the group that the field belongs to, such as a way to sign in. Forms show the fields of one."`
	// Extra says that a client added the field to the type of a plugin, which does not know it.
	Extra bool `json:"extra,omitempty" decode:"-" description:"A client added the field; the plugin does not know it."`
}

// FieldRole says what a change of a provider's field means for machines.
type FieldRole string

// Roles of fields. Sensitive fields, and those that they are bound to, are for access
// without saying so.
const (
	// RoleBuild: what new machines become; machines that are there stay as they are.
	RoleBuild FieldRole = ""
	// RoleAccess: how the provider is reached and signed in to; every task takes the
	// present value, also for machines that are there.
	RoleAccess FieldRole = "access"
	// RolePlace: where a machine is made and how it is opened; it keeps the value that
	// it was made with until it is deleted.
	RolePlace FieldRole = "place"
)

// IsSensitive reports whether values are sealed and never shown; fields of type
// password always are.
func (f FieldSchema) IsSensitive() bool { return f.Sensitive || f.Type == "password" }

// FieldGroup is a block of fields and the sets of which at least one must be
// complete; no set, or an empty one, means nothing is required.
type FieldGroup struct {
	Fields   map[string]FieldSchema `json:"fields"`
	Required [][]string             `json:"required"`
}

// Missing returns, for each required set, its absent fields, or nil as soon as
// one set is complete. An empty text counts as absent, and so does a switch that is off.
func (g FieldGroup) Missing(present map[string]any) []map[string]FieldSchema {
	var missing []map[string]FieldSchema
	for _, set := range g.Required {
		absent := map[string]FieldSchema{}
		for _, name := range set {
			if v, ok := present[name]; !ok || v == nil || v == "" || g.Fields[name].Type == "checkbox" && !SwitchedOn(v) {
				absent[name] = g.Fields[name]
			}
		}
		if len(absent) == 0 {
			return nil
		}
		missing = append(missing, absent)
	}
	return missing
}

// ResourceType says what files a plugin takes: Format "file" or "archive",
// Permissions 3 or 4 octal digits, for files only.
type ResourceType struct {
	Format      string `json:"format" alias:"filetype" enum:"file,archive" required:"true"`
	Permissions string `json:"permissions,omitempty"`
}

// PluginType is the catalog description of a provider type or an automator
// type. Parameters has the keys "admin" and "user".
type PluginType struct {
	Base
	Parameters    map[string]FieldGroup   `json:"parameters"`
	ResourceTypes map[string]ResourceType `json:"resourceTypes" alias:"resourcetypes"`
	// Timeouts are time limits of its actions; what it does not name has Loom's own.
	Timeouts PluginTimeouts `json:"timeouts,omitempty" description:"Time limits of its actions in seconds, 1 to 86400; what it does not name has Loom's own."`
	// Actions are those of services that an automator carries out, where it says so;
	// empty: all.
	Actions []TaskAction `json:"actions,omitempty" description:"The actions of services that an automator carries out; without it, all of them."`
	// Reboots says that a provider starts and restarts machines through its own interface.
	Reboots bool `json:"reboots,omitempty" description:"The provider starts and restarts machines through its API; without it, Loom reboots them over SSH."`
}

// Schema gives the field of a name, of administrators before that of users.
func (t PluginType) Schema(name string) (schema FieldSchema, known bool) {
	if schema, known = t.Parameters["admin"].Fields[name]; !known {
		schema, known = t.Parameters["user"].Fields[name]
	}
	return schema, known
}

// Seals reports whether values of a field are sealed and never shown: as the type
// declares the field, or, where it does not know it, by its name.
func (t PluginType) Seals(field string) bool {
	known := false
	for _, group := range t.Parameters {
		schema, has := group.Fields[field]
		if schema.IsSensitive() {
			return true
		}
		known = known || has
	}
	return !known && LooksSecret(field)
}

// Hides reports whether values of a field are hidden in texts for people: those that
// are sealed, and those whose name looks secret whatever the type declares.
func (t PluginType) Hides(field string) bool { return LooksSecret(field) || t.Seals(field) }

// Word gives the label of a field, or its name where the type has none.
func (t PluginType) Word(field string) string {
	if schema, _ := t.Schema(field); schema.Label != "" {
		return schema.Label
	}
	return field
}

// FieldExposeCredentials is the field of a provider that lets scripts of services ask for its
// credentials. Whoever switches it on could read them, so all of them are bound to it.
const FieldExposeCredentials = "expose_credentials"

// Moved gives the fields that differ between two sets of fields and decide where and
// how the value of a sensitive field is sent. What is empty counts as its default.
func (t PluginType) Moved(sensitive string, before, after map[string]any) []string {
	var moved []string
	schema, _ := t.Schema(sensitive)
	for _, name := range schema.BoundTo {
		if t.boundText(name, before) != t.boundText(name, after) {
			moved = append(moved, name)
		}
	}
	if SwitchedOn(after[FieldExposeCredentials]) && !SwitchedOn(before[FieldExposeCredentials]) {
		moved = append(moved, FieldExposeCredentials)
	}
	return moved
}

// SwitchedOn reads a checkbox as plugins get it: true, "true" and "on" are on.
func SwitchedOn(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case string:
		return strings.EqualFold(v, "true") || strings.EqualFold(v, "on")
	}
	return false
}

func (t PluginType) boundText(name string, fields map[string]any) string {
	text := strings.TrimSpace(FieldText(fields[name]))
	if schema, _ := t.Schema(name); text == "" && schema.Default != nil {
		return FieldText(schema.Default)
	}
	return text
}

// Unverified gives the switches of Verifying that are off.
func (t PluginType) Unverified(fields map[string]any) []string {
	var off []string
	for _, group := range sortedKeys(t.Parameters) {
		for _, name := range t.Parameters[group].Verifying() {
			if !SwitchedOn(t.boundText(name, fields)) {
				off = append(off, name)
			}
		}
	}
	return off
}

// Verifying gives the switches that are on by default and that sensitive fields are bound
// to: they verify to whom credentials are sent.
func (g FieldGroup) Verifying() []string {
	var names []string
	for _, sensitive := range sortedKeys(g.Fields) {
		for _, name := range g.Fields[sensitive].BoundTo {
			if f := g.Fields[name]; f.Type == "checkbox" && SwitchedOn(f.Default) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Unverifiable is what is said of a switch of Verifying that is off.
const Unverifiable = "Anyone on the network path can read the credentials."

// RoleOf gives what hangs on a field of providers of this type.
func (t PluginType) RoleOf(field string) FieldRole {
	schema, _ := t.Schema(field)
	if schema.IsSensitive() {
		return RoleAccess
	}
	for _, group := range t.Parameters {
		for _, other := range group.Fields {
			if slices.Contains(other.BoundTo, field) {
				return RoleAccess
			}
		}
	}
	return schema.Role
}

// Building gives those fields of a provider that decide what is built and where, as
// texts. What is empty, or says what the type does without it, is left out.
func (t PluginType) Building(fields map[string]any) map[string]string {
	texts := map[string]string{}
	for name := range fields {
		schema, _ := t.Schema(name)
		text := t.boundText(name, fields)
		if text != "" && text != FieldText(schema.Default) && t.RoleOf(name) != RoleAccess {
			texts[name] = text
		}
	}
	return texts
}

// OtherAccess reports whether providers of this type with these fields are reached or
// signed in to in different ways, sensitive fields aside.
func (t PluginType) OtherAccess(one, other map[string]any) bool {
	for _, fields := range []map[string]any{one, other} {
		for name := range fields {
			if t.RoleOf(name) == RoleAccess && t.boundText(name, one) != t.boundText(name, other) {
				return true
			}
		}
	}
	return false
}

// Placing gives those fields of a provider that a machine keeps from when it was made,
// with their defaults.
func (t PluginType) Placing(fields map[string]any) map[string]any {
	place := map[string]any{}
	for _, group := range t.Parameters {
		for name := range group.Fields {
			if text := t.boundText(name, fields); text != "" && t.RoleOf(name) == RolePlace {
				place[name] = text
			}
		}
	}
	return place
}

// Validate checks shape: labels and types of fields, names in required sets,
// formats and permissions of resource types.
func (t *PluginType) Validate() []FieldError {
	errs := t.validate()
	for _, group := range sortedKeys(t.Parameters) {
		if group != "admin" && group != "user" {
			errs = append(errs, FieldError{"parameters." + group, "Parameter groups are “admin” and “user”."})
			continue
		}
		g := t.Parameters[group]
		for _, name := range sortedKeys(g.Fields) {
			at := fmt.Sprintf("parameters.%s.fields.%s", group, name)
			if g.Fields[name].Label == "" {
				errs = append(errs, FieldError{at + ".label", "A field needs a label."})
			}
			if g.Fields[name].Type == "" {
				errs = append(errs, FieldError{at + ".type", "A field needs a type."})
			}
			errs = append(errs, g.Fields[name].checkPlace(at)...)
			if role := g.Fields[name].Role; role != RoleBuild && role != RoleAccess && role != RolePlace {
				errs = append(errs, FieldError{at + ".role", "The role of a field is “access” or “place”; leave it out for what new machines become."})
			}
			if len(g.Fields[name].BoundTo) > 0 && !g.Fields[name].IsSensitive() {
				errs = append(errs, FieldError{at + ".boundTo", "Only a sensitive field is bound to others; make it sensitive, or leave this out."})
			}
		}
		errs = append(errs, g.checkMethods("parameters."+group)...)
		for i, set := range g.Required {
			for _, name := range set {
				if _, ok := g.Fields[name]; !ok {
					errs = append(errs, FieldError{fmt.Sprintf("parameters.%s.required[%d]", group, i), fmt.Sprintf("“%s” is not a field of this block.", name)})
				}
			}
		}
	}
	for _, name := range sortedKeys(t.ResourceTypes) {
		r := t.ResourceTypes[name]
		at := "resourceTypes." + name
		if r.Format != "file" && r.Format != "archive" {
			errs = append(errs, FieldError{at + ".format", "A resource type has the format “file” or “archive”."})
		}
		if r.Permissions != "" && (r.Format != "file" || len(r.Permissions) < 3 || len(r.Permissions) > 4 || strings.Trim(r.Permissions, "01234567") != "") {
			errs = append(errs, FieldError{at + ".permissions", "Permissions are 3 or 4 octal digits and belong to files only."})
		}
	}
	for i, action := range t.Actions {
		if !action.Valid() || action.OfNode() {
			errs = append(errs, FieldError{fmt.Sprintf("actions[%d]", i), fmt.Sprintf("“%s” is no action of services.", action)})
		}
	}
	return append(errs, t.Timeouts.check()...)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
