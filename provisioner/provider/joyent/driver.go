package joyent

import (
	"context"
	_ "embed"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

//go:embed firstboot.sh
var firstBoot string

// dataDisk is the second disk of hardware machines; containers have none.
const dataDisk = "/dev/vdb"

// machineID is what the API calls machines.
var machineID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// driver makes the calls.
type driver struct {
	*cloud.Session
	client *client
	// loopback addresses count too; only tests have such machines.
	loopback bool
}

// vm is a machine as the API tells it.
type vm struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Created string         `json:"created"`
	IPs     []string       `json:"ips"`
	Tags    map[string]any `json:"tags"`
	Package string         `json:"package"`
	Image   string         `json:"image"`
}

// Idempotent reports that CloudAPI remembers no requests.
func (*driver) Idempotent() bool { return false }

// Find looks by the tag of the key.
func (d *driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	found, err := d.list(ctx, url.Values{"tag." + cloud.LabelKey: {key}})
	// An API that does not know the filter answers with all.
	var kept []cloud.Machine
	for _, m := range found {
		if m.Labels[cloud.LabelKey] == key {
			kept = append(kept, m)
		}
	}
	return kept, err
}

// List returns the machines of the account.
func (d *driver) List(ctx context.Context) ([]cloud.Machine, error) { return d.list(ctx, url.Values{}) }

// Finish waits for what the machine does at its first boot, and mounts its data disk.
func (*driver) Finish(context.Context, *cloud.Machine) (cloud.Disks, error) {
	return cloud.Disks{First: firstBoot, Named: []cloud.NamedDisk{{Device: dataDisk, Mount: cloud.DataMount}}}, nil
}

// list returns the machines of a query that Loom made and that are there.
func (d *driver) list(ctx context.Context, query url.Values) ([]cloud.Machine, error) {
	all, err := d.client.machines(ctx, query)
	if err != nil {
		return nil, err
	}
	var found []cloud.Machine
	for _, v := range all {
		if m := d.machine(v); m.State != cloud.Gone && m.Labels[cloud.LabelKey] != "" {
			found = append(found, m)
		}
	}
	return found, nil
}

// Create asks for a machine.
func (d *driver) Create(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	in := map[string]any{"name": spec.Hostname, "package": spec.Flavor}
	image := "image"
	if old(d.client.version) {
		image = "dataset"
	}
	in[image] = spec.Image
	for label, value := range cloud.LabelsOf(spec) {
		in["tag."+label] = value
	}
	data, facts, err := cloud.UserData(ctx, spec, nil)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	if len(data) > 0 {
		in["metadata.cloud-init:user-data"] = string(data)
	}
	var made vm
	if err := d.client.call(ctx, http.MethodPost, "/machines", nil, in, &made); err != nil {
		return cloud.Machine{}, err
	}
	if made.ID == "" {
		return cloud.Machine{}, cloud.Errorf(cloud.Lost, "CloudAPI answered without a machine")
	}
	m := d.machine(made)
	m.Facts = facts
	return m, nil
}

var firstNumber = regexp.MustCompile(`[0-9]+`)

// old reports whether only versions are asked for that call an image a dataset.
func old(version string) bool {
	major, err := strconv.Atoi(firstNumber.FindString(version))
	return err == nil && major < 7 && !strings.Contains(version, "||")
}

// Get looks at a machine.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	if !machineID.MatchString(id) {
		return cloud.Machine{}, cloud.Errorf(cloud.NotFound, "%.100q is no id of a machine", id)
	}
	var got vm
	if err := d.client.call(ctx, http.MethodGet, "/machines/"+id, nil, nil, &got); err != nil {
		return cloud.Machine{}, err
	}
	return d.machine(got), nil
}

// Delete asks for the end of a machine. While it is being placed that is refused.
func (d *driver) Delete(ctx context.Context, id string) error {
	if !machineID.MatchString(id) {
		return cloud.Errorf(cloud.NotFound, "%.100q is no id of a machine", id)
	}
	err := d.client.call(ctx, http.MethodDelete, "/machines/"+id, nil, nil, nil)
	if err != nil {
		if e := classify(err); e.Kind == cloud.Conflict {
			return &cloud.Error{Kind: cloud.Busy, Message: e.Message, Err: err}
		}
	}
	return err
}

// machine reads a machine.
func (d *driver) machine(v vm) cloud.Machine {
	m := cloud.Machine{ID: v.ID, Name: v.Name, State: cloud.Pending, Detail: v.State, Labels: map[string]string{},
		Flavor: v.Package, Image: v.Image, Addresses: v.IPs}
	m.Made, _ = time.Parse(time.RFC3339, v.Created) // zero where it cannot be read: then the id decides
	for tag, value := range v.Tags {
		if text := (cloud.Fields{"": value}).Text(""); strings.HasPrefix(tag, "loom-") {
			m.Labels[tag] = text
		}
	}
	switch v.State {
	case "running":
		m.State = cloud.Running
	case "stopped":
		m.State = cloud.Stopped
	case "failed", "stopping", "offline":
		// A machine that is removed passes through some of them.
		m.State = cloud.Failed
	case "deleted", "destroyed":
		m.State = cloud.Gone
	}
	m.Access, m.Bind = addresses(v.IPs, d.loopback)
	return m
}

// shared addresses are those behind a provider's own translation (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// addresses chooses among those of a machine: access is the only one, else the
// first public one, else the first; bind is the first private one, if there is any.
func addresses(all []string, loopback bool) (access, bind string) {
	var public, private string
	for _, text := range all {
		a, err := netip.ParseAddr(text)
		if err != nil || !a.Is4() || a.IsLoopback() && !loopback || a.IsLinkLocalUnicast() || a.IsUnspecified() {
			continue
		}
		if a.IsPrivate() || shared.Contains(a) {
			if private == "" {
				private = text
			}
		} else if public == "" {
			public = text
		}
	}
	return cloud.Addresses(public, private)
}
