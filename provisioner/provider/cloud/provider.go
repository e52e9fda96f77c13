package cloud

import (
	"context"
	"errors"
	"fmt"

	"loom/app/loom"
)

// Cloud describes a cloud to the provider that New makes of it.
type Cloud struct {
	// Name of the cloud or its API, for messages.
	Name string
	// Type describes the provider type for the catalog.
	Type func() loom.PluginType
	// Classify turns the errors of the cloud's client into *Error.
	Classify func(error) *Error
	// Open makes the driver of a session from the fields of the provider. Its errors
	// are *Error, or those of Classify, unless they are marked with Local.
	Open func(ctx context.Context, s *Session) (Driver, error)
	// Facts are further results of CREATE and CONFIRM, which DELETE clears.
	Facts []string
}

// Provider is the provider of a cloud: one session and one driver for each action. It
// has no state.
type Provider struct {
	cloud   Cloud
	options Options
}

// New returns the provider of a cloud.
func New(c Cloud, o Options) *Provider { return &Provider{c, o} }

// Type describes the provider type for the catalog.
func (p *Provider) Type() loom.PluginType { return p.cloud.Type() }

// open begins the session of a task. The session is there with an error too.
func (p *Provider) open(ctx context.Context, action loom.TaskAction, spec *loom.TaskSpec, sink loom.Sink) (*Session, Driver, error) {
	s := p.options.Begin(p.Type(), spec, sink, p.cloud.Classify)
	s.Action, s.Task = action, spec
	d, err := p.cloud.Open(ctx, s)
	return s, d, err
}

// Create finds or makes the machine of a node.
func (p *Provider) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, loom.ActionCreate, spec, sink)
	if err != nil {
		return s.createFailure(ctx, err)
	}
	return s.create(ctx, spec, d)
}

// Confirm waits until the machine runs, finishes what its cloud leaves to Loom, and waits
// until the machine is usable over SSH.
func (p *Provider) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, loom.ActionConfirm, spec, sink)
	if err != nil {
		return s.failure(ctx, err)
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return s.failure(ctx, err)
	}
	var disks Disks
	if f, ok := d.(Finisher); ok {
		if disks, err = f.Finish(ctx, &m); err != nil {
			result, err := s.failure(ctx, err)
			result.Result = m.Facts
			return result, err
		}
	}
	result, err := s.confirm(ctx, spec, m, disks)
	for name, value := range m.Facts {
		if result.Result == nil {
			result.Result = map[string]any{}
		}
		result.Result[name] = value
	}
	return result, err
}

// Delete removes the machine, waits until it is gone, and removes what it leaves behind.
func (p *Provider) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, loom.ActionDelete, spec, sink)
	if err != nil {
		return s.deleteFailure(ctx, spec, err)
	}
	result, err := s.delete(ctx, spec, d, p.cloud.Facts...)
	c, ok := d.(Cleaner)
	if err != nil || result.Status != 0 || !ok || spec.Alone {
		return result, err // what carries the key may belong to the node's own machine
	}
	if err := c.Cleanup(ctx); err != nil {
		return s.deleteFailure(ctx, spec, err)
	}
	return result, nil
}

// Probe looks whether the provider works as it is set up, and lists sizes and images.
func (p *Provider) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(p.Type(), call, p.cloud.Classify)
	d, err := p.cloud.Open(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	probe := s.Answer()
	if !d.Check(ctx, call, probe) {
		return *probe, context.Cause(ctx)
	}
	s.listSizes(ctx, probe, d.Flavors)
	s.listImages(ctx, probe, d.Images)
	if ctx.Err() != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	return *probe, nil
}

// Verify looks up one size or image, which the lists of a probe need not have. The error
// is errors.ErrUnsupported where the lists have all there are.
func (p *Provider) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(p.Type(), call, p.cloud.Classify)
	d, err := p.cloud.Open(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	describer, ok := d.(Describer)
	if !ok {
		return loom.Probe{}, errors.ErrUnsupported
	}
	return s.LookUp(ctx, call.Ask, func(ctx context.Context) (string, error) { return describer.Describe(ctx, call.Ask) })
}

// List returns the machines with Loom's labels.
func (p *Provider) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	s := p.options.Sweep(p.Type(), call, p.cloud.Classify)
	d, err := p.cloud.Open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", p.cloud.Name, s.Error(err))
	}
	var found []Machine
	if err := s.Call(ctx, func(ctx context.Context) error {
		found, err = d.List(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	return Tagged(found), nil
}
