package joyent

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Probe looks at credentials and key, and lists packages and images.
func (j *Joyent) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := j.options.Ask(Type(), call, classify)
	d, err := dial(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	probe := s.Answer()
	if !s.Look(ctx, probe, cloud.StepSignIn, "Triton takes them for the account “"+d.client.login+"”.", func(ctx context.Context) error {
		return d.client.call(ctx, http.MethodGet, "", nil, nil, nil)
	}) {
		return *probe, ctx.Err()
	}
	if name := s.Fields.Text("ssh_keypair"); name == "" {
		cloud.CheckKey(ctx, call, probe)
	} else {
		s.Look(ctx, probe, cloud.StepKeyPair, "The account has the key “"+name+"”.", func(ctx context.Context) error {
			return d.client.call(ctx, http.MethodGet, "/keys/"+url.PathEscape(name), nil, nil, nil)
		})
	}
	s.Sizes(ctx, probe, d.flavors)
	s.Images(ctx, probe, d.images)
	if ctx.Err() != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	return *probe, nil
}

// flavors lists the packages. Machines are asked for by name, which old versions
// want.
func (d *driver) flavors(ctx context.Context) (flavors []loom.ProbeFlavor, err error) {
	var packages []struct {
		ID, Name      string
		Memory, VCPUs int
	}
	if err := d.client.call(ctx, http.MethodGet, "/packages", nil, nil, &packages); err != nil {
		return nil, err
	}
	for _, p := range packages {
		flavors = append(flavors, loom.ProbeFlavor{ID: cmp.Or(p.Name, p.ID), Name: cmp.Or(p.Name, p.ID), VCPU: p.VCPUs, RAM: p.Memory})
	}
	slices.SortFunc(flavors, func(a, b loom.ProbeFlavor) int { return strings.Compare(a.ID, b.ID) })
	return flavors, nil
}

// images lists the images that the account may use.
func (d *driver) images(ctx context.Context) (images []loom.ProbeImage, err error) {
	var all []struct{ ID, Name, Version string }
	path := "/images"
	if old(d.client.version) {
		path = "/datasets"
	}
	if err := d.client.call(ctx, http.MethodGet, path, nil, nil, &all); err != nil {
		return nil, err
	}
	for _, i := range all {
		images = append(images, loom.ProbeImage{ID: i.ID, Name: strings.TrimSpace(i.Name + " " + i.Version)})
	}
	slices.SortFunc(images, func(a, b loom.ProbeImage) int { return strings.Compare(a.ID, b.ID) })
	return images, nil
}

// List gives the machines of the account with Loom's tags.
func (j *Joyent) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	s := j.options.Sweep(Type(), call, classify)
	d, err := dial(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open Triton: %w", s.Error(err))
	}
	var found []cloud.Machine
	if err := s.Call(ctx, func(ctx context.Context) (err error) {
		found, err = d.list(ctx, url.Values{})
		return err
	}); err != nil {
		return nil, err
	}
	return cloud.Tagged(found), nil
}
