package nova

import (
	"cmp"
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// KeyPair looks whether the user has a key pair.
func (c Compute) KeyPair(ctx context.Context, name string) error {
	pages, err := keypairs.List(c.Client, nil).AllPages(ctx)
	if err != nil {
		return err
	}
	all, err := keypairs.ExtractKeyPairs(pages)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(k keypairs.KeyPair) bool { return k.Name == name }) {
		return cloud.Errorf(cloud.Refused, "Nova has no key pair “%s” for this user (provider field ssh_keypair); import it there", name)
	}
	return nil
}

// Flavors lists the sizes.
func (c Compute) Flavors(ctx context.Context) (list []loom.ProbeFlavor, err error) {
	pages, err := flavors.ListDetail(c.Client, flavors.ListOpts{}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	all, err := flavors.ExtractFlavors(pages)
	for _, f := range all {
		list = append(list, loom.ProbeFlavor{ID: f.ID, Name: cmp.Or(f.Name, f.ID), VCPU: f.VCPUs, RAM: f.RAM})
	}
	slices.SortFunc(list, func(a, b loom.ProbeFlavor) int { return cmp.Or(cmp.Compare(a.RAM, b.RAM), cmp.Compare(a.ID, b.ID)) })
	return list, err
}

// Images lists the images of Glance that can be used.
func Images(ctx context.Context, glance *gophercloud.ServiceClient) (list []loom.ProbeImage, err error) {
	pages, err := images.List(glance, images.ListOpts{Status: images.ImageStatusActive}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	all, err := images.ExtractImages(pages)
	for _, i := range all {
		list = append(list, loom.ProbeImage{ID: i.ID, Name: cmp.Or(i.Name, i.ID)})
	}
	slices.SortFunc(list, func(a, b loom.ProbeImage) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list, err
}
