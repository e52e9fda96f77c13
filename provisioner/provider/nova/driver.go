package nova

import (
	"cmp"
	"context"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Driver is what the drivers of clouds made of OpenStack have in common.
type Driver struct {
	*cloud.Session
	Compute Compute
	Catalog Catalog
	// ImageService is the name of the image service in the catalog, "" for any.
	ImageService string
}

// NewDriver returns the driver for the compute service of a name, "" for any. about tells
// whose catalog it is, as SignIn heard.
func NewDriver(s *cloud.Session, catalog Catalog, about []string, computeService, imageService string) (Driver, error) {
	compute, err := catalog.Service("compute", computeService, "")
	return Driver{s, Compute{Client: compute, About: about}, catalog, imageService}, err
}

// Idempotent reports that Nova remembers no requests.
func (*Driver) Idempotent() bool { return false }

// Find looks by host name and key.
func (d *Driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	all, err := d.Compute.Find(ctx, d.Task.Hostname, key)
	var found []cloud.Machine
	for i := range all {
		m := Machine(&all[i])
		m.Password = password(d.Task, m.ID)
		found = append(found, m)
	}
	return found, err
}

// Delete asks for the end of a server.
func (d *Driver) Delete(ctx context.Context, id string) error { return d.Compute.Delete(ctx, id) }

// Reboot asks for the start or the reset of a server.
func (d *Driver) Reboot(ctx context.Context, m cloud.Machine) error { return d.Compute.Reboot(ctx, m) }

// List returns the servers of the project with Loom's labels.
func (d *Driver) List(ctx context.Context) ([]cloud.Machine, error) { return d.Compute.Labelled(ctx) }

// Flavors lists the sizes.
func (d *Driver) Flavors(ctx context.Context) ([]loom.ProbeFlavor, error) {
	return d.Compute.Flavors(ctx)
}

// Images lists the images that can be used.
func (d *Driver) Images(ctx context.Context) ([]loom.ProbeImage, error) {
	glance, err := d.glance()
	if err != nil {
		return nil, err
	}
	return listImages(ctx, glance, images.ListOpts{Status: images.ImageStatusActive})
}

func (d *Driver) glance() (*gophercloud.ServiceClient, error) {
	return d.Catalog.Service("image", d.ImageService, "v2")
}

// Refs returns the ids of the flavor and the image of a task, which may be given by name.
// Errors are of calls that make nothing.
func (d *Driver) Refs(ctx context.Context, spec *loom.TaskSpec) (flavor, image string, err error) {
	if flavor, err = d.Compute.flavor(ctx, d.Session, spec.Flavor); err != nil {
		return "", "", err
	}
	image, err = d.Compute.image(ctx, d.Session, d.glance, spec.Image)
	return flavor, image, err
}

// Describe looks up a size or image by id or name.
func (d *Driver) Describe(ctx context.Context, offer loom.Offer) (string, error) {
	if offer.Kind == loom.OfferImage {
		client, err := d.glance()
		if err != nil {
			return "", err
		}
		id, err := d.Compute.image(ctx, d.Session, d.glance, offer.ID)
		if err != nil {
			return "", err
		}
		image, err := images.Get(ctx, client, id).Extract()
		if err != nil {
			return "", err
		}
		if image.Status != images.ImageStatusActive {
			return "", cloud.Errorf(cloud.Refused, "the image %s is %s and cannot be used", id, image.Status)
		}
		return cmp.Or(image.Name, id), nil
	}
	id, err := d.Compute.flavor(ctx, d.Session, offer.ID)
	if err != nil {
		return "", err
	}
	flavor, err := flavors.Get(ctx, d.Compute.Client, url.PathEscape(id)).Extract()
	if err != nil {
		return "", err
	}
	return cmp.Or(flavor.Name, id), nil
}
