package openstack

import (
	"context"

	"loom/app/loom"
)

// Choose gives the addresses of a server as Nova describes them.
func Choose(answer map[string]any, order []string) (access, bind string) {
	return choose(read(answer), order)
}

// Addresses gives those that CONFIRM would use.
func Addresses(ctx context.Context, p *OpenStack, spec *loom.TaskSpec, sink loom.Sink) (access, bind string, err error) {
	s, d, err := p.open(ctx, spec, sink)
	if err != nil {
		return "", "", err
	}
	m, err := s.Await(ctx, spec, d)
	return m.Access, m.Bind, err
}
