package cli

import (
	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	"loom/provisioner/automator/puppet"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
)

// carriedProviders and carriedAutomators are the plugins of this build that need
// nothing of the process.
func carriedProviders() []provider.Provider { return []provider.Provider{static.New()} }

func carriedAutomators() []automator.Automator {
	return []automator.Automator{chefsolo.New(), docker.New(), puppet.New()}
}

// shippedProviders and shippedAutomators are all types of plugins.md that a
// catalog shall know. Those whose plugin this build carries are described by
// their plugins; tasks of the others fail with a sentence that says so.
func shippedProviders() []loom.PluginType {
	return []loom.PluginType{
		aws.Type(), digitalocean.Type(), google.Type(), joyent.Type(), openstack.Type(), rackspace.Type(),
	}
}

func shippedAutomators() []loom.PluginType { return nil }
