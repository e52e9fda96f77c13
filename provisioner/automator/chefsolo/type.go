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
					"chef_distribution": {Label: "Distribution", Type: "select", Default: "cinc", Options: []string{"cinc", "chef", "preinstalled"},
						Tip: "What is installed where neither the machine nor its operating system has Chef."},
					"chef_version":  {Label: "Version", Type: "text", Tip: "Of that distribution, such as 17.10.0; its newest one when empty."},
					"chef_license":  {Label: "License", Type: "select", Options: []string{"accept", "accept-silent", "accept-no-persist"}, Tip: "Chef 15 and newer run only once its license is accepted; Cinc has none."},
					"installer_url": {Label: "Installer", Type: "text", Tip: "URL of an install script instead of the distribution's own, such as on a mirror."},
					"strict_attributes": {Label: "Strict attributes", Type: "checkbox", Default: false,
						Tip: "The config and the attributes of the action may not both set one value; without it the action's wins."},
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
