package google

import (
	"context"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// AddressesOf returns the addresses that CONFIRM would use for a node.
func AddressesOf(ctx context.Context, o cloud.Options, spec *loom.TaskSpec) [2]string {
	s := o.Begin(Type(), spec, nil, classify)
	s.Action, s.Task = loom.ActionConfirm, spec
	d, err := open(ctx, s)
	if err != nil {
		return [2]string{err.Error()}
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return [2]string{err.Error()}
	}
	if _, err := d.(*driver).Finish(ctx, &m); err != nil {
		return [2]string{err.Error()}
	}
	return [2]string{m.Access, m.Bind}
}

// Names reports whether a key names the address of an API.
var Names = names
