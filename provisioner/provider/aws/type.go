// Package aws is the provider type of Amazon EC2.
//
// A machine is found again by the client token that it was asked for with. The
// package must not keep anything about machines itself, nor read a field that it
// does not declare but for those that old providers carry (aws_ebs_size,
// aws_ebs_delete_on_term, tags) and those of all providers.
package aws

import (
	"slices"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "aws"

var regions = []string{
	"ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1",
	"eu-west-1", "eu-west-2", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
}

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionCredentials, Method: "Access key", Names: []string{"api_user", "api_password"}},
	{Group: loom.SectionCredentials, Method: "Role of this host", Names: []string{loom.InstanceRoleField}},
	{Group: loom.SectionNetwork, Names: []string{"aws_region", "security_groups", "security_group_ids", "subnet_id"}},
	{Group: loom.SectionMachines, Names: []string{"ssh_keypair", "ssh_key_resource"}},
	{Group: loom.SectionAdvanced, Names: []string{"aws_session_token", "availability_zone", "associate_public_ip", "aws_root_ebs_size", "aws_root_ebs_volume_type", "aws_root_ebs_delete_on_term", "provider_hostname", "iam_instance_profile",
		"placement_group", "dedicated_instance", provider.CAField, provider.EndpointField, provider.CallsField}},
}

// Type describes the provider type for the catalog. The region is a text with
// suggestions: there are more than anybody lists.
func Type() loom.PluginType {
	keys, role := []string{"api_user", "api_password"}, []string{loom.InstanceRoleField}
	usual, named, inVPC := []string{"ssh_keypair", "ssh_key_resource", "aws_region"}, []string{"security_groups"}, []string{"security_group_ids", "subnet_id"}
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Amazon Web Services", Description: "Makes machines in Amazon EC2."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"api_user": {Label: "Access key id", Type: "text", Role: loom.RoleAccess},
					// The key signs and is never sent, so it is bound to nothing.
					"api_password":      {Label: "Secret access key", Type: "password", Sensitive: true},
					"aws_session_token": {Label: "Session token", Type: "password", Sensitive: true, BoundTo: []string{provider.EndpointField, provider.CAField}, Tip: "For temporary credentials only."},
					loom.InstanceRoleField: {Label: "Use the role of this host", Type: "checkbox", Role: loom.RoleAccess, Default: false,
						Tip: "Loom runs on EC2 and takes the credentials of its instance's role."},
					"ssh_keypair":      {Label: "Key pair", Type: "text", Override: true, Tip: "Name of the key pair in EC2."},
					"ssh_key_resource": override(provider.KeyResource()),
					"aws_region":       {Label: "Region", Type: "text", Role: loom.RolePlace, Default: "us-east-1", Options: regions},
					"aws_root_ebs_size": {Label: "Root volume in GB", Type: "text", Default: "10", Override: true,
						Tip: "Never smaller than the image's own."},
					"aws_root_ebs_delete_on_term": {Label: "Delete the root volume with the machine", Type: "checkbox", Default: true, Override: true},
					"aws_root_ebs_volume_type": {Label: "Kind of root volume", Type: "select", Default: "gp3", Override: true,
						Options: []string{"standard", "gp2", "gp3", "io2"}},
					"security_groups": {Label: "Security groups", Type: "text", Default: "default", Override: true,
						Tip: "Names, separated by commas; outside a VPC or in the default one."},
					"security_group_ids":   {Label: "Security group ids", Type: "text", Override: true, Tip: "Ids, separated by commas; in a VPC."},
					"subnet_id":            {Label: "Subnet id", Type: "text", Override: true, Tip: "When set, machines are made in the VPC of this subnet."},
					"dedicated_instance":   {Label: "Dedicated hardware", Type: "checkbox", Default: false, Override: true, Tip: "In a VPC only."},
					"associate_public_ip":  {Label: "Public address", Type: "checkbox", Default: true, Override: true, Tip: "In a VPC only."},
					"provider_hostname":    {Label: "Take the public DNS name as host name", Type: "checkbox", Default: false, Override: true},
					"availability_zone":    {Label: "Availability zone", Type: "text", Override: true},
					"iam_instance_profile": {Label: "IAM instance profile", Type: "text", Override: true},
					"placement_group":      {Label: "Placement group", Type: "text", Override: true},
					provider.EndpointField: provider.EndpointURL(),
					provider.CAField:       provider.Authority(),
					provider.CallsField:    provider.Calls(),
				}),
				Required: [][]string{
					slices.Concat(keys, usual, named), slices.Concat(keys, usual, inVPC), slices.Concat(role, usual, named), slices.Concat(role, usual, inVPC),
				},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": provider.KeyFiles()},
	}
}

func override(f loom.FieldSchema) loom.FieldSchema {
	f.Override = true
	return f
}
