package page

import (
	"strconv"

	"loom/app/loom"
	"loom/views/adminview"
)

// ResourceURL is the page of a version.
func ResourceURL(v loom.Resource) string { return ResourceQuery(v, adminview.ResourceShow()) }

// ResourceQuery is an address that says which version it is about.
func ResourceQuery(v loom.Resource, base string) string {
	return adminview.ResourceRef{Kind: v.Kind, Plugin: v.Plugin, Type: v.Type, Name: v.Name, Version: strconv.Itoa(v.Version)}.Query(base)
}

// ShellType is the automator whose field “script” may name a resource, a path or a command.
const ShellType = "shell"

// ScriptsType is the type of resource that its scripts are.
const ScriptsType = "scripts"
