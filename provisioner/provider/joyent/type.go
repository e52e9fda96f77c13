// Package joyent is the provider type of Triton CloudAPI, once Joyent's public
// cloud.
//
// The API has no client tokens: CREATE looks for a machine with the node's tag
// before and after it asks for one. Calls are signed with the key that opens the
// machines. It must not keep anything about machines itself, and must not retry:
// the session does.
package joyent

import (
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "joyent"

// usualAddress is the API where no field says so.
var usualAddress = address("us-east-1")

// address is the API of a region of the former public cloud.
func address(region string) string { return "https://" + region + ".api.joyentcloud.com" }

// layout is that of the form. Calls are signed where there is a key, so the key comes last.
var layout = loom.FieldLayout{
	{Group: loom.SectionCredentials, Names: []string{"joyent_api_url", "api_user"}},
	{Group: loom.SectionCredentials, Method: "Password", Names: []string{"api_password"}},
	{Group: loom.SectionCredentials, Method: "SSH key", Names: []string{"ssh_keypair"}},
	{Group: loom.SectionMachines, Names: []string{"ssh_key_resource"}},
	{Group: loom.SectionAdvanced, Names: []string{"joyent_version", provider.CAField, provider.EndpointField, provider.CallsField}},
}

// Type describes the provider type for the catalog. The address is a text with
// suggestions: Triton lives on in installations of one's own.
func Type() loom.PluginType {
	var addresses []string
	for _, region := range []string{"us-east-1", "us-east-2", "us-east-3", "us-sw-1", "us-west-1", "eu-ams-1"} {
		addresses = append(addresses, address(region))
	}
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Joyent Triton", Description: "Makes machines in an installation of Triton."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"api_user": {Label: "Account", Type: "text", Role: loom.RoleAccess},
					"api_password": {Label: "Password", Type: "password", Sensitive: true, BoundTo: []string{"joyent_api_url", provider.EndpointField, provider.CAField},
						Tip: "Current installations sign in by key and refuse passwords."},
					"ssh_keypair": {Label: "Key", Type: "text", Role: loom.RoleAccess, Tip: "Name or fingerprint of the key in the account."},
					"ssh_key_resource": {Label: "SSH key", Type: "resource", ResourceType: "ssh_keys", Role: loom.RoleAccess, // it signs requests too
						Tip: "The private key, for the API and for the machines."},
					"joyent_version":       {Label: "Version of the API", Type: "text", Role: loom.RoleAccess, Default: "~7.0"},
					"joyent_api_url":       {Label: "API address", Type: "text", Format: loom.FormatURL, Default: address("us-east-1"), Options: addresses},
					provider.EndpointField: provider.EndpointURL(),
					provider.CAField:       provider.Authority(),
					provider.CallsField:    provider.Calls(),
				}),
				Required: [][]string{{"api_user", "ssh_keypair", "ssh_key_resource"}, {"api_user", "api_password"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": provider.KeyFiles()},
	}
}
