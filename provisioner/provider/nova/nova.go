// Package nova is what the providers of clouds made of OpenStack share: servers of
// Nova as machines, the catalog of services, and the client's errors.
//
// A server carries Loom's labels as metadata and is found again by them: Nova
// remembers no requests. The package knows neither Keystone nor how one cloud
// chooses addresses, and keeps nothing.
package nova

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Compute makes calls about servers. It retries nothing.
type Compute struct {
	Client *gophercloud.ServiceClient
	// About tells whose client it is, as SignIn heard.
	About []string
}

// Find returns the servers of a host name that carry an idempotency key. Without a
// name, as for machines whose node is forgotten, it looks through all of them.
func (c Compute) Find(ctx context.Context, hostname, key string) ([]servers.Server, error) {
	opts := servers.ListOpts{}
	if hostname != "" {
		opts.Name = "^" + hostname + "$"
	}
	all, err := c.list(ctx, opts)
	var found []servers.Server
	for _, s := range all {
		if s.Metadata[cloud.LabelKey] == key && !leaves(s) {
			found = append(found, s)
		}
	}
	return found, err
}

// Labelled returns all servers with Loom's labels that are not on their way out.
func (c Compute) Labelled(ctx context.Context) ([]cloud.Machine, error) {
	all, err := c.list(ctx, servers.ListOpts{})
	var found []cloud.Machine
	for i := range all {
		if all[i].Metadata[cloud.LabelKey] != "" && !leaves(all[i]) {
			found = append(found, Machine(&all[i]))
		}
	}
	return found, err
}

// list reads all pages. The addresses of next pages are not followed: behind
// proxies they often lead elsewhere.
func (c Compute) list(ctx context.Context, opts servers.ListOpts) ([]servers.Server, error) {
	var all []servers.Server
	for more := true; more; {
		more = false
		err := servers.List(c.Client, opts).EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
			part, err := servers.ExtractServers(page)
			if err != nil || len(part) == 0 {
				return false, err
			}
			all = append(all, part...)
			cloud.Kept(ctx, len(all))
			next, err := page.NextPageURL()
			opts.Marker, more = part[len(part)-1].ID, next != "" && part[len(part)-1].ID != opts.Marker
			return false, err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// leaves reports a server that nobody can keep any longer.
func leaves(s servers.Server) bool {
	state, _ := stateOf(&s)
	return state == cloud.Leaving || state == cloud.Gone
}

// Create asks for a server. Nova's answer has no more than its id and, of some
// clouds, the password of its administrator.
func (c Compute) Create(ctx context.Context, opts servers.CreateOptsBuilder, labels map[string]string) (cloud.Machine, error) {
	s, err := servers.Create(ctx, c.Client, opts, nil).Extract()
	if err != nil {
		return cloud.Machine{}, err
	}
	if s.ID == "" {
		return cloud.Machine{}, cloud.Errorf(cloud.Lost, "the cloud answered without a server")
	}
	return cloud.Machine{ID: s.ID, State: cloud.Pending, Labels: labels, Password: s.AdminPass}, nil
}

// Get looks at a server.
func (c Compute) Get(ctx context.Context, id string) (*servers.Server, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return servers.Get(ctx, c.Client, id).Extract()
}

// Delete asks for the end of a server. While something else is done to it that is
// refused for a while.
func (c Compute) Delete(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	return busy(servers.Delete(ctx, c.Client, id).ExtractErr())
}

// Reboot asks for the start or the reset of a server, which is refused for a while like
// its end.
func (c Compute) Reboot(ctx context.Context, m cloud.Machine) error {
	if err := checkID(m.ID); err != nil {
		return err
	}
	if m.State == cloud.Stopped {
		return busy(servers.Start(ctx, c.Client, m.ID).ExtractErr())
	}
	return busy(servers.Reboot(ctx, c.Client, m.ID, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
}

// busy is the error of a call that conflicts with what is done to the server just now.
func busy(err error) error {
	if e := Classify(err); err != nil && e.Kind == cloud.Conflict {
		e.Kind = cloud.Busy
		return e
	}
	return err
}

var ids = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

// checkID refuses what would lead to another path.
func checkID(id string) error {
	if !ids.MatchString(id) {
		return cloud.Errorf(cloud.NotFound, "%.100q is no id of a server", id)
	}
	return nil
}

// Machine reads a server, but for the choice among its addresses.
func Machine(s *servers.Server) cloud.Machine {
	m := cloud.Machine{ID: s.ID, Name: s.Name, Made: s.Created, Labels: s.Metadata, Addresses: []string{s.AccessIPv4}}
	m.State, m.Detail = stateOf(s)
	m.Flavor, _ = s.Flavor["id"].(string)
	m.Image, _ = s.Image["id"].(string)
	for _, name := range slices.Sorted(maps.Keys(s.Addresses)) {
		entries, _ := s.Addresses[name].([]any)
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			address, _ := fields["addr"].(string)
			m.Addresses = append(m.Addresses, address)
		}
	}
	return m
}

// stateOf reads a server's status.
func stateOf(s *servers.Server) (cloud.State, string) {
	status := strings.ToUpper(s.Status)
	if status == "DELETED" || status == "SOFT_DELETED" {
		// Nova keeps servers that were softly deleted for a while, without running them.
		return cloud.Gone, "it is deleted"
	}
	if s.TaskState == "deleting" || s.TaskState == "soft-deleting" {
		return cloud.Leaving, "it is being deleted"
	}
	switch status {
	case "ACTIVE", "PASSWORD", "VERIFY_RESIZE":
		return cloud.Running, status
	case "ERROR":
		return cloud.Failed, fault(s)
	case "SHUTOFF", "STOPPED":
		if s.TaskState != "" {
			return cloud.Pending, status + ", " + s.TaskState
		}
		return cloud.Stopped, "it is switched off (" + status + ")"
	case "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE", "RESCUED":
		return cloud.Failed, "it is switched off (" + status + ")"
	case "":
		return cloud.Pending, "asked for"
	}
	return cloud.Pending, status
}

// fault says why a server failed, and what to do where the message does not.
func fault(s *servers.Server) string {
	message := strings.TrimSpace(s.Fault.Message)
	switch {
	case message == "":
		return "the cloud says ERROR and gives no reason; a quota or its capacity may be used up"
	case strings.Contains(message, "No valid host"), strings.Contains(message, "Exceeded maximum number of retries"):
		return message + " (the cloud’s capacity for this flavor, or a quota, is used up)"
	}
	return message
}

// password returns the password of a machine that an earlier try stored, "" for none.
func password(spec *loom.TaskSpec, id string) string {
	if cloud.ID(spec) != id {
		return ""
	}
	auth, _ := spec.Results["ssh-auth"].(map[string]any)
	password, _ := auth["password"].(string)
	return password
}
