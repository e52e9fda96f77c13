package digitalocean

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/digitalocean/godo"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Check looks at token, region, key and network.
func (d *driver) Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool {
	if !d.Look(ctx, probe, cloud.StepSignIn, "DigitalOcean takes the token.", func(ctx context.Context) error {
		_, _, err := d.client.Account.Get(ctx)
		return err
	}) {
		return false
	}
	d.Look(ctx, probe, cloud.StepRegion, "Machines can be made in region "+d.region()+".", func(ctx context.Context) error { return d.checkRegion(ctx, probe) })
	d.Choices(ctx, probe, "ssh_keypair", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
		keys, err := all(func(o *godo.ListOptions) ([]godo.Key, *godo.Response, error) { return d.client.Keys.List(ctx, o) })
		for _, k := range keys {
			found = append(found, loom.ProbeChoice{ID: k.Name, Name: k.Fingerprint})
		}
		return found, err
	})
	d.CheckPair(ctx, call, probe, "The account", func(ctx context.Context, name string) (cloud.Pair, error) {
		key, err := d.key(ctx, name)
		return cloud.Pair{Name: name, Public: key.PublicKey, Fingerprint: key.Fingerprint}, err
	})
	if id := d.Fields.Text("vpc_uuid"); id != "" {
		d.Look(ctx, probe, "VPC", "The network "+id+" exists.", func(ctx context.Context) error {
			_, _, err := d.client.VPCs.Get(ctx, id)
			return err
		})
	}
	return true
}

// checkRegion looks whether the region takes machines, and adds those that do to a probe.
func (d *driver) checkRegion(ctx context.Context, probe *loom.Probe) error {
	regions, err := all(func(o *godo.ListOptions) ([]godo.Region, *godo.Response, error) { return d.client.Regions.List(ctx, o) })
	if err != nil {
		return err
	}
	var open []string
	for _, r := range regions {
		if r.Available {
			open = append(open, r.Slug)
			probe.Offer("digitalocean_region", r.Slug, r.Name)
		}
	}
	if slices.Contains(open, d.region()) {
		return nil
	}
	slices.Sort(open)
	return cloud.Errorf(cloud.Refused, "no machines can be made in region %s (provider field digitalocean_region); choose one of %s", d.region(), strings.Join(open, ", "))
}

// Flavors lists the sizes that the region has.
func (d *driver) Flavors(ctx context.Context) (flavors []loom.ProbeFlavor, err error) {
	sizes, err := all(func(o *godo.ListOptions) ([]godo.Size, *godo.Response, error) { return d.client.Sizes.List(ctx, o) })
	for _, size := range sizes {
		if size.Available && slices.Contains(size.Regions, d.region()) {
			flavors = append(flavors, loom.ProbeFlavor{ID: size.Slug, Name: cmp.Or(size.Description, size.Slug), VCPU: size.Vcpus, RAM: size.Memory})
		}
	}
	slices.SortFunc(flavors, func(a, b loom.ProbeFlavor) int { return strings.Compare(a.ID, b.ID) })
	return flavors, err
}

// Images lists the distributions and the account's own images that the region has.
func (d *driver) Images(ctx context.Context) (images []loom.ProbeImage, err error) {
	for _, list := range []func(context.Context, *godo.ListOptions) ([]godo.Image, *godo.Response, error){
		d.client.Images.ListDistribution, d.client.Images.ListUser,
	} {
		found, err := all(func(o *godo.ListOptions) ([]godo.Image, *godo.Response, error) { return list(ctx, o) })
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			if slices.Contains(i.Regions, d.region()) {
				images = append(images, loom.ProbeImage{ID: cmp.Or(i.Slug, strconv.Itoa(i.ID)), Name: strings.TrimSpace(i.Distribution + " " + i.Name)})
			}
		}
	}
	slices.SortFunc(images, func(a, b loom.ProbeImage) int { return strings.Compare(a.ID, b.ID) })
	return images, nil
}
