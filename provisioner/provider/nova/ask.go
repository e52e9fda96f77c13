package nova

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/availabilityzones"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// KeyPair looks for a key pair of the user.
func (c Compute) KeyPair(ctx context.Context, name string) (cloud.Pair, error) {
	all, err := c.keyPairs(ctx)
	if err != nil {
		return cloud.Pair{}, err
	}
	i := slices.IndexFunc(all, func(k keypairs.KeyPair) bool { return k.Name == name })
	if i < 0 {
		return cloud.Pair{}, cloud.Errorf(cloud.Refused, "Nova has no key pair “%s” for this user (provider field ssh_keypair); import it there", name)
	}
	return cloud.Pair{Name: name, Public: all[i].PublicKey, Fingerprint: all[i].Fingerprint}, nil
}

// KeyPairs lists the key pairs of the user.
func (c Compute) KeyPairs(ctx context.Context) ([]loom.ProbeChoice, error) {
	all, err := c.keyPairs(ctx)
	found := make([]loom.ProbeChoice, len(all))
	for i, k := range all {
		found[i] = loom.ProbeChoice{ID: k.Name, Name: k.Fingerprint}
	}
	return found, err
}

func (c Compute) keyPairs(ctx context.Context) ([]keypairs.KeyPair, error) {
	pages, err := keypairs.List(c.Client, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return keypairs.ExtractKeyPairs(pages)
}

// Zones lists the availability zones that can be used.
func (c Compute) Zones(ctx context.Context) (found []loom.ProbeChoice, err error) {
	all, err := c.zones(ctx)
	for _, z := range all {
		if z.ZoneState.Available {
			found = append(found, loom.ProbeChoice{ID: z.ZoneName})
		}
	}
	return found, err
}

func (c Compute) zones(ctx context.Context) ([]availabilityzones.AvailabilityZone, error) {
	pages, err := availabilityzones.List(c.Client).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return availabilityzones.ExtractAvailabilityZones(pages)
}

// Zone looks whether an availability zone can be used. A host may follow its name.
func (c Compute) Zone(ctx context.Context, text string) error {
	all, err := c.zones(ctx)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(text, ":")
	var has []string
	for _, z := range all {
		switch {
		case z.ZoneName == name && z.ZoneState.Available:
			return nil
		case z.ZoneName == name:
			return cloud.Errorf(cloud.Refused, "the availability zone “%s” (provider field availability_zone) is switched off at the moment", name)
		case z.ZoneState.Available:
			has = append(has, z.ZoneName)
		}
	}
	slices.Sort(has)
	return cloud.Errorf(cloud.Refused, "Nova has no availability zone “%s” (provider field availability_zone); choose one of %s", name, strings.Join(has, ", "))
}

// Quota says how much of the project's limits is used, and fails where one is used up.
func (c Compute) Quota(ctx context.Context) (string, error) {
	got, err := limits.Get(ctx, c.Client, nil).Extract()
	if err != nil {
		return "", err
	}
	if got == nil {
		return "", cloud.Errorf(cloud.Lost, "Nova answered without limits")
	}
	var all, full []string
	for _, l := range []struct {
		what       string
		used, most int
	}{
		{"machines", got.Absolute.TotalInstancesUsed, got.Absolute.MaxTotalInstances}, {"cores", got.Absolute.TotalCoresUsed, got.Absolute.MaxTotalCores},
		{"MB of memory", got.Absolute.TotalRAMUsed, got.Absolute.MaxTotalRAMSize},
	} {
		text := fmt.Sprintf("%d of %d %s", l.used, l.most, l.what)
		if l.most < 0 {
			text = fmt.Sprintf("%d %s without a limit", l.used, l.what)
		} else if l.used >= l.most {
			full = append(full, text)
		}
		all = append(all, text)
	}
	if len(full) > 0 {
		return "", cloud.Errorf(cloud.Quota, "the project's quota is used up: %s; delete machines or have it raised", strings.Join(full, ", "))
	}
	return "The project uses " + strings.Join(all, ", ") + ".", nil
}

// offers is what a cloud offers.
type offers[T any] struct{ all []T }

// flavor returns the id of a size that may be given by name. What Nova does not list is
// given unchanged: Nova may know it all the same. Errors are of calls that make nothing.
func (c Compute) flavor(ctx context.Context, s *cloud.Session, text string) (string, error) {
	about := append([]string{"flavors", c.Client.Endpoint}, c.About...)
	for again := true; ; again = false {
		list, err := cloud.Shared(ctx, s, about, func(ctx context.Context) (*offers[loom.ProbeFlavor], time.Time, error) {
			all, err := c.Flavors(ctx)
			return &offers[loom.ProbeFlavor]{all}, time.Time{}, err
		})
		if err != nil {
			if e := Classify(err); e.Kind == cloud.Refused || e.Kind == cloud.NotFound {
				return text, nil // this user may not list them
			}
			return "", err
		}
		var ids []string
		for _, f := range list.all {
			if f.ID == text {
				return text, nil
			}
			if f.Name == text {
				ids = append(ids, f.ID)
			}
		}
		switch {
		case len(ids) == 1:
			return ids[0], nil
		case len(ids) > 1:
			return "", cloud.Errorf(cloud.Refused, "Nova has %d flavors named “%s”; give the id of one in the hardware type: %s", len(ids), text, strings.Join(ids, ", "))
		case !again:
			return text, nil
		}
		cloud.Forget(s, about, list) // it may be a new one
	}
}

// imageID is how Glance writes ids.
var imageID = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// image returns the id of an image that may be given by name, which glance is asked for.
// Errors are of calls that make nothing.
func (c Compute) image(ctx context.Context, s *cloud.Session, glance func() (*gophercloud.ServiceClient, error), text string) (string, error) {
	if imageID.MatchString(text) {
		return text, nil
	}
	client, err := glance()
	if err != nil {
		return "", err
	}
	about := append([]string{"images", client.Endpoint, text}, c.About...)
	list, err := cloud.Shared(ctx, s, about, func(ctx context.Context) (*offers[loom.ProbeImage], time.Time, error) {
		all, err := listImages(ctx, client, images.ListOpts{Name: text, Status: images.ImageStatusActive})
		return &offers[loom.ProbeImage]{all}, time.Time{}, err
	})
	if err != nil {
		return "", err
	}
	switch len(list.all) {
	case 0:
		cloud.Forget(s, about, list)
		return "", cloud.Errorf(cloud.Refused, "Glance has no active image named “%s”; correct the image type, or give the image's id", text)
	case 1:
		return list.all[0].ID, nil
	}
	var ids []string
	for _, i := range list.all {
		ids = append(ids, i.ID)
	}
	return "", cloud.Errorf(cloud.Refused, "Glance has %d active images named “%s”; give the id of one in the image type: %s", len(ids), text, strings.Join(ids, ", "))
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

func listImages(ctx context.Context, glance *gophercloud.ServiceClient, opts images.ListOpts) (list []loom.ProbeImage, err error) {
	pages, err := images.List(glance, opts).AllPages(ctx)
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
