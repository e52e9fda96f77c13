package openstack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// Probe looks at credentials, region, key pair, availability zone, quota, security
// groups and networks, and lists sizes and images.
func (p *OpenStack) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(Type(), call, nova.Classify)
	probe := s.Answer()
	catalog, about, err := signIn(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	probe.Check(cloud.StepSignIn, true, "Keystone takes the credentials.")
	regions := catalog.Regions()
	for _, name := range regions {
		probe.Offer("openstack_region", name, "")
	}
	d, err := openCatalog(s, catalog, about)
	if err == nil {
		err = catalog.OneRegion()
	}
	if err != nil {
		probe.Check(cloud.StepRegion, false, cloud.Sentence(s.Error(err).Message))
		return *probe, nil // each service would be asked in a region of its own
	}
	probe.Check(cloud.StepRegion, true, "The cloud's regions: "+cmp.Or(strings.Join(regions, ", "), "none is named")+".")
	s.List(ctx, probe, "ssh_keypair", d.compute.KeyPairs)
	s.CheckPair(ctx, call, probe, "Nova", d.compute.KeyPair)
	s.List(ctx, probe, "availability_zone", d.compute.Zones)
	if zone := s.Fields.Text("availability_zone"); zone != "" {
		s.Look(ctx, probe, "availability zone", "The zone “"+zone+"” is there.", func(ctx context.Context) error { return d.compute.Zone(ctx, zone) })
	}
	d.checkQuota(ctx, s, probe)
	d.listNetworks(ctx, s, probe)
	d.checkNetworks(ctx, s, probe)
	s.Sizes(ctx, probe, d.compute.Flavors)
	s.Images(ctx, probe, func(ctx context.Context) ([]loom.ProbeImage, error) {
		glance, err := d.glance()
		if err != nil {
			return nil, err
		}
		return nova.Images(ctx, glance)
	})
	if ctx.Err() != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	return *probe, nil
}

// Verify looks up one size or image, by id or name.
func (p *OpenStack) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := p.options.Ask(Type(), call, nova.Classify)
	d, err := dial(ctx, s)
	if err == nil {
		err = d.catalog.OneRegion()
	}
	if err != nil {
		return s.Failed(ctx, err), context.Cause(ctx)
	}
	return d.compute.Verify(ctx, s, d.glance, call.Ask)
}

// checkQuota looks whether the project's limits allow machines. Who may not see them is
// none the wiser.
func (d *driver) checkQuota(ctx context.Context, s *cloud.Session, probe *loom.Probe) {
	var says string
	err := s.Call(ctx, func(ctx context.Context) (err error) {
		says, err = d.compute.Quota(ctx)
		return err
	})
	if err == nil {
		probe.Check("quota", true, says)
		return
	}
	switch e := s.Error(err); {
	case e.Kind == cloud.Refused || e.Kind == cloud.NotFound:
		probe.Check("quota", true, "It is not known: "+e.Message+".")
	default:
		probe.Check("quota", false, cloud.Sentence(e.Message))
	}
}

// checkNetworks looks whether what the fields name is there.
func (d *driver) checkNetworks(ctx context.Context, s *cloud.Session, probe *loom.Probe) {
	if wanted := s.Fields.List("security_groups"); len(wanted) > 0 {
		s.Look(ctx, probe, "security groups", "There: "+strings.Join(wanted, ", ")+".", func(ctx context.Context) error { return d.checkGroups(ctx, wanted) })
	}
	wanted, pool := s.Fields.List("network_ids"), s.Fields.Text("floating_network")
	if !s.Fields.Switch("floating_ip", false) {
		pool = ""
	}
	if len(wanted) == 0 && pool == "" {
		return
	}
	there := slices.Clone(wanted)
	if pool != "" {
		there = append(there, pool)
	}
	s.Look(ctx, probe, "network", "There: "+strings.Join(there, ", ")+".", func(ctx context.Context) error {
		if err := d.checkIDs(ctx, wanted); err != nil || pool == "" {
			return err
		}
		p, err := d.pool(s, &loom.TaskSpec{})
		if err != nil {
			return err
		}
		id, err := p.resolve(ctx, pool)
		if err == nil && id == pool {
			err = d.checkIDs(ctx, []string{id})
		}
		return err
	})
}

// listNetworks lists the networks and the security groups that the project may use.
func (d *driver) listNetworks(ctx context.Context, s *cloud.Session, probe *loom.Probe) {
	client, err := d.network()
	if err != nil {
		return // what needs it says so
	}
	s.List(ctx, probe, "network_ids", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
		pages, err := networks.List(client, networks.ListOpts{}).AllPages(ctx)
		if err != nil {
			return nil, err
		}
		all, err := networks.ExtractNetworks(pages)
		for _, n := range all {
			found = append(found, loom.ProbeChoice{ID: n.ID, Name: n.Name})
		}
		return found, err
	})
	s.List(ctx, probe, "floating_network", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
		yes := true
		pages, err := networks.List(client, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: &yes}).AllPages(ctx)
		if err != nil {
			return nil, err
		}
		all, err := networks.ExtractNetworks(pages)
		for _, n := range all {
			found = append(found, loom.ProbeChoice{ID: cmp.Or(n.Name, n.ID)})
		}
		return found, err
	})
	s.List(ctx, probe, "security_groups", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
		all, err := d.groups(ctx)
		for _, g := range all {
			found = append(found, loom.ProbeChoice{ID: cmp.Or(g.Name, g.ID), Name: g.Description})
		}
		return found, err
	})
}

// groups lists the project's security groups.
func (d *driver) groups(ctx context.Context) ([]groups.SecGroup, error) {
	client, err := d.network()
	if err != nil {
		return nil, err
	}
	pages, err := groups.List(client, groups.ListOpts{}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return groups.ExtractGroups(pages)
}

// checkGroups looks for security groups by name or id.
func (d *driver) checkGroups(ctx context.Context, wanted []string) error {
	all, err := d.groups(ctx)
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(g groups.SecGroup) bool { return g.Name == name || g.ID == name }) {
			return cloud.Errorf(cloud.Refused, "the project has no security group “%s” (provider field security_groups)", name)
		}
	}
	return nil
}

// checkIDs looks for networks.
func (d *driver) checkIDs(ctx context.Context, wanted []string) error {
	client, err := d.network()
	if err != nil {
		return err
	}
	for _, id := range wanted {
		if err := checkNetworkID(id); err != nil {
			return err
		}
		if _, err := networks.Get(ctx, client, id).Extract(); err != nil {
			if nova.Classify(err).Kind == cloud.NotFound {
				return cloud.Errorf(cloud.Refused, "Neutron has no network %s, or this project may not use it", id)
			}
			return err
		}
	}
	return nil
}

func (d *driver) glance() (*gophercloud.ServiceClient, error) {
	return d.catalog.Service("image", "", "v2")
}

// List gives the servers of the project with Loom's labels.
func (p *OpenStack) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	s := p.options.Sweep(Type(), call, nova.Classify)
	d, err := dial(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open OpenStack: %w", s.Error(err))
	}
	var found []cloud.Machine
	if err := s.Call(ctx, func(ctx context.Context) (err error) {
		found, err = d.compute.Labelled(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	return cloud.Tagged(found), nil
}
