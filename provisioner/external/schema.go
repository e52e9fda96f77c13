package external

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of plugin.json, for editors and for checks without
// Loom; what `loom plugin check` says counts.
func Schema() []byte { return schema }
