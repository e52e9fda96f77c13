package openstack

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
	"loom/provisioner/resource"
)

// driver makes the calls.
type driver struct {
	nova.Driver
	// names are those of the networks of the fields, once they are known.
	names []string
	// floats says that the server had a floating address when it was last looked at.
	floats bool
}

// Create asks for a server.
func (d *driver) Create(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	opts, facts, err := d.request(ctx, spec)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	m, err := d.Compute.Create(ctx, opts, cloud.LabelsOf(spec))
	m.Facts = facts
	return m, err
}

// request makes the call that makes the machine, and the facts of
// the host key that it passes to it, nil for none.
func (d *driver) request(ctx context.Context, spec *loom.TaskSpec) (servers.CreateOptsBuilder, map[string]any, error) {
	flavor, image, err := d.Refs(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	in := servers.CreateOpts{
		Name: spec.Hostname, ImageRef: image, FlavorRef: flavor, Metadata: cloud.LabelsOf(spec),
		SecurityGroups: d.Fields.List("security_groups"), AvailabilityZone: d.Fields.Text("availability_zone"),
	}
	var nets []servers.Network
	for _, id := range d.Fields.List("network_ids") {
		if err := checkNetworkID(id); err != nil {
			return nil, nil, err
		}
		nets = append(nets, servers.Network{UUID: id})
	}
	if len(nets) > 0 {
		in.Networks = nets
	}
	if err := d.bootVolume(&in); err != nil {
		return nil, nil, err
	}
	data, facts, err := d.userData(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	if len(data) > 0 {
		// Encoded here: what happens to be base64 already would arrive decoded.
		in.UserData = []byte(base64.StdEncoding.EncodeToString(data))
	}
	return keypairs.CreateOptsExt{CreateOptsBuilder: in, KeyName: d.Fields.Text("ssh_keypair")}, facts, nil
}

// bootVolume lets the server boot from a new volume where the field
// boot_volume_size_gb names its size. Nova makes it of the image, and removes it
// with the server, also where the server fails.
func (d *driver) bootVolume(in *servers.CreateOpts) error {
	size, err := d.Fields.Number("boot_volume_size_gb", 0, 65536)
	if err != nil || size == 0 {
		return err
	}
	in.BlockDevice = []servers.BlockDevice{{SourceType: servers.SourceImage, UUID: in.ImageRef, DestinationType: servers.DestinationVolume,
		VolumeSize: size, DeleteOnTermination: true}}
	in.ImageRef = ""
	return nil
}

// checkNetworkID refuses what is no id and would lead to another path.
func checkNetworkID(id string) error {
	if len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return cloud.Errorf(cloud.Refused, "provider field network_ids has %.50q, which is no id of a network; give ids, separated by commas", id)
	}
	return nil
}

// userDataFiles is the resource type of what machines run at their first boot.
const userDataFiles = "user_data"

// userDataLimit is the most that Nova takes, in bytes of base64.
const userDataLimit = 65535

// userData returns what the machine runs at its first boot: the resource of the field
// user_data_resource, and the installation of its host key where the field
// inject_host_key is on.
func (d *driver) userData(ctx context.Context, spec *loom.TaskSpec) (data []byte, facts map[string]any, err error) {
	if name := d.Fields.Text("user_data_resource"); name != "" {
		if data, err = readUserData(provider.EnvOf(ctx).Files, name); err != nil {
			return nil, nil, err
		}
	}
	if data, facts, err = cloud.UserData(ctx, spec, data); err != nil {
		return nil, nil, err
	}
	if base64.StdEncoding.EncodedLen(len(data)) > userDataLimit {
		return nil, nil, cloud.Errorf(cloud.Refused, "the user data (provider field user_data_resource) has %d bytes; OpenStack takes up to %d", len(data), base64.StdEncoding.DecodedLen(userDataLimit))
	}
	return data, facts, nil
}

func readUserData(files, name string) ([]byte, error) {
	base := path.Base(name)
	// A little more than OpenStack takes, so that what is too large is told as that.
	data, err := resource.Read(files, userDataFiles, base, 4*userDataLimit)
	switch {
	case errors.Is(err, resource.ErrNotThere):
		return nil, cloud.Errorf(cloud.Refused, "there is no resource “%s” of type user_data (provider field user_data_resource); upload it and synchronize the resources", base)
	case err != nil:
		return nil, &cloud.Error{Kind: cloud.Refused, Message: "the resource “" + base + "” of type user_data cannot be read", Err: err}
	}
	return data, nil
}

// Get looks at a server.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	server, err := d.Compute.Get(ctx, id)
	if err != nil {
		return cloud.Machine{}, err
	}
	m := nova.Machine(server)
	if m.State != cloud.Running {
		return m, nil
	}
	found := read(server.Addresses)
	var order []string
	if len(found) > 1 {
		if order, err = d.order(ctx); err != nil {
			return m, err
		}
	}
	m.Access, m.Bind = choose(found, order)
	d.floats = last(found, slices.Collect(maps.Keys(found)), true) != ""
	return m, nil
}

// order returns the names of the networks of the field network_ids, in its order. A
// network that is not there has no addresses and is left out.
func (d *driver) order(ctx context.Context) ([]string, error) {
	wanted := d.Fields.List("network_ids")
	if d.names != nil || len(wanted) == 0 {
		return d.names, nil
	}
	client, err := d.network()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range wanted {
		if checkNetworkID(id) != nil {
			continue
		}
		n, err := networks.Get(ctx, client, id).Extract()
		if err != nil {
			if nova.Classify(err).Kind == cloud.NotFound {
				continue
			}
			return nil, err
		}
		names = append(names, n.Name)
	}
	d.names = names
	return names, nil
}

func (d *driver) network() (*gophercloud.ServiceClient, error) {
	return d.Catalog.Service("network", "", "v2.0")
}
