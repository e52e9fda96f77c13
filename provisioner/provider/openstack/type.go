// Package openstack is the provider type of OpenStack clouds with Keystone,
// Nova and Neutron.
//
// A machine is found again by host name and metadata, since Nova remembers no
// requests; a floating address made for it by its description. The package must not
// keep anything about machines itself, nor touch an address that belongs to another.
package openstack

import (
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "openstack"

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionCredentials, Names: []string{"openstack_auth_url"}},
	{Group: loom.SectionCredentials, Method: "User and password", Names: []string{"openstack_tenant", "api_user", "api_password"}},
	{Group: loom.SectionCredentials, Method: "Application credential", Names: []string{"application_credential_id", "application_credential_secret"}},
	{Group: loom.SectionNetwork, Names: []string{"network_ids", "security_groups"}},
	{Group: loom.SectionMachines, Names: []string{"ssh_keypair", "ssh_key_resource"}},
	{Group: loom.SectionAdvanced, Names: []string{"openstack_region", "availability_zone", "floating_ip", "floating_network", "boot_volume_size_gb", "openstack_domain", "openstack_user_domain", "openstack_project_domain",
		"openstack_ssl_verify_peer", provider.CAField, provider.EndpointField, provider.CallsField}},
}

// Type describes the provider type for the catalog.
func Type() loom.PluginType {
	sentBy := []string{"openstack_auth_url", provider.EndpointField, provider.CAField, "openstack_ssl_verify_peer"}
	key := []string{"openstack_auth_url", "ssh_keypair", "ssh_key_resource"}
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "OpenStack", Description: "Makes machines in an OpenStack cloud."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"api_user":         {Label: "User name", Type: "text", Role: loom.RoleAccess},
					"api_password":     {Label: "Password", Type: "password", Sensitive: true, BoundTo: sentBy},
					"openstack_tenant": {Label: "Project", Type: "text", Role: loom.RolePlace},
					"openstack_auth_url": {Label: "Keystone URL", Type: "text", Format: loom.FormatURL, Default: "https://keystone.example:5000/v3",
						Tip: "With HTTPS. Old URLs that end in /v2.0/tokens work too."},
					"openstack_domain": {Label: "Domain", Type: "text", Role: loom.RoleAccess, Default: "Default",
						Tip: "Of user and project, unless they have domains of their own."},
					"openstack_user_domain":         {Label: "Domain of the user", Type: "text", Role: loom.RoleAccess},
					"openstack_project_domain":      {Label: "Domain of the project", Type: "text", Role: loom.RolePlace},
					"openstack_region":              {Label: "Region", Type: "text", Role: loom.RolePlace, Override: true, Tip: "Required if the cloud has several."},
					"application_credential_id":     {Label: "Application credential id", Type: "text", Role: loom.RoleAccess},
					"application_credential_secret": {Label: "Application credential secret", Type: "password", Sensitive: true, BoundTo: sentBy},
					"ssh_keypair":                   {Label: "Key pair", Type: "text"},
					"ssh_key_resource":              provider.KeyResource(),
					"availability_zone":             {Label: "Availability zone", Type: "text", Override: true},
					"floating_ip":                   {Label: "Floating address", Type: "checkbox", Default: false, Override: true, Tip: "One for each machine."},
					"floating_network": {Label: "Network of floating addresses", Type: "text", Override: true,
						Tip: "Where new addresses come from when none is free."},
					"network_ids": {Label: "Networks", Type: "text", Override: true,
						Tip: "Ids, separated by commas, the main one first."},
					"boot_volume_size_gb": {Label: "Boot volume in GB", Type: "text", Override: true,
						Tip: "Machines boot from a new volume of this size that is made of the image and goes with them; for flavors without a disk. Empty: from the flavor's own disk."},
					"openstack_ssl_verify_peer": {Label: "Verify TLS certificates", Type: "checkbox", Default: true},
					"security_groups":           {Label: "Security groups", Type: "text", Default: "default", Override: true, Tip: "Names, separated by commas."},
					provider.EndpointField:      provider.EndpointURL(),
					provider.CAField:            provider.Authority(),
					provider.CallsField:         provider.Calls(),
				}),
				Required: [][]string{
					append([]string{"api_user", "api_password", "openstack_tenant"}, key...),
					append([]string{"application_credential_id", "application_credential_secret"}, key...),
				},
			},
			"user": {
				Fields: map[string]loom.FieldSchema{
					"user_data_resource": {Label: "User data resource", Type: "text", ResourceType: userDataFiles,
						Tip: "Name of a resource of type user_data, which machines run at their first boot."},
				},
				Required: [][]string{},
			},
		},
		ResourceTypes: map[string]loom.ResourceType{
			"ssh_keys":    provider.KeyFiles(),
			userDataFiles: {Format: "file", Permissions: "0755"},
		},
	}
}
