package loom

import (
	"strings"
	"time"
)

// EntityKind is one of the eight versioned kinds of the catalog. Its text is the
// path segment of the REST API.
type EntityKind string

// The kinds. Provider types and automator types are global (tenant SuperTenant).
const (
	KindProvider        EntityKind = "providers"
	KindHardwareType    EntityKind = "hardwaretypes"
	KindImageType       EntityKind = "imagetypes"
	KindService         EntityKind = "services"
	KindTemplate        EntityKind = "clustertemplates"
	KindPartialTemplate EntityKind = "partialtemplates"
	KindProviderType    EntityKind = "providertypes"
	KindAutomatorType   EntityKind = "automatortypes"
)

// TenantKinds are the six kinds that belong to a tenant, in the order in which
// an export lists them.
var TenantKinds = []EntityKind{KindProvider, KindHardwareType, KindImageType, KindService, KindTemplate, KindPartialTemplate}

// Word is the kind in the singular, for people.
func (k EntityKind) Word() string {
	switch k {
	case KindProvider:
		return "provider"
	case KindHardwareType:
		return "hardware type"
	case KindImageType:
		return "image type"
	case KindService:
		return "service"
	case KindTemplate:
		return "template"
	case KindPartialTemplate:
		return "partial template"
	case KindProviderType:
		return "provider type"
	case KindAutomatorType:
		return "automator type"
	}
	return string(k)
}

// OneWord is Word with its article: "a service", "an image type".
func (k EntityKind) OneWord() string {
	word := k.Word()
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// Base holds the fields shared by all catalog entries. Version
// is assigned on write; whatever a body says is overwritten.
type Base struct {
	Name        string            `json:"name" required:"true" new:"" own:"form page"`
	Label       string            `json:"label,omitempty" new:"" label:"Label" help:"What people see in lists and forms, instead of the name." own:"form page"`
	Description string            `json:"description,omitempty" new:"" label:"Description" help:"One or two sentences about what it is for." own:"form page"`
	Icon        string            `json:"icon,omitempty" label:"Icon" help:"The name of an icon, or a reference that begins with https: or data:image/." own:"form page"`
	Labels      map[string]string `json:"labels,omitempty" label:"Labels" help:"One key=value on a line, to find the entry by." own:"form page"`
	Version     int               `json:"version,omitempty" decode:"own" own:"form page"`
	Deprecated  bool              `json:"deprecated,omitempty" label:"Deprecated" help:"Hidden from pickers. Entries that use it keep working." own:"form page"`
}

// Entry is any catalog entry.
type Entry interface {
	// Meta gives the shared fields, for reading and for assigning the version.
	Meta() *Base
	// Validate checks shape only and returns every field error.
	Validate() []FieldError
}

// Meta gives the shared fields.
func (b *Base) Meta() *Base { return b }

// VersionInfo says who saved a version of a catalog entry, and when.
type VersionInfo struct {
	Version int
	Author  UserID
	Time    time.Time
	// Released reports whether clusters can be made of it and changed to it.
	Released bool
	// Deprecation is a message to the owners of clusters on it, "" for none.
	Deprecation string
	// Clusters is how many clusters are on it; only lists of versions of templates and services
	// know it.
	Clusters int
}

// Releasable reports whether entries of a kind have versions that are not released. The
// credentials of a provider are one set for all its versions, and a plugin type is what a plugin
// on the hosts does: their versions are always released.
func (k EntityKind) Releasable() bool { return k != KindProvider && !k.Global() }

// MaxDeprecation is how many characters the message of a deprecated version has at most.
const MaxDeprecation = 500
