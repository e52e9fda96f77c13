package rackspace

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// driver makes the calls.
type driver struct{ nova.Driver }

// Find looks by host name and key.
func (d *driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	found, err := d.Driver.Find(ctx, key)
	for i := range found {
		if found[i].Password == "" {
			found[i].Password = d.password(d.Task)
		}
	}
	return found, err
}

// password returns the one with which Loom signs in where no key does, "" where one
// does. It is made of the API key, so that it is known for a machine whose answer,
// with the password, was lost.
func (d *driver) password(spec *loom.TaskSpec) string {
	if d.Fields.Text("ssh_key_resource") != "" || spec.IdempotencyKey == "" {
		return ""
	}
	sum := hmac.New(sha256.New, []byte(d.Fields.Text("api_password")))
	sum.Write([]byte("loom password of " + spec.IdempotencyKey))
	// The beginning pleases rules that want letters of both cases and a digit.
	return "Lm7" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:18])
}

// Create asks for a server.
func (d *driver) Create(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	drive := d.Fields.Switch("rackspace_config_drive", false)
	password := d.password(spec)
	flavor, image, err := d.Refs(ctx, spec)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	in := servers.CreateOpts{
		Name: spec.Hostname, ImageRef: image, FlavorRef: flavor, Metadata: cloud.LabelsOf(spec), ConfigDrive: &drive, AdminPass: password,
	}
	data, facts, err := cloud.UserData(ctx, spec, nil)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	if len(data) > 0 {
		in.UserData = []byte(base64.StdEncoding.EncodeToString(data))
		drive = true // there it is read from
	}
	m, err := d.Compute.Create(ctx, keypairs.CreateOptsExt{CreateOptsBuilder: in, KeyName: d.Fields.Text("ssh_keypair")}, cloud.LabelsOf(spec))
	if m.Password == "" {
		m.Password = password
	}
	m.Facts = facts
	return m, err
}

// Check looks at the key pair. The sign-in told the rest.
func (d *driver) Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool {
	probe.Check(cloud.StepRegion, true, "The account has machines in region "+strings.ToUpper(region(d.Fields))+".")
	d.Choices(ctx, probe, "ssh_keypair", d.Compute.KeyPairs)
	d.CheckPair(ctx, call, probe, "The account", d.Compute.KeyPair)
	return true
}

// Metadata that RackConnect writes to a server.
const (
	connectStatus = "rackconnect_automation_status"
	connectReason = "rackconnect_unprocessable_reason"
)

// Get looks at a server. One for which RackConnect is awaited does not run before
// it is done, which may also change its addresses.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	server, err := d.Compute.Get(ctx, id)
	if err != nil {
		return cloud.Machine{}, err
	}
	m := nova.Machine(server)
	if m.State != cloud.Running {
		return m, nil
	}
	if d.Fields.Switch("rackconnect_wait", false) {
		switch status := strings.ToUpper(server.Metadata[connectStatus]); status {
		case "DEPLOYED":
		case "FAILED", "UNPROCESSABLE":
			m.State, m.Detail = cloud.Failed, strings.TrimSpace("RackConnect says "+status+" "+server.Metadata[connectReason])
			return m, nil
		default:
			m.State, m.Detail = cloud.Pending, strings.TrimSpace("active; RackConnect has not deployed it "+status)
			return m, nil
		}
	}
	public := server.AccessIPv4
	if public == "" {
		public = first(server.Addresses["public"])
	}
	private := ""
	if public == "" || d.Fields.Switch("rackspace_bind_private", false) {
		private = first(server.Addresses["private"])
	}
	m.Access, m.Bind = cloud.Addresses(public, private)
	return m, nil
}

// dataDisk is the second disk of flavors that have one.
const dataDisk = "/dev/xvde1"

// Finish mounts the data disk.
func (*driver) Finish(context.Context, *cloud.Machine) (cloud.Disks, error) {
	return cloud.Disks{Named: []cloud.NamedDisk{{Device: dataDisk, Mount: cloud.DataMount}}}, nil
}

// first returns the first address of version 4 in a network.
func first(network any) string {
	entries, _ := network.([]any)
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		text, _ := fields["addr"].(string)
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() {
			return text
		}
	}
	return ""
}
