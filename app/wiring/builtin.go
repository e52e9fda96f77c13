package wiring

import (
	"loom/provisioner/automator"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	"loom/provisioner/automator/puppet"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
)

// builtInProviders and builtInAutomators are the plugins of this build that need
// nothing of the process but its options.
func (e *Environment) builtInProviders() []provider.Provider {
	clouds := cloud.Options{Insecure: e.Values.Switch("LOOM_ALLOW_INSECURE_ENDPOINTS")}
	return []provider.Provider{static.New(), aws.New(clouds), digitalocean.New(clouds), google.New(clouds), joyent.New(clouds), openstack.New(clouds), rackspace.New(clouds)}
}

func builtInAutomators() []automator.Automator {
	return []automator.Automator{chefsolo.New(), docker.New(), puppet.New()}
}
