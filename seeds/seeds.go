// Package seeds holds what a fresh Loom knows: the starter catalog (a provider,
// types, services and templates that work at once on the local provider) and
// the scripts of its services. It is data only; package catalog loads it.
package seeds

import "embed"

// Catalog is a folder "catalog/<kind>/<name>.json", one entry per file, as sent
// to the REST API.
//
//go:embed catalog
var Catalog embed.FS

// Scripts are resources of the shell automator, "scripts/<name>".
//
//go:embed scripts
var Scripts embed.FS
