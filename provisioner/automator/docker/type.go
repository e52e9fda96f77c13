package docker

import "loom/app/loom"

// TypeName is the name of the automator type.
const TypeName = "docker"

// Type describes the automator type for the catalog.
func Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Docker", Description: "Runs the service as a container on a machine that has Docker."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: map[string]loom.FieldSchema{
					"image_name": {Label: "Image", Type: "text", Tip: "[repository/]name[:tag]"},
					"environment_variables": {Label: "Environment variables", Type: "text", Override: true,
						Tip: "NAME=value, separated by commas; quotes protect a comma."},
					"links":         {Label: "Links", Type: "text", Override: true, Tip: "container[:alias], separated by commas."},
					"volumes":       {Label: "Volumes", Type: "text", Override: true, Tip: "Host directory:container directory, separated by commas."},
					"publish_ports": {Label: "Published ports", Type: "text", Override: true, Tip: "host:container, or one number for both, separated by commas."},
					"command":       {Label: "Command", Type: "text", Override: true, Tip: "What the container runs instead of the image's own command."},
					"restart_policy": {Label: "Restart", Type: "select", Default: "unless-stopped", Override: true,
						Options: []string{"no", "always", "unless-stopped"}},
				},
				Required: [][]string{{"image_name"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}
