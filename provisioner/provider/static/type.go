package static

import (
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "static"

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionMachines, Names: []string{"hosts", "ssh_user"}},
	{Group: loom.SectionCredentials, Method: "Password", Names: []string{"ssh_password"}},
	{Group: loom.SectionCredentials, Method: "SSH key", Names: []string{"ssh_key_resource"}},
	{Group: loom.SectionAdvanced, Names: []string{"cleanup_script"}},
}

// Type describes the provider type for the catalog.
func Type() loom.PluginType {
	key := provider.KeyResource()
	key.Role = loom.RoleAccess // of hosts that are there, not made with it
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Static hosts", Description: "Uses machines that you have already, over SSH; each serves one node at a time."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"hosts": {Label: "Hosts", Type: "textarea",
						Tip: "One machine per line: address[:port] [flavor=…] [image=…] [bind=…] [user=…]. One without flavor or image fits all."},
					"ssh_user":         {Label: "User on the machines", Type: "text", Role: loom.RoleAccess, Default: loom.DefaultSSHUser},
					"ssh_key_resource": key,
					"ssh_password": {Label: "SSH password", Type: "password", Sensitive: true,
						BoundTo: []string{"hosts", "ssh_jump", "ssh_jump_host_key", "ssh_host_ca"}},
					"cleanup_script": {Label: "Clean-up script", Type: "resource", ResourceType: "scripts", Role: loom.RoleAccess,
						Tip: "Run as root when a node gives its machine back."},
				}),
				Required: [][]string{{"hosts", "ssh_key_resource"}, {"hosts", "ssh_password"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{
			"ssh_keys": provider.KeyFiles(),
			"scripts":  {Format: "file", Permissions: "0755"},
		},
	}
}
