package adminview

import (
	"loom/app/loom"
	"loom/views/route"
)

// EntryUses lists what names an entry.
func EntryUses(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/uses"
}

// EntryJSON shows an entry as JSON with calls of the REST API.
func EntryJSON(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/json"
}

// EntryActivity is who did what to an entry.
func EntryActivity(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/activity"
}

// EntryExport is an entry as a bundle, for download.
func EntryExport(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/export"
}

// EntryDeprecate takes an entry out of what is offered for choosing (POST).
func EntryDeprecate(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/deprecate"
}

// EntryCompare compares two versions of an entry.
func EntryCompare(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/compare"
}

// Duplicate is the form for a new entry that starts as a copy of another.
func Duplicate(kind loom.EntityKind, name string) string {
	return route.Query(route.AdminNew(kind), "from", name)
}

// ServiceUse asks which template is to use a service.
func ServiceUse(service string) string {
	return route.AdminEntry(loom.KindService, service) + "/use"
}

// ProbeUse asks which hardware or image type is to use what a provider offers.
func ProbeUse(provider string) string {
	return route.AdminEntry(loom.KindProvider, provider) + "/use"
}

// ResourceUpload receives a file (POST).
func ResourceUpload() string { return route.AdminResources() + "/upload" }

// ResourceStage slates a version for the next sync (POST).
func ResourceStage() string { return route.AdminResources() + "/stage" }

// ResourceRecall asks (GET) and takes a version out with the next sync (POST).
func ResourceRecall() string { return route.AdminResources() + "/recall" }

// ResourceDelete asks (GET) and deletes a version (POST).
func ResourceDelete() string { return route.AdminResources() + "/delete" }

// ResourceShow is the page of a version.
func ResourceShow() string { return route.AdminResources() + "/show" }

// ResourceSync shows what a sync would do (GET) and makes live what is staged (POST).
func ResourceSync() string { return route.AdminResources() + "/sync" }

// Query is base with the parts of the ref as its query.
func (r ResourceRef) Query(base string) string {
	return route.Query(base, FieldKind, r.Kind, FieldPlugin, r.Plugin, FieldType, r.Type, FieldName, r.Name, FieldVersion, r.Version, FieldBack, r.Back)
}
