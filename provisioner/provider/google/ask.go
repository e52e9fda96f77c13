package google

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Check looks at key, project, zone and network.
func (d *driver) Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool {
	var wrong error // to be told so, one has to be signed in
	if !d.Look(ctx, probe, cloud.StepSignIn, "Google takes the key.", func(ctx context.Context) error {
		_, err := d.api.Zones.Get(d.project, d.zone).Context(ctx).Do()
		if wrong = nil; err != nil && d.Error(err).Kind == cloud.NotFound {
			wrong, err = err, nil
		}
		return err
	}) {
		return false
	}
	d.Choices(ctx, probe, "zone_name", d.zones)
	if wrong != nil {
		probe.Check(cloud.StepRegion, false, cloud.Sentence(d.Error(wrong).Message))
		return false
	}
	probe.Check(cloud.StepRegion, true, "Project “"+d.project+"” has zone "+d.zone+".")
	cloud.CheckKey(ctx, call, probe)
	d.checkNetwork(ctx, probe)
	return true
}

// zones lists those of the project.
func (d *driver) zones(ctx context.Context) (found []loom.ProbeChoice, err error) {
	err = d.api.Zones.List(d.project).Pages(ctx, func(page *compute.ZoneList) error {
		for _, z := range page.Items {
			found = append(found, loom.ProbeChoice{ID: z.Name})
		}
		return nil
	})
	return found, err
}

// checkNetwork looks whether the network is there, and the subnetwork. Those of
// other projects are given by path, and are not looked at: that takes other rights.
func (d *driver) checkNetwork(ctx context.Context, probe *loom.Probe) {
	n := d.connection()
	if name, ok := strings.CutPrefix(n.Network, "global/networks/"); ok {
		d.Look(ctx, probe, "network", "The network “"+name+"” exists.", func(ctx context.Context) error {
			_, err := d.api.Networks.Get(d.project, name).Context(ctx).Do()
			return err
		})
	}
	if parts := strings.Split(n.Subnetwork, "/"); len(parts) == 4 && parts[0] == "regions" {
		d.Look(ctx, probe, "subnetwork", "The subnetwork “"+parts[3]+"” exists.", func(ctx context.Context) error {
			_, err := d.api.Subnetworks.Get(d.project, parts[1], parts[3]).Context(ctx).Do()
			return err
		})
	}
}

// Flavors lists the sizes of the zone that are still current.
func (d *driver) Flavors(ctx context.Context) (flavors []loom.ProbeFlavor, err error) {
	err = d.api.MachineTypes.List(d.project, d.zone).Pages(ctx, func(page *compute.MachineTypeList) error {
		for _, t := range page.Items {
			if t.Deprecated == nil {
				flavors = append(flavors, loom.ProbeFlavor{ID: t.Name, Name: t.Name, VCPU: int(t.GuestCpus), RAM: int(t.MemoryMb)})
			}
		}
		return nil
	})
	slices.SortFunc(flavors, func(a, b loom.ProbeFlavor) int { return strings.Compare(a.ID, b.ID) })
	return flavors, err
}

// Images lists the project's own images; there are many of others.
func (d *driver) Images(ctx context.Context) (images []loom.ProbeImage, err error) {
	err = d.api.Images.List(d.project).Pages(ctx, func(page *compute.ImageList) error {
		for _, i := range page.Items {
			if i.Deprecated == nil {
				images = append(images, loom.ProbeImage{ID: i.Name, Name: i.Name})
			}
		}
		return nil
	})
	slices.SortFunc(images, func(a, b loom.ProbeImage) int { return strings.Compare(a.ID, b.ID) })
	return images, err
}
