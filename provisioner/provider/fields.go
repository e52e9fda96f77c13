package provider

import (
	"maps"

	"loom/app/loom"
)

// EndpointField is the name of the field that EndpointURL describes.
const EndpointField = "endpoint_url"

// EndpointURL is the field endpoint_url of every provider type with an API: for
// private installations of a cloud and for tests.
func EndpointURL() loom.FieldSchema {
	return loom.FieldSchema{Label: "API address", Type: "text", Role: loom.RoleAccess, Format: loom.FormatURL,
		Tip: "Only for an installation of your own: the URL of its API, with HTTPS. Leave empty for the provider's usual one."}
}

// Names of the fields that all providers of clouds have besides EndpointField.
const (
	CAField    = "api_ca"
	CallsField = "max_calls"
)

// MostCalls is the most that the field max_calls takes.
const MostCalls = 100

// Authority is the field api_ca of every provider type with an API.
func Authority() loom.FieldSchema {
	return loom.FieldSchema{Label: "Certificate authority", Type: "textarea", Role: loom.RoleAccess, Format: loom.FormatPEM,
		Tip: "Certificates in PEM form that are trusted for the API besides those of the provisioner's host. Leave empty for a provider with a public certificate."}
}

// Calls is the field max_calls of every provider type with an API.
func Calls() loom.FieldSchema {
	least, most := 1.0, float64(MostCalls)
	return loom.FieldSchema{Label: "API calls at once", Type: "number", Role: loom.RoleAccess, Default: 8.0, Min: &least, Max: &most,
		Tip: "How many calls of tasks each provisioner process has in flight for this tenant at this address. Connection tests and searches for machines come on top, one call at a time each. Enter less for an API that is slow under load."}
}

// keyFiles is the resource type of private keys.
const keyFiles = "ssh_keys"

// KeyResource is the field ssh_key_resource.
func KeyResource() loom.FieldSchema {
	return loom.FieldSchema{Label: "SSH key", Type: "resource", ResourceType: keyFiles, Role: loom.RolePlace,
		Tip: "The private key that opens the machines."}
}

// KeyFiles is the resource type ssh_keys, of private keys.
func KeyFiles() loom.ResourceType {
	return loom.ResourceType{Format: "file", Permissions: "0400"}
}

// Names of fields that every provider type has, as CommonFields describes them.
const (
	FieldConnectivityCheck = "connectivity_check"
	FieldInjectHostKey     = "inject_host_key"
	FieldSELinuxPermissive = "selinux_permissive"
)

// firstCommon is the order of the first of CommonFields: they come after those of a type.
const firstCommon = 5000

var commonLayout = loom.FieldLayout{{Group: loom.SectionAdvanced, Names: []string{"ssh_jump", "ssh_jump_key_resource", "ssh_jump_host_key", "ssh_key_passphrase", "ssh_host_ca", FieldInjectHostKey, "legacy_ssh_algorithms",
	FieldConnectivityCheck, "manage_hosts", FieldSELinuxPermissive, loom.FieldExposeCredentials}}}

// CommonFields are the optional fields of every provider type whose machines are
// reached over SSH: how Loom signs in to them and what it does there besides what
// services ask for. They have no other home.
func CommonFields() map[string]loom.FieldSchema {
	return commonLayout.From(firstCommon, map[string]loom.FieldSchema{
		FieldConnectivityCheck: {Label: "Outbound check", Type: "text", Default: "none", Role: loom.RoleAccess,
			Tip: "A host name that each new machine must resolve and reach on port 443, or “none”."},
		"manage_hosts": {Label: "Write /etc/hosts", Type: "checkbox", Role: loom.RoleAccess, Default: false,
			Tip: "Before INSTALL and CONFIGURE a machine gets all nodes of its cluster into its /etc/hosts, in a block of their own."},
		FieldInjectHostKey: {Label: "Inject host key", Type: "checkbox", Default: false,
			Tip: "A cloud that takes user data passes a new machine its SSH host key, so that the first sign-in is verified. Needs cloud-init in the image; programs on the machine may read user data."},
		FieldSELinuxPermissive: {Label: "SELinux permissive", Type: "checkbox", Default: false, Tip: "Sets SELinux from enforcing to permissive on new machines, until they restart."},
		"legacy_ssh_algorithms": {Label: "Allow old SSH algorithms", Type: "checkbox", Role: loom.RoleAccess, Default: false,
			Tip: "Adds those with SHA-1, for machines whose SSH server knows no others."},
		loom.FieldExposeCredentials: {Label: "Expose credentials", Type: "checkbox", Role: loom.RoleAccess, Default: false,
			Tip: "For old scripts: services may give their scripts this provider's credentials. Whoever writes services or reads their logs can read them then."},
		"ssh_key_passphrase": {Label: "Passphrase of the SSH key", Type: "password", Sensitive: true, Tip: "If the private key is encrypted."},
		"ssh_jump": {Label: "Jump hosts", Type: "text", Role: loom.RoleAccess,
			Tip: "user@host or user@host:port; machines are reached by way of it. Several, separated by commas, are passed in their order."},
		"ssh_jump_key_resource": {Label: "SSH key of jump hosts", Type: "resource", ResourceType: keyFiles, Role: loom.RoleAccess,
			Tip: "The private key that opens the jump hosts. Leave empty if the machines' key does."},
		"ssh_jump_host_key": {Label: "Host keys of jump hosts", Type: "textarea", Role: loom.RoleAccess,
			Tip: "Public host keys, one a line, as ssh-keyscan prints them. Leave empty to have each node learn them at its first sign-in."},
		"ssh_host_ca": {Label: "Trusted host CAs", Type: "textarea", Role: loom.RoleAccess,
			Tip: "Public keys, one a line. Host certificates that one of them signed for a machine's name or address are accepted; other host keys are learned at the first sign-in."},
	})
}

// Unconnected is implemented by providers whose machines nobody signs in to, such
// as invented ones; their types have none of CommonFields.
type Unconnected interface {
	// Unconnected reports whether it is so.
	Unconnected() bool
}

// withCommon adds what all provider types have to one of them. What the type
// declares itself stays as it is. The argument is not changed.
func withCommon(t loom.PluginType) loom.PluginType {
	t.Parameters = maps.Clone(t.Parameters)
	if t.Parameters == nil {
		t.Parameters = map[string]loom.FieldGroup{}
	}
	group := t.Parameters["admin"]
	fields := CommonFields()
	maps.Copy(fields, group.Fields)
	if user := t.Parameters["user"].Fields; user != nil {
		for name := range CommonFields() {
			if _, own := user[name]; own && group.Fields[name].Label == "" {
				delete(fields, name)
			}
		}
	}
	group.Fields = fields
	t.Parameters["admin"] = group
	if _, ok := t.ResourceTypes[keyFiles]; !ok {
		t.ResourceTypes = maps.Clone(t.ResourceTypes)
		if t.ResourceTypes == nil {
			t.ResourceTypes = map[string]loom.ResourceType{}
		}
		t.ResourceTypes[keyFiles] = KeyFiles()
	}
	return t
}
