// Package rackspace is the provider type of the Rackspace public cloud with its
// own sign-in by API key; the newer one with Keystone is the
// type openstack.
//
// A machine is found again by host name and metadata. The package must not keep
// anything about machines itself, nor read a field that it does not declare but for
// those that old providers carry (rackspace_auth_url, rackspace_config_drive).
package rackspace

import (
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "rackspace"

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionCredentials, Names: []string{"api_user", "api_password"}},
	{Group: loom.SectionNetwork, Names: []string{"rackspace_region", "rackspace_bind_private"}},
	{Group: loom.SectionAdvanced, Names: []string{provider.CAField, provider.EndpointField, provider.CallsField}},
}

// Type describes the provider type for the catalog.
func Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Rackspace", Description: "Makes machines in the Rackspace public cloud."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"api_user":     {Label: "User name", Type: "text", Role: loom.RoleAccess},
					"api_password": {Label: "API key", Type: "password", Sensitive: true, BoundTo: []string{provider.EndpointField, provider.CAField, "rackspace_auth_url"}},
					"rackspace_region": {Label: "Region", Type: "select", Role: loom.RolePlace, Default: "dfw", Override: true,
						Options: []string{"dfw", "ord", "iad", "lon", "syd", "hkg"}},
					"rackspace_bind_private": {Label: "Machines talk over ServiceNet", Type: "checkbox", Default: false,
						Tip: "The internal address is that of the private network."},
					provider.EndpointField: provider.EndpointURL(),
					provider.CAField:       provider.Authority(),
					provider.CallsField:    provider.Calls(),
				}),
				Required: [][]string{{"api_user", "api_password", "rackspace_region"}},
			},
			"user": {
				Fields: map[string]loom.FieldSchema{
					"rackconnect_wait": {Label: "Wait for RackConnect", Type: "checkbox", Default: false, Tip: "A machine is ready once RackConnect has deployed it."},
					"ssh_keypair":      {Label: "Key pair", Type: "text"},
					"ssh_key_resource": {Label: "SSH key", Type: "resource", ResourceType: "ssh_keys", Role: loom.RolePlace,
						Tip: "The private key. Without one Loom signs in with the password that the cloud makes."},
				},
				Required: [][]string{},
			},
		},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": provider.KeyFiles()},
	}
}
