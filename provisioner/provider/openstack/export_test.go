package openstack

import (
	"context"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// Choose returns the addresses of a server as Nova describes them.
func Choose(answer map[string]any, order []string) (access, bind string) {
	return choose(read(answer), order)
}

// Addresses returns those that CONFIRM would use.
func Addresses(ctx context.Context, o cloud.Options, spec *loom.TaskSpec, sink loom.Sink) (access, bind string, err error) {
	s := o.Begin(Type(), spec, sink, nova.Classify)
	s.Action, s.Task = loom.ActionConfirm, spec
	d, err := open(ctx, s)
	if err != nil {
		return "", "", err
	}
	m, err := s.Await(ctx, spec, d)
	return m.Access, m.Bind, err
}
