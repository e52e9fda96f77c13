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
		return s.Failed(err), context.Cause(ctx)
	}
	probe := loom.Probe{OK: true}
	probe.Check("credentials", true, "Rackspace takes them, for region "+strings.ToUpper(region(s.Fields))+".")
	cloud.CheckKey(ctx, call, &probe)
	s.CheckPair(ctx, call, &probe, "The account", d.compute.KeyPair)
	s.Look(ctx, &probe, "sizes", "", func(ctx context.Context) (err error) {
		probe.Flavors, err = d.compute.Flavors(ctx)
		return err
	})
	s.Look(ctx, &probe, "images", "", func(ctx context.Context) error {
		glance, err := d.glance()
		if err != nil {
			return err
		}
		probe.Images, err = nova.Images(ctx, glance)
		return err
	})
	if ctx.Err() != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	return probe, nil
}

// Verify looks up one size or image, by id or name.
func (p *Rackspace) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(Type(), call, nova.Classify)
	d, err := dial(ctx, s)
	if err != nil {
		return s.Failed(err), context.Cause(ctx)
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
