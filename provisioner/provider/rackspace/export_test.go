package rackspace

import (
	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// IdentityOf gives where a provider with these fields signs in.
func IdentityOf(fields map[string]any) (string, error) {
	return identityOf(cloud.Options{}.Begin(Type(), &loom.TaskSpec{Provider: loom.Provider{Fields: fields}}, nil, nil))
}
