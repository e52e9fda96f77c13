package cloud

import (
	"context"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// UserData returns what a new machine is passed for its first boot: own, which may be
// empty, and, where the field inject_host_key is on, the installation of the
// machine's host key. facts then hold that key, for Machine.Facts of a machine that
// was made with this user data and of no other: of one that was found nobody knows
// whether it was given the key. Both results are empty where there is nothing to
// pass. Errors are of kind Refused.
func UserData(ctx context.Context, spec *loom.TaskSpec, own []byte) (data []byte, facts map[string]any, err error) {
	key, err := provider.InjectedHostKey(ctx, spec, Auth(spec, ""))
	if err == nil && key == nil {
		return own, nil, nil
	}
	if err == nil {
		data, err = key.UserData(own)
	}
	if err != nil {
		return nil, nil, &Error{Kind: Refused, Message: err.Error(), Err: err}
	}
	return data, map[string]any{"ssh_host_keys": key.Recorded()}, nil
}
