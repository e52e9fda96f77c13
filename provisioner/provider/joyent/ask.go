package joyent

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Check looks at credentials and key.
func (d *driver) Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool {
	if !d.Look(ctx, probe, cloud.StepSignIn, "Triton takes them for the account “"+d.client.login+"”.", func(ctx context.Context) error {
		return d.client.call(ctx, http.MethodGet, "", nil, nil, nil)
	}) {
		return false
	}
	if name := d.Fields.Text("ssh_keypair"); name == "" {
		cloud.CheckKey(ctx, call, probe)
	} else {
		d.Look(ctx, probe, cloud.StepKeyPair, "The account has the key “"+name+"”.", func(ctx context.Context) error {
			return d.client.call(ctx, http.MethodGet, "/keys/"+url.PathEscape(name), nil, nil, nil)
		})
	}
	return true
}

// Flavors lists the packages. Machines are asked for by name, which old versions
// want.
func (d *driver) Flavors(ctx context.Context) (flavors []loom.ProbeFlavor, err error) {
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

// Images lists the images that the account may use.
func (d *driver) Images(ctx context.Context) (images []loom.ProbeImage, err error) {
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
