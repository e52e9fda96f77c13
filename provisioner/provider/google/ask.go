package google

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Probe looks at key, project, zone and network, and lists the zone's sizes and
// the project's own images.
func (g *Google) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := g.options.Ask(Type(), call, classify)
	d, err := dial(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	probe := s.Answer()
	var wrong error // to be told so, one has to be signed in
	if !s.Look(ctx, probe, cloud.StepSignIn, "Google takes the key.", func(ctx context.Context) error {
		_, err := d.api.Zones.Get(d.project, d.zone).Context(ctx).Do()
		if wrong = nil; err != nil && s.Error(err).Kind == cloud.NotFound {
			wrong, err = err, nil
		}
		return err
	}) {
		return *probe, context.Cause(ctx)
	}
	s.List(ctx, probe, "zone_name", d.zones)
	if wrong != nil {
		probe.Check(cloud.StepRegion, false, cloud.Sentence(s.Error(wrong).Message))
		return *probe, nil
	}
	probe.Check(cloud.StepRegion, true, "Project “"+d.project+"” has zone "+d.zone+".")
	cloud.CheckKey(ctx, call, probe)
	d.checkNetwork(ctx, s, probe)
	s.Sizes(ctx, probe, d.flavors)
	s.Images(ctx, probe, d.ownImages)
	if ctx.Err() != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	return *probe, nil
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
func (d *driver) checkNetwork(ctx context.Context, s *cloud.Session, probe *loom.Probe) {
	n := d.connection()
	if name, ok := strings.CutPrefix(n.Network, "global/networks/"); ok {
		s.Look(ctx, probe, "network", "The network “"+name+"” is there.", func(ctx context.Context) error {
			_, err := d.api.Networks.Get(d.project, name).Context(ctx).Do()
			return err
		})
	}
	if parts := strings.Split(n.Subnetwork, "/"); len(parts) == 4 && parts[0] == "regions" {
		s.Look(ctx, probe, "subnetwork", "The subnetwork “"+parts[3]+"” is there.", func(ctx context.Context) error {
			_, err := d.api.Subnetworks.Get(d.project, parts[1], parts[3]).Context(ctx).Do()
			return err
		})
	}
}

// flavors lists the sizes of the zone that are still current.
func (d *driver) flavors(ctx context.Context) (flavors []loom.ProbeFlavor, err error) {
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

// ownImages lists the project's own images; there are many of others.
func (d *driver) ownImages(ctx context.Context) (images []loom.ProbeImage, err error) {
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

// List gives the instances of the project with Loom's labels, of all zones: the
// zone is the cluster's choice.
func (g *Google) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	s := g.options.Sweep(Type(), call, classify)
	d, err := dial(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open Compute Engine: %w", s.Error(err))
	}
	var found []cloud.Machine
	err = s.Call(ctx, func(ctx context.Context) error {
		found = nil
		return d.api.Instances.AggregatedList(d.project).Filter("labels."+cloud.LabelKey+":*").Pages(ctx, func(page *compute.InstanceAggregatedList) error {
			if len(page.Unreachables) > 0 {
				return cloud.Errorf(cloud.Unavailable, "Compute Engine cannot list %s just now", strings.Join(page.Unreachables, ", "))
			}
			for _, zone := range page.Items {
				for _, i := range zone.Instances {
					found = append(found, machine(i))
				}
			}
			cloud.Kept(ctx, len(found))
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return cloud.Tagged(found), nil
}
