package provider

import "loom/app/loom"

// Secret is the private key.
func (k *HostKey) Secret() loom.Secret { return k.private }
