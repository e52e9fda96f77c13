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
type driver struct {
	compute nova.Compute
	catalog nova.Catalog
	fields  cloud.Fields
	session *cloud.Session
	// spec is the task; nil outside of tasks.
	spec *loom.TaskSpec
}

// Token reports that Nova remembers no requests.
func (*driver) Token() bool { return false }

// Find looks by host name and key.
func (d *driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	all, err := d.compute.Find(ctx, d.spec.Hostname, key)
	var found []cloud.Machine
	for i := range all {
		m := nova.Machine(&all[i])
		if m.Password = nova.Password(d.spec, m.ID); m.Password == "" {
			m.Password = d.password(d.spec)
		}
		found = append(found, m)
	}
	return found, err
}

// password gives the one with which Loom signs in where no key does, "" where one
// does. It is made of the API key, so that it is known for a machine whose answer,
// with the password, was lost.
func (d *driver) password(spec *loom.TaskSpec) string {
	if d.fields.Text("ssh_key_resource") != "" || spec.IdempotencyKey == "" {
		return ""
	}
	sum := hmac.New(sha256.New, []byte(d.fields.Text("api_password")))
	sum.Write([]byte("loom password of " + spec.IdempotencyKey))
	// The beginning pleases rules that want letters of both cases and a digit.
	return "Lm7" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:18])
}

// Make asks for a server (plugins.md 2.3).
func (d *driver) Make(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	drive := d.fields.Switch("rackspace_config_drive", false)
	password := d.password(spec)
	flavor, err := d.compute.Flavor(ctx, d.session, spec.Flavor)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	image, err := d.compute.Image(ctx, d.session, d.glance, spec.Image)
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
	m, err := d.compute.Make(ctx, keypairs.CreateOptsExt{CreateOptsBuilder: in, KeyName: d.fields.Text("ssh_keypair")}, cloud.LabelsOf(spec))
	if m.Password == "" {
		m.Password = password
	}
	m.Facts = facts
	return m, err
}

// Metadata that RackConnect writes to a server.
const (
	connectStatus = "rackconnect_automation_status"
	connectReason = "rackconnect_unprocessable_reason"
)

// Get looks at a server. One for which RackConnect is awaited does not run before
// it is done, which may also change its addresses.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	server, err := d.compute.Get(ctx, id)
	if err != nil {
		return cloud.Machine{}, err
	}
	m := nova.Machine(server)
	if m.State != cloud.Running {
		return m, nil
	}
	if d.fields.Switch("rackconnect_wait", false) {
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
	if public == "" || d.fields.Switch("rackspace_bind_private", false) {
		private = first(server.Addresses["private"])
	}
	m.Access, m.Bind = cloud.Addresses(public, private)
	return m, nil
}

// first gives the first address of version 4 in a network.
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

// Remove asks for the end of a server.
func (d *driver) Remove(ctx context.Context, id string) error { return d.compute.Remove(ctx, id) }
