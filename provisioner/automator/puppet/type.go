package puppet

import "loom/app/loom"

// TypeName is the name of the automator type.
const TypeName = "puppet"

// Type describes the automator type for the catalog. A start or stop may name
// nothing but the service of the machine's operating system.
func Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Puppet", Description: "Applies Puppet manifests or classes on the machine, without a server."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: map[string]loom.FieldSchema{
					"manifest":       {Label: "Manifest", Type: "text", ResourceType: "manifests", Tip: "Name of a manifest resource, such as site.pp."},
					"classes":        {Label: "Classes", Type: "text", Tip: "Classes separated by commas, instead of a manifest."},
					"args":           {Label: "Options", Type: "text", Tip: "Further options of puppet apply, such as --tags web."},
					"parameters":     {Label: "Parameters", Type: "textarea", Tip: "A JSON object: Hiera data of this action. It wins over the cluster's config."},
					"hiera_resource": {Label: "Hiera resource", Type: "text", ResourceType: "hiera", Tip: "Name of a resource of type hiera."},
					"environment":    {Label: "Environment", Type: "text", Default: "production"},
					"puppet_distribution": {Label: "Distribution", Type: "select", Default: "openvox", Options: []string{"openvox", "puppet", "preinstalled"},
						Tip: "Whose packages are installed where neither the machine nor its operating system has Puppet."},
					"puppet_major":  {Label: "Major version", Type: "text", Default: "8", Tip: "Of those packages."},
					"installer_url": {Label: "Installer", Type: "text", Tip: "URL of a release package (.deb or .rpm) instead of the distribution's own, such as on a mirror."},
					"service_name": {Label: "System service", Type: "text",
						Tip: "For start and stop without manifest and classes: the service of the operating system."},
				},
				Required: [][]string{{"manifest"}, {"classes"}, {"service_name"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{
			"modules":    {Format: "archive"},
			"manifests":  {Format: "file", Permissions: "0644"},
			"hiera":      {Format: "archive"},
			"eyaml_keys": {Format: "archive"},
		},
	}
}
