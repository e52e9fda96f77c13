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

// Verify looks up one size or image; images of the marketplace are not in the list of
// a probe.
func (p *DigitalOcean) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(Type(), call, classify)
	d, err := dial(s)
	if err != nil {
		return s.Failed(ctx, err), ctx.Err()
	}
	return s.LookUp(ctx, call.Ask, func(ctx context.Context) (string, error) {
		if call.Ask.Kind == loom.OfferImage {
			return d.describeImage(ctx, call.Ask.ID)
		}
		flavors, err := d.flavors(ctx)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(flavors, func(f loom.ProbeFlavor) bool { return f.ID == call.Ask.ID })
		if i < 0 {
			return "", cloud.Errorf(cloud.Refused, "region %s offers no size %s", d.region(), call.Ask.ID)
		}
		return flavors[i].Name, nil
	})
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
