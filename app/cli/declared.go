package cli

import (
	"loom/app/loom"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	"loom/provisioner/automator/puppet"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
)

// shippedProviders and shippedAutomators are all types of plugins.md that a
// catalog shall know. Those whose plugin this build carries are described by
// their plugins; tasks of the others fail with a sentence that says so.
func shippedProviders() []loom.PluginType {
	return []loom.PluginType{
		aws.Type(), digitalocean.Type(), google.Type(), joyent.Type(), openstack.Type(), rackspace.Type(), static.Type(),
	}
}

func shippedAutomators() []loom.PluginType {
	return []loom.PluginType{chefsolo.Type(), docker.Type(), puppet.Type()}
}
