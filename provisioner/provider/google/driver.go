package google

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/api/compute/v1"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// hearLimit is how long CREATE waits for the cloud to say whether quota and
// capacity allow the machine.
const hearLimit = 20 * time.Second

// instanceName is what an instance may be called.
var instanceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// driver makes the calls.
type driver struct {
	*cloud.Session
	api           *compute.Service
	project, zone string
	// keys are the lines of the metadata ssh-keys, of CREATE.
	keys string
	// data are the sizes of the data disks, of CONFIRM.
	data []int64
	// failed counts the requests of the task for the machine that
	// were taken and failed: the cloud remembers each of them under its id.
	failed int
	images map[string]image
}

// Idempotent reports that a request may be repeated: the name of the instance is the
// node's, and there is one of it in a zone.
func (*driver) Idempotent() bool { return true }

// Find looks by the label of the key.
func (d *driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	return d.list(ctx, fmt.Sprintf("labels.%s = %q", cloud.LabelKey, label(key)))
}

func (d *driver) list(ctx context.Context, filter string) ([]cloud.Machine, error) {
	var found []cloud.Machine
	err := d.api.Instances.List(d.project, d.zone).Filter(filter).Pages(ctx, func(page *compute.InstanceList) error {
		for _, i := range page.Items {
			found = append(found, machine(i))
		}
		cloud.Kept(ctx, len(found))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Create asks for an instance and its disks in one call. An instance that has the
// name already is taken if it has the key too.
func (d *driver) Create(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	in, err := d.request(ctx, spec)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	data, facts, err := cloud.UserData(ctx, spec, nil)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	if text := string(data); text != "" {
		in.Metadata.Items = append(in.Metadata.Items, &compute.MetadataItems{Key: "user-data", Value: &text})
	}
	op, err := d.api.Instances.Insert(d.project, d.zone, in).RequestId(d.requestID(spec.IdempotencyKey)).Context(ctx).Do()
	if err != nil {
		if taken := classify(err); taken.Kind == cloud.Conflict {
			return d.owned(ctx, in.Name, spec.IdempotencyKey, taken)
		}
		return cloud.Machine{}, err
	}
	if err := d.hear(ctx, op); err != nil {
		d.failed++
		if err.Kind == cloud.Conflict {
			return d.owned(ctx, in.Name, spec.IdempotencyKey, err)
		}
		return cloud.Machine{}, err
	}
	return cloud.Machine{ID: in.Name, Name: in.Name, State: cloud.Pending, Detail: "PROVISIONING", Labels: labels(in.Labels), Facts: facts}, nil
}

// hear waits a moment for the end of an operation and gives its error, nil where
// it succeeds or goes on: CONFIRM sees the rest.
func (d *driver) hear(ctx context.Context, op *compute.Operation) *cloud.Error {
	if op.Status != "DONE" {
		cloud.Waiting(ctx)
		ctx, cancel := context.WithTimeout(ctx, hearLimit)
		defer cancel()
		waited, err := d.api.ZoneOperations.Wait(d.project, d.zone, op.Name).Context(ctx).Do()
		if err != nil {
			return nil // the request was taken; that it cannot be followed is no failure of it
		}
		op = waited
	}
	return operationError(op)
}

// owned returns the instance of a name that is taken, if it is the node's.
func (d *driver) owned(ctx context.Context, name, key string, taken *cloud.Error) (cloud.Machine, error) {
	m, err := d.Get(ctx, name)
	switch {
	case err == nil && key != "" && m.Labels[cloud.LabelKey] == cloud.Decode(label(key)):
		return m, nil
	case err == nil:
		return m, cloud.Errorf(cloud.Conflict, "zone %s has an instance %s already, which is not this node's; remove or rename it", d.zone, name)
	case cloud.Is(err, cloud.NotFound) || classify(err).Kind == cloud.NotFound:
		return m, &cloud.Error{Kind: cloud.Conflict, Message: taken.Message, Err: taken.Err}
	}
	return m, err
}

// List returns the instances of all zones of the project: the zone is the cluster's choice.
func (d *driver) List(ctx context.Context) (found []cloud.Machine, err error) {
	err = d.api.Instances.AggregatedList(d.project).Filter("labels."+cloud.LabelKey+":*").Pages(ctx, func(page *compute.InstanceAggregatedList) error {
		if len(page.Unreachables) > 0 {
			return cloud.Errorf(cloud.Unavailable, "Compute Engine cannot list %s just now", strings.Join(page.Unreachables, ", "))
		}
		for _, zone := range page.Items {
			for _, i := range zone.Instances {
				found = append(found, machine(i))
			}
		}
		cloud.Kept(ctx, len(found))
		return nil
	})
	return found, err
}

// Finish chooses the address that Loom connects to, and names the data disks.
func (d *driver) Finish(ctx context.Context, m *cloud.Machine) (cloud.Disks, error) {
	if d.Fields.Switch("provider_hostname", false) {
		m.Hostname = cloud.ReverseName(ctx, m.Access)
	}
	if d.Fields.Text("bootstrap_interface") == loom.BindV4 {
		m.Access = m.Bind
	}
	return cloud.Disks{Named: named(d.data)}, nil
}

// Get looks at an instance.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	if !instanceName.MatchString(id) {
		return cloud.Machine{}, cloud.Errorf(cloud.NotFound, "%.100q is no name of an instance", id)
	}
	i, err := d.api.Instances.Get(d.project, d.zone, id).Context(ctx).Do()
	if err != nil {
		return cloud.Machine{}, err
	}
	return machine(i), nil
}

// Delete asks for the end of an instance.
func (d *driver) Delete(ctx context.Context, id string) error {
	if !instanceName.MatchString(id) {
		return cloud.Errorf(cloud.NotFound, "%.100q is no name of an instance", id)
	}
	_, err := d.api.Instances.Delete(d.project, d.zone, id).Context(ctx).Do()
	return err
}

// requestID is the idempotency key as the cloud wants it, a UUID. A request after
// one that failed needs another, or it gets that failure again; so does one of a
// later attempt, which cannot know how the earlier ones ended. That is safe, since
// the name is taken once one of them succeeded.
func (d *driver) requestID(key string) string {
	id, err := uuid.Parse(key)
	if err != nil || id == uuid.Nil {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(key))
	}
	if d.Task.Attempt > 1 || d.failed > 0 {
		id = uuid.NewSHA1(id, fmt.Appendf(nil, "%d/%d", d.Task.Attempt, d.failed))
	}
	return id.String()
}

// machine reads an instance.
func machine(i *compute.Instance) cloud.Machine {
	m := cloud.Machine{ID: i.Name, Name: i.Name, State: cloud.Pending, Detail: i.Status, Labels: labels(i.Labels), Flavor: i.MachineType[strings.LastIndexByte(i.MachineType, '/')+1:]}
	m.Made, _ = time.Parse(time.RFC3339, i.CreationTimestamp) // zero where it cannot be read: then the name decides
	switch i.Status {
	case "RUNNING":
		m.State = cloud.Running
	case "STOPPED", "TERMINATED":
		m.State = cloud.Stopped
	case "STOPPING", "SUSPENDING", "SUSPENDED", "PENDING_STOP":
		// An instance that is removed looks the same until it is not there any longer.
		m.State = cloud.Failed
	}
	if i.StatusMessage != "" {
		m.Detail += " (" + i.StatusMessage + ")"
	}
	for n, network := range i.NetworkInterfaces {
		if network == nil {
			continue
		}
		public := ""
		if len(network.AccessConfigs) > 0 && network.AccessConfigs[0] != nil {
			public = network.AccessConfigs[0].NatIP
		}
		if n == 0 {
			m.Access, m.Bind = cloud.Addresses(public, network.NetworkIP)
		}
		m.Addresses = append(m.Addresses, public, network.NetworkIP)
	}
	return m
}

// label is a value as labels may have it: lower case, 63 characters at most.
func label(value string) string {
	text := cloud.Encode(value)
	if len(text) > 63 {
		return uuid.NewSHA1(uuid.NameSpaceOID, []byte(value)).String()
	}
	return text
}

// labels reads what label wrote.
func labels(of map[string]string) map[string]string {
	read := map[string]string{}
	for name, value := range of {
		if strings.HasPrefix(name, "loom-") {
			read[name] = cloud.Decode(value)
		}
	}
	return read
}

// notFound reports whether an error says that something is not there.
func notFound(err error) bool {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Kind == cloud.NotFound
	}
	return err != nil && statusOf(err) == http.StatusNotFound
}
