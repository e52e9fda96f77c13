package google

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/api/compute/v1"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// publicProjects are where images are looked for that the own project does not
// have.
var publicProjects = []string{
	"centos-cloud", "debian-cloud", "ubuntu-os-cloud", "rhel-cloud", "rocky-linux-cloud", "suse-cloud", "cos-cloud", "fedora-coreos-cloud",
}

// networkTags are on every instance; firewall rules may aim at them. The second is
// that of the predecessor, whose rules go on to hold.
var networkTags = []string{"loom", "coopr"}

// image is where an image is, and its size in GB where that is known.
type image struct {
	path string
	size int64
}

// request makes the call that makes the machine.
func (d *driver) request(ctx context.Context, spec *loom.TaskSpec) (*compute.Instance, error) {
	name, _, _ := strings.Cut(strings.ToLower(spec.Hostname), ".")
	if !instanceName.MatchString(name) {
		return nil, cloud.Errorf(cloud.Refused, "host name %.100q begins with %.63q, which Compute Engine takes for no name; it has to begin with a letter and have letters, digits and hyphens only, 63 at most", spec.Hostname, name)
	}
	marks := map[string]string{}
	for key, value := range cloud.LabelsOf(spec) {
		marks[key] = label(value)
	}
	disks, err := d.disks(ctx, spec, name, marks)
	if err != nil {
		return nil, err
	}
	restart, off := d.Fields.Switch("auto_restart", false), "FALSE"
	in := &compute.Instance{
		Name: name, MachineType: d.inZone("machineTypes", spec.Flavor), Labels: marks, Disks: disks,
		Tags:              &compute.Tags{Items: networkTags},
		NetworkInterfaces: []*compute.NetworkInterface{d.connection()},
		Scheduling:        &compute.Scheduling{AutomaticRestart: &restart},
		Metadata:          &compute.Metadata{Items: []*compute.MetadataItems{{Key: "enable-oslogin", Value: &off}}},
	}
	if d.keys != "" {
		in.Metadata.Items = append(in.Metadata.Items, &compute.MetadataItems{Key: "ssh-keys", Value: &d.keys})
	}
	return in, nil
}

// inZone is the path of a thing of the zone; one that is given whole stays.
func (d *driver) inZone(kind, name string) string {
	if strings.Contains(name, "/") {
		return whole(name)
	}
	return "zones/" + d.zone + "/" + kind + "/" + name
}

// whole takes the host off the address of a thing.
func whole(path string) string {
	if _, after, ok := strings.Cut(path, apiPath); ok {
		return after
	}
	return path
}

// connection is the network interface.
func (d *driver) connection() *compute.NetworkInterface {
	network, subnetwork := d.Fields.Text("network"), d.Fields.Text("subnetwork")
	n := &compute.NetworkInterface{}
	switch {
	case strings.Contains(subnetwork, "/"):
		n.Subnetwork = whole(subnetwork)
	case subnetwork != "":
		region := d.zone
		if end := strings.LastIndexByte(region, '-'); end > 0 {
			region = region[:end]
		}
		n.Subnetwork = "regions/" + region + "/subnetworks/" + subnetwork
	}
	switch {
	case strings.Contains(network, "/"):
		n.Network = whole(network)
	case subnetwork != "" && (network == "" || network == "default"):
		// It is that of the subnetwork; "default" is only what the form begins with.
	case network == "":
		n.Network = "global/networks/default"
	default:
		n.Network = "global/networks/" + network
	}
	if d.Fields.Switch("external_ip", true) {
		n.AccessConfigs = []*compute.AccessConfig{{Type: "ONE_TO_ONE_NAT", Name: "External NAT"}}
	}
	return n
}

// image finds an image: a path, "family/<project>/<family>", or a name that the own
// project has or one of the public ones.
func (d *driver) image(ctx context.Context, name string) (image, error) {
	if parts := strings.Split(name, "/"); len(parts) == 3 && parts[0] == "family" {
		return image{path: "projects/" + parts[1] + "/global/images/family/" + parts[2]}, nil
	}
	if strings.Contains(name, "/") {
		return image{path: whole(name)}, nil
	}
	if known, ok := d.images[name]; ok {
		return known, nil
	}
	for n, project := range append([]string{d.project}, publicProjects...) {
		got, err := d.api.Images.Get(project, name).Context(ctx).Do()
		if err != nil {
			if notFound(err) || n > 0 && statusOf(err) == http.StatusForbidden {
				continue
			}
			return image{}, err
		}
		found := image{path: "projects/" + project + "/global/images/" + name, size: got.DiskSizeGb}
		d.images[name] = found
		return found, nil
	}
	return image{}, cloud.Errorf(cloud.Refused, "neither project %s nor Google’s public ones have an image %.100q; give its name, its path or family/<project>/<family>", d.project, name)
}
