package openstack

import (
	"context"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// What is stored of a node's floating address: its id, and whether it was made for
// the node.
const (
	factID      = "floating_ip_id"
	factCreated = "floating_ip_created"
)

// markOf is the description of floating addresses made for a node, by which they
// are found even if nobody could store their id.
func markOf(spec *loom.TaskSpec) string { return cloud.Tag(cloud.LabelKey, spec.IdempotencyKey) }

// pool is the work with floating addresses of one task.
type pool struct {
	*cloud.Session
	client  *gophercloud.ServiceClient
	project string
	mark    string
	// network is the id of the one that new addresses come from, "" for none.
	network string
}

func (d *driver) pool(spec *loom.TaskSpec) (*pool, error) {
	client, err := d.network()
	if err != nil {
		return nil, err
	}
	p := &pool{Session: d.Session, client: client, mark: markOf(spec)}
	// An administrator would see the addresses of all projects.
	if token, ok := d.Catalog.Provider.GetAuthResult().(tokens.CreateResult); ok {
		if project, err := token.ExtractProject(); err == nil && project != nil {
			p.project = project.ID
		}
	}
	return p, nil
}

// Finish returns a machine its floating address, if the fields ask for one.
func (d *driver) Finish(ctx context.Context, m *cloud.Machine) (cloud.Disks, error) {
	if !d.Fields.Switch("floating_ip", false) {
		return cloud.Disks{}, nil
	}
	return cloud.Disks{}, d.float(ctx, m)
}

// float returns a machine its floating address. Its facts are also set with an error.
func (d *driver) float(ctx context.Context, m *cloud.Machine) error {
	p, err := d.pool(d.Task)
	if err != nil {
		return err
	}
	if p.network, err = p.resolve(ctx, d.Fields.Text("floating_network")); err != nil {
		return err
	}
	mine, err := p.ports(ctx, m.ID)
	if err != nil {
		return err
	}
	if len(mine) == 0 {
		return cloud.Errorf(cloud.Broken, "server %s has no port that could carry a floating address", m.ID)
	}
	all, err := p.list(ctx, floatingips.ListOpts{})
	if err != nil {
		return err
	}
	is, found := p.attached(all, mine)
	switch {
	case !found && d.floats:
		return nil // the cloud gave it one that the project does not own
	case !found:
		port := portOf(mine, m.Bind)
		if is, found, err = p.take(ctx, all, port, m.Bind); err == nil && !found {
			is, err = p.make(ctx, port, m.Bind)
		}
		if err != nil {
			return err
		}
	}
	m.Access = is.FloatingIP
	m.Facts = map[string]any{factID: is.ID, factCreated: is.Description == p.mark}
	d.Log("server %s has the floating address %s", m.ID, is.FloatingIP)
	return d.Fact(m.Facts)
}

// ports lists those of a server.
func (p *pool) ports(ctx context.Context, server string) (list []ports.Port, err error) {
	err = p.Call(ctx, func(ctx context.Context) error {
		pages, err := ports.List(p.client, ports.ListOpts{DeviceID: server}).AllPages(ctx)
		if err != nil {
			return err
		}
		list, err = ports.ExtractPorts(pages)
		return err
	})
	return list, err
}

// portOf returns the port with an address, else the first one.
func portOf(list []ports.Port, ip string) ports.Port {
	for _, port := range list {
		if slices.ContainsFunc(port.FixedIPs, func(f ports.IP) bool { return f.IPAddress == ip }) {
			return port
		}
	}
	return list[0]
}

// list returns the project's floating addresses.
func (p *pool) list(ctx context.Context, opts floatingips.ListOpts) (list []floatingips.FloatingIP, err error) {
	opts.ProjectID = p.project
	err = p.Call(ctx, func(ctx context.Context) error {
		pages, err := floatingips.List(p.client, opts).AllPages(ctx)
		if err != nil {
			return err
		}
		list, err = floatingips.ExtractFloatingIPs(pages)
		return err
	})
	return list, err
}

// attached finds the address that one of the ports has already.
func (p *pool) attached(all []floatingips.FloatingIP, mine []ports.Port) (floatingips.FloatingIP, bool) {
	for _, f := range all {
		if f.PortID != "" && slices.ContainsFunc(mine, func(port ports.Port) bool { return port.ID == f.PortID }) {
			return f, true
		}
	}
	return floatingips.FloatingIP{}, false
}

// take returns the port a free address of the project: first one that was made for
// the node, and none that was made for another.
func (p *pool) take(ctx context.Context, all []floatingips.FloatingIP, port ports.Port, fixed string) (floatingips.FloatingIP, bool, error) {
	var free []floatingips.FloatingIP
	for _, f := range all {
		switch {
		case f.PortID != "" || p.network != "" && f.FloatingNetworkID != p.network:
		case f.Description == p.mark:
			free = slices.Insert(free, 0, f)
		case !strings.HasPrefix(f.Description, cloud.LabelKey+"-"):
			free = append(free, f)
		}
	}
	for _, f := range free {
		is, err := p.associate(ctx, f, port, fixed)
		if err != nil {
			return f, false, err
		}
		if is {
			return f, true, nil
		}
		p.Log("somebody else was faster with the floating address %s; trying another", f.FloatingIP)
	}
	return floatingips.FloatingIP{}, false, nil
}

// associate returns the port an address that was free a moment ago. Neutron would move it
// from one port to another without a word, so it is told which revision is meant, and
// read back in the end; that also tells after a lost answer.
func (p *pool) associate(ctx context.Context, f floatingips.FloatingIP, port ports.Port, fixed string) (bool, error) {
	opts := floatingips.UpdateOpts{PortID: &port.ID, FixedIP: fixedOf(port, fixed)}
	if f.RevisionNumber > 0 {
		opts.RevisionNumber = &f.RevisionNumber
	}
	err := p.Call(ctx, func(ctx context.Context) error {
		_, err := floatingips.Update(ctx, p.client, f.ID, opts).Extract()
		return err
	})
	if err != nil && !cloud.Is(err, cloud.Conflict) && !cloud.Is(err, cloud.NotFound) {
		return false, err
	}
	now, err := p.get(ctx, f.ID)
	if cloud.Is(err, cloud.NotFound) {
		return false, nil
	}
	return err == nil && now.PortID == port.ID, err
}

func (p *pool) get(ctx context.Context, id string) (f *floatingips.FloatingIP, err error) {
	err = p.Call(ctx, func(ctx context.Context) error {
		f, err = floatingips.Get(ctx, p.client, id).Extract()
		return err
	})
	return f, err
}

// fixedOf names the address only where the port has more than one.
func fixedOf(port ports.Port, fixed string) string {
	if len(port.FixedIPs) > 1 && slices.ContainsFunc(port.FixedIPs, func(f ports.IP) bool { return f.IPAddress == fixed }) {
		return fixed
	}
	return ""
}

// make makes a new address for the port. Before it asks again after a lost answer it
// looks whether there is one.
func (p *pool) make(ctx context.Context, port ports.Port, fixed string) (made floatingips.FloatingIP, err error) {
	if p.network == "" {
		return made, cloud.Errorf(cloud.Refused, "the project has no free floating address, and provider field floating_network does not say where new ones come from; fill it in")
	}
	asked := false
	err = p.Call(ctx, func(ctx context.Context) error {
		if asked {
			mine, err := p.list(ctx, floatingips.ListOpts{Description: p.mark})
			if err != nil {
				return err
			}
			if f, found := p.attached(mine, []ports.Port{port}); found {
				made = f
				return nil
			}
		}
		asked = true
		f, err := floatingips.Create(ctx, p.client, floatingips.CreateOpts{
			FloatingNetworkID: p.network, PortID: port.ID, FixedIP: fixedOf(port, fixed), Description: p.mark, ProjectID: p.project,
		}).Extract()
		if err == nil {
			made = *f
			p.Log("made the floating address %s", f.FloatingIP)
		}
		return err
	})
	return made, err
}

// resolve returns the id of an external network by its name or id; "" for "".
func (p *pool) resolve(ctx context.Context, text string) (id string, err error) {
	if text == "" || projectID.MatchString(text) {
		return text, nil
	}
	yes := true
	var found []networks.Network
	if err := p.Call(ctx, func(ctx context.Context) error {
		pages, err := networks.List(p.client, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{Name: text}, External: &yes}).AllPages(ctx)
		if err != nil {
			return err
		}
		found, err = networks.ExtractNetworks(pages)
		return err
	}); err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", cloud.Errorf(cloud.Refused, "Neutron has no external network “%s” (provider field floating_network)", text)
	case 1:
		return found[0].ID, nil
	}
	return "", cloud.Errorf(cloud.Refused, "Neutron has %d external networks “%s”; give the id of one in provider field floating_network", len(found), text)
}

// Cleanup returns a machine's floating address back once the machine is gone: one
// that was made for it is deleted, another one becomes free.
func (d *driver) Cleanup(ctx context.Context) error {
	spec := d.Task
	facts := cloud.Fields(spec.Results)
	known := facts.Text(factID)
	if known == "" && !d.Fields.Switch("floating_ip", false) {
		return nil
	}
	p, err := d.pool(spec)
	if err != nil {
		return err
	}
	made, err := p.list(ctx, floatingips.ListOpts{Description: p.mark})
	if err != nil {
		return err
	}
	for _, f := range made {
		if f.Description != p.mark {
			continue // a Neutron that does not know this filter
		}
		if err := p.release(ctx, f.ID, cloud.ID(spec), true); err != nil {
			return err
		}
		if f.ID == known {
			known = ""
		}
	}
	if known == "" {
		return nil
	}
	return p.release(ctx, known, cloud.ID(spec), facts.Switch(factCreated, false))
}

// release deletes an address or frees it, unless it belongs to another server by
// now.
func (p *pool) release(ctx context.Context, id, server string, created bool) error {
	f, err := p.get(ctx, id)
	if cloud.Is(err, cloud.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.PortID != "" {
		var port *ports.Port
		err := p.Call(ctx, func(ctx context.Context) (err error) {
			port, err = ports.Get(ctx, p.client, f.PortID).Extract()
			return err
		})
		switch {
		case cloud.Is(err, cloud.NotFound):
		case err != nil:
			return err
		case port.DeviceID != "" && port.DeviceID != server:
			p.Log("the floating address %s belongs to server %s by now and is left alone", f.FloatingIP, port.DeviceID)
			return nil
		}
	} else if !created {
		return nil
	}
	err = p.Call(ctx, func(ctx context.Context) error {
		if created {
			return floatingips.Delete(ctx, p.client, id).ExtractErr()
		}
		none := ""
		_, err := floatingips.Update(ctx, p.client, id, floatingips.UpdateOpts{PortID: &none}).Extract()
		return err
	})
	if cloud.Is(err, cloud.NotFound) {
		return nil
	}
	if err == nil && created {
		p.Log("the floating address %s is deleted", f.FloatingIP)
	}
	return err
}
