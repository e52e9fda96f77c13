package rackspace

import (
	"context"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v2/tokens"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// The identity service; the region lon has its own.
const (
	usualIdentity  = "https://identity.api.rackspacecloud.com/v2.0"
	londonIdentity = "https://lon.identity.api.rackspacecloud.com/v2.0"
	london         = "lon"
)

// Names in the catalog.
const (
	computeName = "cloudServersOpenStack"
	imageName   = "cloudImages"
)

// dataDisk is the second disk of flavors that have one.
const dataDisk = "/dev/xvde1"

// Rackspace is the provider. It has no state.
type Rackspace struct{ options cloud.Options }

// New makes the provider.
func New(o cloud.Options) *Rackspace { return &Rackspace{options: o} }

// Type describes the provider type for the catalog.
func (*Rackspace) Type() loom.PluginType { return Type() }

// Create asks for a server, unless one has the node's key already.
func (p *Rackspace) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, spec, sink)
	if err != nil {
		return s.CreateFailure(ctx, err)
	}
	return s.Create(ctx, spec, d)
}

// Confirm waits until the server is active, and deployed by RackConnect where the
// field says so, and usable over SSH.
func (p *Rackspace) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, spec, sink)
	if err != nil {
		return s.Failure(ctx, err)
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return s.Failure(ctx, err)
	}
	return s.Confirm(ctx, spec, m, cloud.Disks{Named: []cloud.NamedDisk{{Device: dataDisk, Mount: cloud.DataMount}}})
}

// Delete removes the server and waits until it is gone.
func (p *Rackspace) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, spec, sink)
	if err != nil {
		return s.DeleteFailure(ctx, spec, err)
	}
	return s.Delete(ctx, spec, d)
}

func (p *Rackspace) open(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (*cloud.Session, *driver, error) {
	s := p.options.Begin(Type(), spec, sink, nova.Classify)
	d, err := dial(ctx, s)
	if err != nil {
		return s, nil, err
	}
	d.spec = spec
	return s, d, nil
}

// apiKey signs in with Rackspace's own kind of credentials.
type apiKey struct{ user, key string }

// ToTokenV2CreateMap makes the request.
func (a apiKey) ToTokenV2CreateMap() (map[string]any, error) {
	return map[string]any{"auth": map[string]any{"RAX-KSKEY:apiKeyCredentials": map[string]string{"username": a.user, "apiKey": a.key}}}, nil
}

// CanReauth says that a token that ran out is replaced.
func (apiKey) CanReauth() bool { return true }

// dial signs in.
func dial(ctx context.Context, s *cloud.Session) (*driver, error) {
	identity, err := identityOf(s)
	if err != nil {
		return nil, err
	}
	credentials := apiKey{s.Fields.Text("api_user"), s.Fields.Text("api_password")}
	if credentials.user == "" || credentials.key == "" {
		return nil, cloud.Errorf(cloud.Credentials, "provider fields api_user and api_password (the API key) have to be filled in")
	}
	about := []string{identity, credentials.user, credentials.key}
	client, err := nova.SignIn(ctx, s, identity, true, about, func(ctx context.Context, client *gophercloud.ProviderClient) error {
		return openstack.AuthenticateV2(ctx, client, credentials, gophercloud.EndpointOpts{})
	})
	if err != nil {
		return nil, err
	}
	s.SignedIn("Rackspace takes the credentials.")
	catalog, err := catalogOf(client, s.Fields)
	if err != nil {
		return nil, err
	}
	compute, err := catalog.Service("compute", computeName, "")
	if err != nil {
		return nil, err
	}
	return &driver{compute: nova.Compute{Client: compute, About: about}, catalog: catalog, fields: s.Fields, session: s}, nil
}

func region(f cloud.Fields) string {
	if name := f.Text("rackspace_region"); name != "" {
		return strings.ToLower(name)
	}
	return "dfw"
}

// identityOf gives the address of the identity service without its version: that
// of endpoint_url, of the field rackspace_auth_url that old providers carry, or of
// the region.
func identityOf(s *cloud.Session) (string, error) {
	usual := usualIdentity
	if region(s.Fields) == london {
		usual = londonIdentity
	}
	if text := s.Fields.Text("rackspace_auth_url"); text != "" {
		if !strings.Contains(text, "://") {
			text = "https://" + text
		}
		var err error
		if usual, err = s.CheckURL("rackspace_auth_url", text); err != nil {
			return "", err
		}
	}
	address, err := s.Endpoint(s.Fields, usual)
	if err != nil {
		return "", err
	}
	address = strings.TrimRight(address, "/")
	for _, ending := range []string{"/tokens", "/v2.0", "/v2"} {
		address = strings.TrimRight(strings.TrimSuffix(address, ending), "/")
	}
	return address + "/", nil
}

// catalogOf reads the catalog that came with the token.
func catalogOf(client *gophercloud.ProviderClient, f cloud.Fields) (nova.Catalog, error) {
	c := nova.Catalog{Provider: client, Region: strings.ToUpper(region(f)), Field: "rackspace_region"}
	token, ok := client.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return c, cloud.Errorf(cloud.Refused, "the identity service gave a token without a catalog of services")
	}
	services, err := token.ExtractServiceCatalog()
	if err != nil {
		return c, err
	}
	for _, entry := range services.Entries {
		for _, e := range entry.Endpoints {
			c.Endpoints = append(c.Endpoints, nova.Endpoint{Type: entry.Type, Name: entry.Name, Region: e.Region, URL: e.PublicURL})
		}
	}
	return c, nil
}
