// Package chefsolo is the automator type that converges machines with Chef or
// Cinc, without a server (plugins.md 3.1).
//
// It declares the type: fields, required sets and resources.
package chefsolo

import "loom/app/loom"

// TypeName is the name of the automator type.
const TypeName = "chef-solo"

// Type describes the automator type for the catalog.
func Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Chef Solo", Description: "Converges the machine with Chef or Cinc, without a server."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: map[string]loom.FieldSchema{
					"run_list":        {Label: "Run list", Type: "text", Tip: "Recipes and roles, separated by commas, such as recipe[nginx::default],role[site]."},
					"json_attributes": {Label: "Attributes", Type: "text", Tip: "A JSON object: attributes of this action. They win over the cluster's config."},
				},
				Required: [][]string{{"run_list"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{
			"cookbooks": {Format: "archive"},
			"data_bags": {Format: "archive"},
			"roles":     {Format: "file"},
			"secrets":   {Format: "file", Permissions: "0400"},
		},
	}
}
