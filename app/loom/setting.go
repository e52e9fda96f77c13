package loom

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ClusterParameter is a key of a cluster's config that services declare as their parameter:
// what people see as one setting.
type ClusterParameter struct {
	// Parameter is the first one that has the key, by the names of services, with the
	// demands of all: it is required, secret or in need of a restart if any says so.
	Parameter
	// Of are the services with their own rules for the key, by name.
	Of []ServiceParameter
}

// ServiceParameter is a parameter of a service.
type ServiceParameter struct {
	Service string
	Parameter
}

// Services are the names of the services that read the setting.
func (p *ClusterParameter) Services() []string {
	var names []string
	for _, own := range p.Of {
		names = append(names, own.Service)
	}
	return names
}

// ParametersOf lists the parameters of services: by service, and each key once.
func ParametersOf(services map[string]Service) []ClusterParameter {
	var list []ClusterParameter
	place := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		for _, p := range services[name].Parameters {
			own := ServiceParameter{name, p}
			i, known := place[p.Key]
			if !known {
				place[p.Key] = len(list)
				list = append(list, ClusterParameter{Parameter: p, Of: []ServiceParameter{own}})
				continue
			}
			shared := &list[i]
			shared.Of = append(shared.Of, own)
			shared.Required, shared.Secret, shared.Restart = shared.Required || p.Required, shared.Secret || p.Secret, shared.Restart || p.Restart
			if shared.Default == nil {
				shared.Default = p.Default
			}
		}
	}
	return list
}

// Defaults is the default config of a service: the defaults of its parameters below
// DefaultConfig. Nil for none.
func (s *Service) Defaults() map[string]any {
	config := s.DefaultConfig
	for _, p := range s.Parameters {
		if _, there := ConfigValue(config, p.Key); !there && p.Default != nil {
			config = SetConfigValue(config, p.Key, p.Default)
		}
	}
	return config
}

// ConfigValue gives the value of a config at a dotted path.
func ConfigValue(config map[string]any, key string) (value any, there bool) {
	first, rest, deeper := strings.Cut(key, ".")
	value, there = config[first]
	if !deeper || !there {
		return value, there
	}
	inner, isObject := value.(map[string]any)
	if !isObject {
		return nil, false
	}
	return ConfigValue(inner, rest)
}

// SetConfigValue copies a config with another value at a dotted path; nil takes the key out,
// with the objects that are empty then.
func SetConfigValue(config map[string]any, key string, value any) map[string]any {
	out := maps.Clone(config)
	if out == nil {
		out = map[string]any{}
	}
	first, rest, deeper := strings.Cut(key, ".")
	if deeper {
		inner, isObject := out[first].(map[string]any)
		if value == nil && !isObject {
			return out
		}
		if set := SetConfigValue(inner, rest, value); value != nil || len(set) > 0 {
			out[first] = set
			return out
		}
		delete(out, first)
		return out
	}
	if value == nil {
		delete(out, first)
		return out
	}
	out[first] = value
	return out
}

// SettingsCheck is what a config of a cluster is held against.
type SettingsCheck struct {
	Services map[string]Service
	// Template fixes the values that its immutable parts set; nil for none.
	Template *Template
	// Expand gives the texts that a text becomes on nodes with its macros filled in: none
	// while that is not known yet. Without it, texts that may hold macros are left alone.
	Expand func(text string) []string
	// Partly says that somebody else still adds to the config: what is missing is no error.
	Partly bool
}

// Check finds what keeps services from running with a config: shared keys with different
// rules, values that are missing, wrong, or fixed by the template. Errors are about "services"
// and "config.KEY", one for each key, and do not repeat values, which may be secret.
func (c SettingsCheck) Check(config map[string]any) []FieldError {
	list := ParametersOf(c.Services)
	errs := parameterClashes(list)
	for i := range list {
		p := &list[i]
		value, _ := ConfigValue(config, p.Key)
		if text := c.wrong(p, value); text != "" {
			errs = append(errs, FieldError{"config." + p.Key, text})
		}
	}
	if _, over := SecretKeysOf(c.Services).HiddenTexts(config); over != "" {
		errs = append(errs, tooManyHidden("config", over)...)
	}
	return errs
}

// wrong says what is wrong with the value of a setting, "" for nothing.
func (c SettingsCheck) wrong(p *ClusterParameter, value any) string {
	if fixed, is := c.Template.Fixed(p.Key); is && JSONText(fixed) != JSONText(value) {
		return fmt.Sprintf("The template sets %s, and its value can't be changed.", p.Key)
	}
	for _, own := range p.Of {
		switch {
		case !isSet(value) && own.Required && !c.Partly:
			return fmt.Sprintf("%s needs %s.", own.Service, p.Key)
		case isSet(value) && !c.accepts(&own.Parameter, value):
			return fmt.Sprintf("%s: %s must be %s.", own.Service, p.Key, own.Wants())
		}
	}
	return ""
}

func (c SettingsCheck) accepts(p *Parameter, value any) bool {
	text, isText := value.(string)
	switch {
	case !isText || !strings.Contains(text, "%"):
		return p.Accepts(value)
	case c.Expand == nil:
		return mayExpand(value) || p.Accepts(value)
	}
	for _, expanded := range c.Expand(text) {
		if isSet(expanded) && !p.Accepts(expanded) {
			return false
		}
	}
	return true
}

// parameterClashes says which services cannot share a cluster because of their parameters.
func parameterClashes(list []ClusterParameter) []FieldError {
	var errs []FieldError
	for i := range list {
		p := &list[i]
		first := p.Of[0]
		for _, own := range p.Of[1:] {
			if own.Type != first.Type {
				errs = append(errs, FieldError{"services", fmt.Sprintf("%s and %s can't share a cluster: %s is a %s for the one and a %s for the other.", first.Service, own.Service, p.Key, first.Type, own.Type)})
				break
			}
		}
		for k := range list[:i] {
			if other := &list[k]; liesBelow(p.Key, other.Key) || liesBelow(other.Key, p.Key) {
				errs = append(errs, FieldError{"services", fmt.Sprintf("%s and %s can't share a cluster: of their parameters %s and %s, one lies inside the other.", other.Of[0].Service, first.Service, other.Key, p.Key)})
			}
		}
	}
	return errs
}

// Fixed gives the value of a key that an immutable part of the template sets.
func (t *Template) Fixed(key string) (value any, is bool) {
	if t == nil {
		return nil, false
	}
	if first, _, _ := strings.Cut(key, "."); !slices.Contains(t.Locked, first) {
		return nil, false
	}
	return ConfigValue(t.Defaults.Config, key)
}
