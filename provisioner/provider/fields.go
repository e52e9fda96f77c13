package provider

import "loom/app/loom"

// EndpointField is the name of the field that EndpointURL describes.
const EndpointField = "endpoint_url"

// EndpointURL is the field endpoint_url of every provider type with an API: for
// private installations of a cloud and for tests (plugins.md 2).
func EndpointURL() loom.FieldSchema {
	return loom.FieldSchema{Label: "API address", Type: "text",
		Tip: "Only for an installation of your own: the URL of its API, with HTTPS. Leave empty for the provider's usual one."}
}

// KeyResource is the field ssh_key_resource.
func KeyResource() loom.FieldSchema {
	return loom.FieldSchema{Label: "SSH key resource", Type: "text",
		Tip: "Name of a resource of type ssh_keys: the private key that opens the machines."}
}

// KeyFiles is the resource type ssh_keys, of private keys.
func KeyFiles() loom.ResourceType {
	return loom.ResourceType{Format: "file", Permissions: "0400"}
}
