package digitalocean

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/digitalocean/godo"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// ownTag is on every droplet that Loom makes.
const ownTag = "loom"

// pageSize is the most that one answer of the API lists.
const pageSize = 200

// driver makes the calls.
type driver struct {
	*cloud.Session
	client *godo.Client
}

// Idempotent reports that DigitalOcean remembers no requests.
func (*driver) Idempotent() bool { return false }

// Find looks by the tag of the key.
func (d *driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	return d.list(ctx, cloud.Tag(cloud.LabelKey, key))
}

// List returns the droplets of all regions.
func (d *driver) List(ctx context.Context) ([]cloud.Machine, error) { return d.list(ctx, ownTag) }

func (d *driver) list(ctx context.Context, tag string) ([]cloud.Machine, error) {
	droplets, err := all(func(o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		return d.client.Droplets.ListByTag(ctx, tag, o)
	})
	var found []cloud.Machine
	for i := range droplets {
		if m := machine(&droplets[i]); m.State != cloud.Leaving {
			found = append(found, m)
		}
	}
	return found, err
}

// all reads every page of a list.
func all[T any](list func(*godo.ListOptions) ([]T, *godo.Response, error)) ([]T, error) {
	var whole []T
	for page := 1; ; page++ {
		part, answer, err := list(&godo.ListOptions{Page: page, PerPage: pageSize})
		if err != nil {
			return nil, err
		}
		whole = append(whole, part...)
		if len(part) == 0 || answer.Links == nil || answer.Links.IsLastPage() {
			return whole, nil
		}
	}
}

// Create asks for a droplet.
func (d *driver) Create(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	in, err := d.request(ctx, spec)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	data, facts, err := cloud.UserData(ctx, spec, nil)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	in.UserData = string(data)
	droplet, _, err := d.client.Droplets.Create(ctx, in)
	if err != nil {
		return cloud.Machine{}, err
	}
	if droplet == nil || droplet.ID == 0 {
		return cloud.Machine{}, cloud.Errorf(cloud.Lost, "DigitalOcean answered without a droplet")
	}
	m := machine(droplet)
	m.Facts = facts
	return m, nil
}

// request makes the call that makes the machine.
func (d *driver) request(ctx context.Context, spec *loom.TaskSpec) (*godo.DropletCreateRequest, error) {
	if _, err := strconv.Atoi(spec.Flavor); err == nil {
		return nil, cloud.Errorf(cloud.Refused, "flavor %s of hardware type “%s” is a number of the API’s first version, which is gone; give the name of a size, such as s-1vcpu-1gb", spec.Flavor, spec.HardwareType)
	}
	in := &godo.DropletCreateRequest{
		Name: spec.Hostname, Region: d.region(), Size: spec.Flavor, Image: godo.DropletCreateImage{Slug: spec.Image},
		Tags: append([]string{ownTag}, cloud.Tags(cloud.LabelsOf(spec))...), VPCUUID: d.Fields.Text("vpc_uuid"),
		Monitoring: d.Fields.Switch("monitoring", false),
	}
	if id, err := strconv.Atoi(spec.Image); err == nil {
		in.Image = godo.DropletCreateImage{ID: id}
	}
	if name := d.Fields.Text("ssh_keypair"); name != "" {
		key, err := d.key(ctx, name)
		if err != nil {
			return nil, err
		}
		in.SSHKeys = []godo.DropletCreateSSHKey{{ID: key.ID}}
	}
	return in, nil
}

func (d *driver) region() string {
	if name := d.Fields.Text("digitalocean_region"); name != "" {
		return name
	}
	return "nyc3"
}

// key finds a key by its name.
func (d *driver) key(ctx context.Context, name string) (godo.Key, error) {
	keys, err := all(func(o *godo.ListOptions) ([]godo.Key, *godo.Response, error) { return d.client.Keys.List(ctx, o) })
	if err != nil {
		return godo.Key{}, err
	}
	for _, key := range keys {
		if key.Name == name {
			return key, nil
		}
	}
	return godo.Key{}, cloud.Errorf(cloud.Refused, "the account has no SSH key “%s” (provider field ssh_keypair); add it at DigitalOcean", name)
}

// Get looks at a droplet.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	number, err := numberOf(id)
	if err != nil {
		return cloud.Machine{}, err
	}
	droplet, _, err := d.client.Droplets.Get(ctx, number)
	if err != nil {
		return cloud.Machine{}, err
	}
	return machine(droplet), nil
}

// Delete asks for the end of a droplet. While something else is done to it that
// is refused for a while.
func (d *driver) Delete(ctx context.Context, id string) error {
	number, err := numberOf(id)
	if err != nil {
		return err
	}
	_, err = d.client.Droplets.Delete(ctx, number)
	var said *godo.ErrorResponse
	if isRefusal(err) && errors.As(err, &said) {
		return &cloud.Error{Kind: cloud.Busy, Message: said.Message, Err: err}
	}
	return err
}

// numberOf reads a provider id; DigitalOcean gives numbers only.
func numberOf(id string) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 {
		return 0, cloud.Errorf(cloud.NotFound, "%.100q is no id of a droplet", id)
	}
	return n, nil
}

// machine reads a droplet.
func machine(d *godo.Droplet) cloud.Machine {
	m := cloud.Machine{ID: strconv.Itoa(d.ID), Name: d.Name, State: cloud.Pending, Detail: d.Status, Labels: cloud.FromTags(d.Tags), Flavor: d.SizeSlug}
	if d.Image != nil {
		m.Image = cmp.Or(d.Image.Slug, strconv.Itoa(d.Image.ID))
	}
	m.Made, _ = time.Parse(time.RFC3339, d.Created) // zero where it cannot be read: then the id decides
	switch d.Status {
	case "active":
		m.State = cloud.Running
	case "off":
		m.State, m.Detail = cloud.Stopped, "it is switched off"
	case "archive":
		m.State = cloud.Leaving
	}
	var public, private string
	if d.Networks != nil {
		for _, n := range d.Networks.V4 {
			m.Addresses = append(m.Addresses, n.IPAddress)
			switch {
			case n.Type == "public" && public == "":
				public = n.IPAddress
			case n.Type == "private" && private == "":
				private = n.IPAddress
			}
		}
	}
	m.Access, m.Bind = cloud.Addresses(public, private)
	return m
}
