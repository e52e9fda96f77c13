package wire

import (
	"loom/app/loom"
)

// The predecessor's clients read some members of catalog entries without asking whether
// they are there. These forms always have them, whatever is stored.

// Template is a template with includes and both ends of quantities.
type Template struct {
	loom.Template
	Includes []loom.NameRef `json:"includes"`
}

// NewTemplate gives the wire form of a template.
func NewTemplate(t loom.Template) Template {
	t.Constraints = newConstraints(t.Constraints)
	return Template{t, list(t.Includes)}
}

type pluginTypeEntry struct {
	*loom.PluginType
	Description string                     `json:"description"`
	Parameters  map[string]loom.FieldGroup `json:"parameters"`
}

// NewEntry gives the wire form of a catalog entry: templates with includes and both ends
// of quantities, plugin types with a description and without groups that have no field.
func NewEntry(e loom.Entry) any {
	switch v := e.(type) {
	case *loom.Template:
		return NewTemplate(*v)
	case *loom.PartialTemplate:
		t := *v
		t.Constraints = newConstraints(v.Constraints)
		return &t
	case *loom.PluginType:
		groups := map[string]loom.FieldGroup{}
		for name, group := range v.Parameters {
			if len(group.Fields) > 0 {
				group.Required = list(group.Required)
				groups[name] = group
			}
		}
		return pluginTypeEntry{v, v.Description, groups}
	}
	return e
}

// newConstraints gives quantities the ends that are in force where they name one only.
func newConstraints(c loom.Constraints) loom.Constraints {
	services := map[string]loom.ServiceConstraint{}
	for name, s := range c.Services {
		if s.Quantities != nil {
			low, high := s.Quantities.Bounds()
			s.Quantities = &loom.Quantities{Min: &low, Max: &high}
		}
		services[name] = s
	}
	c.Services = services
	return c
}
