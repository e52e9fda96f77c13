package loom

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Service is software that can be placed on nodes.
type Service struct {
	Base
	Dependencies Dependencies       `json:"dependencies" own:"form"`
	Provisioner  ServiceProvisioner `json:"provisioner" own:"form page"`
	Links        []Link             `json:"links" new:"" own:"form page"`
	Follows      []string           `json:"follows,omitempty" names:"services,provided" label:"Reconfigure after" help:"Runs this service's configure action on all its nodes when nodes with such a service come or go. The action must make the running service reload. Example: a load balancer follows its back ends." own:"form"`
	Shrink       string             `json:"shrink,omitempty" enum:"allow,refuse" label:"When a node leaves the cluster" help:"For services with data on their nodes. A drain action runs before stop on a removed node." own:"form"`
	// Check, Files and Logs say how Loom watches the service on a node.
	Check         *ServiceCheck  `json:"check,omitempty" own:"form"`
	Files         []string       `json:"files,omitempty" label:"Watched files" help:"Absolute paths on the node. Loom reports changes that it did not make." own:"form"`
	Logs          *ServiceLogs   `json:"logs,omitempty" own:"form"`
	Parameters    []Parameter    `json:"parameters,omitempty" label:"Parameters" help:"Keys of the config that the service reads. Users see them as settings, and their values are checked." own:"form page"`
	DefaultConfig map[string]any `json:"defaultConfig,omitempty" label:"Config" help:"A JSON object: default config of clusters with this service. Template and request override it. Macros such as %host.service.NAME% are allowed in its texts." own:"form page"`
}

// Dependencies of a service on others, by name or provided name.
type Dependencies struct {
	Provides  []string        `json:"provides" new:"" label:"Provides" help:"Other names for this service. It satisfies services that require such a name."`
	Conflicts []string        `json:"conflicts" names:"services,provided" new:"" label:"Conflicts with" help:"Never in the same cluster as this service."`
	Install   PhaseDependency `json:"install" label:"Install %s"`
	Runtime   PhaseDependency `json:"runtime" label:"Start %s"`
}

// PhaseDependency says what must be there (Requires) and what only orders when
// it is there (Uses). Scope, of the install phase only, is "" or "cluster" (wait
// for every node) or "node".
type PhaseDependency struct {
	Requires []string `json:"requires" names:"services,stops,provided" new:"" label:"Requires"`
	Uses     []string `json:"uses" names:"services,provided" new:"" label:"Uses"`
	Scope    string   `json:"scope,omitempty" decode:"own" enum:"cluster,node"`
}

// ServiceProvisioner holds the actions a service defines.
type ServiceProvisioner struct {
	Actions map[TaskAction]ServiceAction `json:"actions" new:"{\"install\":{\"type\":\"shell\",\"fields\":{\"script\":\"\",\"args\":\"install\"}},\"configure\":{\"type\":\"shell\",\"fields\":{\"script\":\"\",\"args\":\"configure\"}},\"start\":{\"type\":\"shell\",\"fields\":{\"script\":\"\",\"args\":\"start\"}},\"stop\":{\"type\":\"shell\",\"fields\":{\"script\":\"\",\"args\":\"stop\"}}}"`
}

// ServiceAction is how one action is carried out: Type names an automator
// type, Fields are what that type declares, always text.
type ServiceAction struct {
	Type   string            `json:"type" required:"true" names:"automatortypes,stops"`
	Fields map[string]string `json:"fields"`
}

// Link is shown on a cluster's page; URL may hold macros.
type Link struct {
	Label string `json:"label,omitempty"`
	URL   string `json:"url" required:"true"`
}

// Defines reports whether the service has an action of that name.
func (s *Service) Defines(a TaskAction) bool {
	_, ok := s.Provisioner.Actions[a]
	return ok
}

// SameWork reports whether another version of the service means the same for machines and
// clusters: it differs in what is only shown to people, such as label and description, if at
// all.
func (s *Service) SameWork(other *Service) bool {
	a, b := *s, *other
	a.Base, b.Base = Base{Name: s.Name}, Base{Name: other.Name}
	a.Parameters, b.Parameters = unlabeled(a.Parameters), unlabeled(b.Parameters)
	return sameJSON(a, b)
}

// SameOnMachines reports whether another version of the service does the same on machines: its
// actions, what it depends on and the config that it brings.
func (s *Service) SameOnMachines(other *Service) bool {
	return sameJSON(s.Provisioner, other.Provisioner) && sameJSON(s.Dependencies, other.Dependencies) && sameJSON(s.Defaults(), other.Defaults())
}

// WatchedAs returns the service with the check, files and logs of another version of it.
func (s Service) WatchedAs(other *Service) Service {
	s.Check, s.Files, s.Logs = other.Check, other.Files, other.Logs
	return s
}

// unlabeled copies parameters without what is only shown to people.
func unlabeled(parameters []Parameter) []Parameter {
	out := slices.Clone(parameters)
	for i := range out {
		out[i].Label, out[i].Help = "", ""
	}
	return out
}

// sameJSON compares two values by what is stored of them: nil and empty lists, and numbers of
// different types, are the same.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	var u, v any
	if errX != nil || errY != nil || json.Unmarshal(x, &u) != nil || json.Unmarshal(y, &v) != nil {
		return false
	}
	return reflect.DeepEqual(withoutEmpty(u), withoutEmpty(v))
}

// withoutEmpty drops null, empty lists and empty objects from objects.
func withoutEmpty(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for key, inner := range object {
		inner = withoutEmpty(inner)
		list, isList := inner.([]any)
		members, isObject := inner.(map[string]any)
		if inner == nil || isList && len(list) == 0 || isObject && len(members) == 0 {
			delete(object, key)
			continue
		}
		object[key] = inner
	}
	return object
}

// MaxNames is how many names a list of a service holds at most: each is held against all
// others of the catalog.
const MaxNames = 200

// checkCount gives a field error for a list of more than most names.
func checkCount(field string, names []string, most int) []FieldError {
	if len(names) <= most {
		return nil
	}
	return []FieldError{{field, fmt.Sprintf("At most %d names; these are %d. Take some out.", most, len(names))}}
}

// checkCounts gives a field error for each list of names that is too long.
func (s *Service) checkCounts() []FieldError {
	d := s.Dependencies
	return slices.Concat(checkCount("dependencies.provides", d.Provides, MaxNames), checkCount("dependencies.conflicts", d.Conflicts, MaxNames),
		checkCount("dependencies.install.requires", d.Install.Requires, MaxNames), checkCount("dependencies.install.uses", d.Install.Uses, MaxNames),
		checkCount("dependencies.runtime.requires", d.Runtime.Requires, MaxNames), checkCount("dependencies.runtime.uses", d.Runtime.Uses, MaxNames),
		checkCount("follows", s.Follows, MaxNames))
}

// Validate checks shape.
func (s *Service) Validate() []FieldError {
	errs := append(s.validate(), s.checkCounts()...)
	errs = append(errs, CheckConfigSize("defaultConfig", s.DefaultConfig)...)
	errs = append(errs, s.checkParameters()...)
	for _, a := range TaskActions {
		action, ok := s.Provisioner.Actions[a]
		if !ok {
			continue
		}
		if a.OfNode() {
			errs = append(errs, FieldError{"provisioner.actions." + string(a), "A service cannot define this action: it belongs to nodes."})
		}
		if action.Type == "" {
			errs = append(errs, FieldError{"provisioner.actions." + string(a) + ".type", "Say which automator type carries out this action, such as “shell”."})
		}
	}
	for a := range s.Provisioner.Actions {
		if !a.Valid() {
			errs = append(errs, FieldError{"provisioner.actions." + string(a), "Unknown action; actions are install, remove, configure, initialize, start, stop and drain."})
		}
	}
	errs = append(errs, validateLinks(s.Links)...)
	if s.Check != nil {
		errs = append(errs, s.Check.Validate("check")...)
	}
	errs = append(errs, checkFilePaths("files", s.Files)...)
	if s.Logs != nil {
		errs = append(errs, s.Logs.Validate("logs")...)
	}
	switch s.Dependencies.Install.Scope {
	case "", "cluster", "node":
	default:
		errs = append(errs, FieldError{"dependencies.install.scope", "The scope is “cluster” or “node”."})
	}
	switch s.Shrink {
	case "", "allow", "refuse":
	default:
		errs = append(errs, FieldError{"shrink", "Shrink is “allow” or “refuse”."})
	}
	return errs
}
