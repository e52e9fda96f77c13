package shell

import "loom/app/loom"

// Type describes the automator type.
func (Shell) Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: "shell", Label: "Shell", Description: "Runs scripts and commands on the machine over SSH."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: map[string]loom.FieldSchema{
					"script": {Label: "Script", Type: "text", ResourceType: "scripts", Tip: "Name of a script resource, an absolute path, or any command."},
					"args":   {Label: "Arguments", Type: "text", Tip: "As you would type them in a shell: quotes, variables and patterns work."},
					"timeout_s": {Label: "Time limit in seconds", Type: "number",
						Tip: "Empty: only the limit of the task applies.", Min: new(float64(1))},
					"expose_credentials": {Label: "Expose credentials", Type: "checkbox", Default: false,
						Tip: "For old scripts: the task's JSON holds the provider's credentials while the script runs, where the provider allows it."},
				},
				Required: [][]string{{"script"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{
			"scripts":  {Format: "file", Permissions: "0755"},
			"archives": {Format: "archive"},
		},
	}
}
