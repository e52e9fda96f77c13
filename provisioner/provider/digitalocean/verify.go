package digitalocean

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/digitalocean/godo"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Describe looks up a size or image; images of the marketplace are not in the lists.
func (d *driver) Describe(ctx context.Context, offer loom.Offer) (string, error) {
	if offer.Kind == loom.OfferImage {
		return d.describeImage(ctx, offer.ID)
	}
	flavors, err := d.Flavors(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(flavors, func(f loom.ProbeFlavor) bool { return f.ID == offer.ID })
	if i < 0 {
		return "", cloud.Errorf(cloud.Refused, "region %s offers no size %s", d.region(), offer.ID)
	}
	return flavors[i].Name, nil
}

// describeImage asks for an image by slug or number.
func (d *driver) describeImage(ctx context.Context, ref string) (string, error) {
	var image *godo.Image
	var err error
	if id, bad := strconv.Atoi(ref); bad == nil {
		image, _, err = d.client.Images.GetByID(ctx, id)
	} else {
		image, _, err = d.client.Images.GetBySlug(ctx, ref)
	}
	if err != nil {
		return "", err
	}
	if !slices.Contains(image.Regions, d.region()) {
		return "", cloud.Errorf(cloud.Refused, "the image %s is not in region %s", ref, d.region())
	}
	return strings.TrimSpace(image.Distribution + " " + image.Name), nil
}
