package wire

import _ "embed" // the schemas

// Schemas are JSON schemas (2020-12) of all bodies, by name: the components of the
// OpenAPI document. Tests of package api hold every answer against them.
//
//go:embed schemas.json
var Schemas []byte
