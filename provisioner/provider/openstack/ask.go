package openstack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// Check looks at key pair, availability zone, quota, security groups and networks. The
// sign-in told the rest.
func (d *driver) Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool {
	probe.Check(cloud.StepRegion, true, "The cloud's regions: "+cmp.Or(strings.Join(d.Catalog.Regions(), ", "), "none is named")+".")
	d.Choices(ctx, probe, "ssh_keypair", d.Compute.KeyPairs)
	d.CheckPair(ctx, call, probe, "Nova", d.Compute.KeyPair)
	d.Choices(ctx, probe, "availability_zone", d.Compute.Zones)
	if zone := d.Fields.Text("availability_zone"); zone != "" {
		d.Look(ctx, probe, "availability zone", "The zone “"+zone+"” exists.", func(ctx context.Context) error { return d.Compute.Zone(ctx, zone) })
	}
	d.checkQuota(ctx, probe)
	d.listNetworks(ctx, probe)
	d.checkNetworks(ctx, probe)
	return true
}

// checkQuota looks whether the project's limits allow machines. Who may not see them is
// none the wiser.
func (d *driver) checkQuota(ctx context.Context, probe *loom.Probe) {
	var says string
	err := d.Call(ctx, func(ctx context.Context) (err error) {
		says, err = d.Compute.Quota(ctx)
		return err
	})
	if err == nil {
		probe.Check("quota", true, says)
		return
	}
	switch e := d.Error(err); {
	case e.Kind == cloud.Refused || e.Kind == cloud.NotFound:
		probe.Check("quota", true, "It is not known: "+e.Message+".")
	default:
		probe.Check("quota", false, cloud.Sentence(e.Message))
	}
}

// checkNetworks looks whether what the fields name is there.
func (d *driver) checkNetworks(ctx context.Context, probe *loom.Probe) {
	if wanted := d.Fields.List("security_groups"); len(wanted) > 0 {
		d.Look(ctx, probe, "security groups", "There: "+strings.Join(wanted, ", ")+".", func(ctx context.Context) error { return d.checkGroups(ctx, wanted) })
	}
	wanted, pool := d.Fields.List("network_ids"), d.Fields.Text("floating_network")
	if !d.Fields.Switch("floating_ip", false) {
		pool = ""
	}
	if len(wanted) == 0 && pool == "" {
		return
	}
	there := slices.Clone(wanted)
	if pool != "" {
		there = append(there, pool)
	}
	d.Look(ctx, probe, "network", "There: "+strings.Join(there, ", ")+".", func(ctx context.Context) error {
		if err := d.checkIDs(ctx, wanted); err != nil || pool == "" {
			return err
		}
		p, err := d.pool(&loom.TaskSpec{})
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
func (d *driver) listNetworks(ctx context.Context, probe *loom.Probe) {
	client, err := d.network()
	if err != nil {
		return // what needs it says so
	}
	d.Choices(ctx, probe, "network_ids", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
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
	d.Choices(ctx, probe, "floating_network", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
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
	d.Choices(ctx, probe, "security_groups", func(ctx context.Context) (found []loom.ProbeChoice, err error) {
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
