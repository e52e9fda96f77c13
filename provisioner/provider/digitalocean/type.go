// Package digitalocean is the provider type of DigitalOcean.
//
// There are no client tokens: a machine is found again by the tag of its key, and of
// two with one key the older one is kept. The package must not keep anything about
// machines itself.
package digitalocean

import (
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "digitalocean"

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionCredentials, Names: []string{"api_password"}},
	{Group: loom.SectionNetwork, Names: []string{"digitalocean_region", "vpc_uuid"}},
	{Group: loom.SectionMachines, Names: []string{"ssh_keypair", "ssh_key_resource"}},
	{Group: loom.SectionAdvanced, Names: []string{"monitoring", "api_user", provider.CAField, provider.EndpointField, provider.CallsField}},
}

// Type describes the provider type for the catalog. The region is a text with
// suggestions; the first one of old is full, so another one is preset.
func Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "DigitalOcean", Description: "Makes machines (droplets) at DigitalOcean."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"api_user": {Label: "Client id", Type: "text", Role: loom.RoleAccess, Tip: "Of the API's first version; ignored now."},
					"api_password": {Label: "Access token", Type: "password", Sensitive: true, BoundTo: []string{provider.EndpointField, provider.CAField},
						Tip: "A personal access token that may read and write."},
					"digitalocean_region": {Label: "Region", Type: "text", Default: "nyc3", Override: true,
						Options: []string{"sfo1", "nyc2", "ams2", "sgp1", "lon1", "nyc3", "ams3"}},
					"ssh_keypair":          {Label: "Key", Type: "text", Tip: "Name of the key in the account."},
					"ssh_key_resource":     provider.KeyResource(),
					"vpc_uuid":             {Label: "VPC", Type: "text", Override: true, Tip: "Id of the network; empty for the region's own."},
					"monitoring":           {Label: "Monitoring", Type: "checkbox", Default: false, Override: true},
					provider.EndpointField: provider.EndpointURL(),
					provider.CAField:       provider.Authority(),
					provider.CallsField:    provider.Calls(),
				}),
				Required: [][]string{{"api_password", "digitalocean_region", "ssh_keypair", "ssh_key_resource"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": provider.KeyFiles()},
	}
}
