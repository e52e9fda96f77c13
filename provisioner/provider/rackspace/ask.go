package rackspace

import (
	"context"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// Probe looks at credentials, region and key pair, and lists sizes and images.
func (p *Rackspace) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(Type(), call, nova.Classify)
	d, err := dial(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	probe := s.Answer()
	probe.Check(cloud.StepRegion, true, "The account has machines in region "+strings.ToUpper(region(s.Fields))+".")
	s.List(ctx, probe, "ssh_keypair", d.compute.KeyPairs)
	s.CheckPair(ctx, call, probe, "The account", d.compute.KeyPair)
	s.Sizes(ctx, probe, d.compute.Flavors)
	s.Images(ctx, probe, func(ctx context.Context) ([]loom.ProbeImage, error) {
		glance, err := d.glance()
		if err != nil {
			return nil, err
		}
		return nova.Images(ctx, glance)
	})
	if ctx.Err() != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	return *probe, nil
}

// Verify looks up one size or image, by id or name.
func (p *Rackspace) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(Type(), call, nova.Classify)
	d, err := dial(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	return d.compute.Verify(ctx, s, d.glance, call.Ask)
}

func (d *driver) glance() (*gophercloud.ServiceClient, error) {
	return d.catalog.Service("image", imageName, "v2")
}

// List gives the servers of the provider's region with Loom's labels.
func (p *Rackspace) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	s := p.options.Sweep(Type(), call, nova.Classify)
	d, err := dial(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open Rackspace: %w", s.Error(err))
	}
	var found []cloud.Machine
	if err := s.Call(ctx, func(ctx context.Context) (err error) {
		found, err = d.compute.Labelled(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	return cloud.Tagged(found), nil
}
