package digitalocean

import (
	"context"
	"strings"

	"github.com/digitalocean/godo"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// usualEndpoint is the API of DigitalOcean.
const usualEndpoint = "https://api.digitalocean.com/"

// DigitalOcean is the provider. It has no state.
type DigitalOcean struct{ options cloud.Options }

// New makes the provider.
func New(o cloud.Options) *DigitalOcean { return &DigitalOcean{options: o} }

// Type describes the provider type for the catalog.
func (*DigitalOcean) Type() loom.PluginType { return Type() }

// Create asks for a droplet, unless one has the node's tag already.
func (p *DigitalOcean) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(spec, sink)
	if err != nil {
		return s.CreateFailure(ctx, err)
	}
	return s.Create(ctx, spec, d)
}

// Confirm waits until the droplet is active and usable over SSH.
func (p *DigitalOcean) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(spec, sink)
	if err != nil {
		return s.Failure(ctx, err)
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return s.Failure(ctx, err)
	}
	return s.Confirm(ctx, spec, m, cloud.Disks{})
}

// Delete removes the droplet and waits until it is gone.
func (p *DigitalOcean) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(spec, sink)
	if err != nil {
		return s.DeleteFailure(ctx, spec, err)
	}
	return s.Delete(ctx, spec, d)
}

func (p *DigitalOcean) open(spec *loom.TaskSpec, sink loom.Sink) (*cloud.Session, *driver, error) {
	s := p.options.Begin(Type(), spec, sink, classify)
	d, err := dial(s)
	return s, d, err
}

// dial makes the client of a session.
func dial(s *cloud.Session) (*driver, error) {
	endpoint, err := s.Endpoint(s.Fields, usualEndpoint)
	if err != nil {
		return nil, err
	}
	token := s.Fields.Text("api_password")
	if token == "" {
		return nil, cloud.Errorf(cloud.Credentials, "provider field api_password is empty; give a personal access token")
	}
	if strings.ContainsAny(token, "\r\n") {
		return nil, cloud.Errorf(cloud.Credentials, "provider field api_password has more than one line; give a personal access token")
	}
	client, err := godo.New(cloud.WithHeader(s.Client(true), "Authorization", "Bearer "+token),
		godo.SetBaseURL(strings.TrimSuffix(endpoint, "/")+"/"), godo.SetUserAgent("loom"))
	if err != nil {
		return nil, cloud.Errorf(cloud.Refused, "the client of DigitalOcean cannot be made: %s", err)
	}
	return &driver{client: client, fields: s.Fields}, nil
}
