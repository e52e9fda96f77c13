package aws

import "loom/provisioner/provider/cloud"

// NewWithMetadata makes a provider whose host has its EC2 metadata elsewhere.
func NewWithMetadata(o cloud.Options, metadata string) *cloud.RebootingProvider {
	return newProvider(o, metadata)
}
