// Package google is the provider type of Google Compute Engine.
//
// The idempotency key is a label of the instance, and the instance's name is
// unique in its zone, so that two requests for a node cannot make two machines.
// The cloud remembers requestId for minutes only; nothing depends on it. It must
// not keep anything about machines itself, and must not retry: the session does.
package google

import (
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = "google"

var zones = []string{
	"asia-east1-a", "asia-east1-b", "asia-east1-c", "asia-northeast1-a", "asia-northeast1-b", "asia-northeast1-c",
	"europe-west1-b", "europe-west1-c", "europe-west1-d", "us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f",
	"us-east1-b", "us-east1-c", "us-east1-d", "us-west1-a", "us-west1-b",
}

// endpoint is the field endpoint_url, whose address the key has to name.
func endpoint() loom.FieldSchema {
	f := provider.EndpointURL()
	f.Tip = "Only for another address of the API than Google's own, with HTTPS. The JSON key has to name it: in a member endpoint_url, or by its universe_domain."
	return f
}

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionCredentials, Names: []string{"google_project", "api_key_resource"}},
	{Group: loom.SectionNetwork, Names: []string{"zone_name", "network", "subnetwork"}},
	{Group: loom.SectionMachines, Names: []string{"ssh_key_resource", "ssh_user"}},
	{Group: loom.SectionAdvanced, Names: []string{"google_client_email", "external_ip", "bootstrap_interface", "google_root_disk_size_gb", "google_root_disk_type", "google_data_disk_size_gb", "google_data_disk_type",
		"auto_restart", "provider_hostname", provider.CAField, provider.EndpointField, provider.CallsField}},
}

// Type describes the provider type for the catalog. The zone is a text with
// suggestions: there are more than anybody lists.
func Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "Google Compute Engine", Description: "Makes machines in Google Compute Engine."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"google_project": {Label: "Project", Type: "text", Role: loom.RolePlace, Tip: "Id of the project."},
					"google_client_email": {Label: "Service account", Type: "text", Role: loom.RoleAccess, Pattern: `.*gserviceaccount\.com`,
						Tip: "Ends in gserviceaccount.com. Leave empty to read it from the key."},
					"api_key_resource": {Label: "API key", Type: "text", Role: loom.RoleAccess, ResourceType: "api_keys",
						Tip: "The file with the JSON key of the service account."},
					"ssh_key_resource": provider.KeyResource(),
					"ssh_user":         {Label: "User on the machines", Type: "text", Tip: "Wins over the image's own user."},
					"google_data_disk_size_gb": {Label: "Data disks in GB", Type: "text", Default: "200", Override: true,
						Tip: "Sizes, separated by commas; one disk for each. 0 for none."},
					"google_data_disk_type": {Label: "Kind of data disks", Type: "select", Default: "standard", Override: true,
						Options: []string{"standard", "ssd", "balanced"}},
					"google_root_disk_size_gb": {Label: "Root disk in GB", Type: "text", Default: "10", Override: true},
					"google_root_disk_type": {Label: "Kind of root disk", Type: "select", Default: "standard", Override: true,
						Options: []string{"standard", "ssd"}},
					"zone_name": {Label: "Zone", Type: "text", Role: loom.RolePlace, Default: "us-central1-a", Override: true, Options: zones},
					"bootstrap_interface": {Label: "Address that Loom connects to", Type: "select", Default: loom.AccessV4, Override: true,
						Options: []string{loom.AccessV4, loom.BindV4}},
					"external_ip":          {Label: "Public address", Type: "checkbox", Default: true, Override: true},
					"auto_restart":         {Label: "Restart automatically", Type: "checkbox", Default: false, Override: true, Tip: "After maintenance or a failure of the host."},
					"provider_hostname":    {Label: "Take the public DNS name as host name", Type: "checkbox", Default: false, Override: true},
					"network":              {Label: "Network", Type: "text", Default: "default", Override: true},
					"subnetwork":           {Label: "Subnetwork", Type: "text", Override: true},
					provider.EndpointField: endpoint(),
					provider.CAField:       provider.Authority(),
					provider.CallsField:    provider.Calls(),
				}),
				Required: [][]string{{"google_project", "api_key_resource", "ssh_key_resource", "zone_name"}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{
			"api_keys": {Format: "file", Permissions: "0400"},
			"ssh_keys": provider.KeyFiles(),
		},
	}
}
