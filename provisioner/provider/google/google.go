package google

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/remote"
)

// apiPath is where the API is below its address.
const apiPath = "/compute/v1/"

// Google is the provider. It has no state.
type Google struct{ options cloud.Options }

// New makes the provider.
func New(o cloud.Options) *Google { return &Google{options: o} }

// Type describes the provider type for the catalog.
func (*Google) Type() loom.PluginType { return Type() }

// Create asks for an instance with its disks, and waits a moment for the cloud to
// say whether quota and capacity allow it.
func (g *Google) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := g.open(ctx, spec, sink)
	if err != nil {
		return s.CreateFailure(ctx, err)
	}
	if d.keys, err = publicKeys(ctx, spec); err != nil {
		var trouble *remote.Error
		if !errors.As(err, &trouble) {
			return loom.TaskResult{}, err // of this host, not of the provider
		}
		return s.CreateFailure(ctx, &cloud.Error{Kind: cloud.Refused, Message: err.Error(), Err: err})
	}
	return s.Create(ctx, spec, d)
}

// Confirm waits until the instance runs and is usable over SSH, and mounts its
// data disks.
func (g *Google) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := g.open(ctx, spec, sink)
	if err != nil {
		return s.Failure(ctx, err)
	}
	disks, err := dataDisks(s.Fields)
	if err != nil {
		return s.Failure(ctx, err)
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return s.Failure(ctx, err)
	}
	if s.Fields.Switch("provider_hostname", false) {
		m.Hostname = cloud.ReverseName(ctx, m.Access)
	}
	m.Access = access(s.Fields, m)
	return s.Confirm(ctx, spec, m, cloud.Disks{Named: named(disks)})
}

// access is the address that Loom connects to.
func access(f cloud.Fields, m cloud.Machine) string {
	if f.Text("bootstrap_interface") == loom.BindV4 {
		return m.Bind
	}
	return m.Access
}

// Delete removes the instance, waits until it is gone, and then removes those of
// its disks that did not go with it.
func (g *Google) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := g.open(ctx, spec, sink)
	if err != nil {
		return s.DeleteFailure(ctx, spec, err)
	}
	result, err := s.Delete(ctx, spec, d)
	if err != nil || result.Status != 0 || spec.Alone {
		return result, err // disks with the key may be those of the node's own machine
	}
	if err := d.removeDisks(ctx, s, spec); err != nil {
		return s.DeleteFailure(ctx, spec, err)
	}
	return result, nil
}

func (g *Google) open(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (*cloud.Session, *driver, error) {
	s := g.options.Begin(Type(), spec, sink, classify)
	d, err := dial(ctx, s)
	if err == nil {
		d.attempt = spec.Attempt
	}
	return s, d, err
}

// dial makes the client of a session.
func dial(ctx context.Context, s *cloud.Session) (*driver, error) {
	endpoint, err := s.Endpoint(s.Fields, "https://compute.googleapis.com")
	if err != nil {
		return nil, err
	}
	s.WayTo(endpoint)
	key, err := keyOf(s, provider.EnvOf(ctx).Files, endpoint)
	if err != nil {
		return nil, err
	}
	client := s.Client(true)
	client.Transport = &authorized{RoundTripper: client.Transport, session: s, key: key}
	api, err := compute.NewService(ctx, option.WithHTTPClient(client), option.WithUserAgent("loom"))
	if err != nil {
		return nil, cloud.Errorf(cloud.Refused, "the client of Compute Engine cannot be made: %s", err)
	}
	api.BasePath = strings.TrimSuffix(strings.TrimSuffix(endpoint, "/"), strings.TrimSuffix(apiPath, "/")) + apiPath
	d := &driver{api: api, fields: s.Fields, project: s.Fields.Text("google_project"), zone: s.Fields.Text("zone_name"), images: map[string]image{}}
	if d.zone == "" {
		d.zone = "us-central1-a"
	}
	for _, f := range []struct{ name, value string }{{"google_project", d.project}, {"zone_name", d.zone}} {
		if f.value == "" || strings.ContainsAny(f.value, "/?# \t\r\n") {
			return nil, cloud.Errorf(cloud.Refused, "provider field %s is %.50q; give the id alone", f.name, f.value)
		}
	}
	return d, nil
}
