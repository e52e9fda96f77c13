package google

import (
	"context"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Describe looks up a size or image; public images are not in the lists.
func (d *driver) Describe(ctx context.Context, offer loom.Offer) (string, error) {
	if offer.Kind == loom.OfferImage {
		return d.describeImage(ctx, offer.ID)
	}
	got, err := d.api.MachineTypes.Get(d.project, d.zone, offer.ID).Context(ctx).Do()
	if err != nil {
		return "", err
	}
	return got.Description, nil
}

// describeImage asks for an image where a machine would take it from.
func (d *driver) describeImage(ctx context.Context, name string) (string, error) {
	found, err := d.image(ctx, name)
	if err != nil {
		return "", err
	}
	_, path, _ := strings.Cut(found.path, "projects/")
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 5 && parts[3] == "family":
		got, err := d.api.Images.GetFromFamily(parts[0], parts[4]).Context(ctx).Do()
		if err != nil {
			return "", err
		}
		return got.Name, nil
	case len(parts) == 4:
		got, err := d.api.Images.Get(parts[0], parts[3]).Context(ctx).Do()
		if err != nil {
			return "", err
		}
		return got.Description, nil
	}
	return "", cloud.Errorf(cloud.Refused, "%.100q is no image; give its name, its path or family/<project>/<family>", name)
}
