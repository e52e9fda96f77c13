package rackspace

import "loom/provisioner/provider/cloud"

// IdentityOf gives where a provider with these fields signs in.
func IdentityOf(fields map[string]any) (string, error) {
	return identityOf(cloud.Options{}.Begin(Type(), fields, nil, nil, nil))
}
