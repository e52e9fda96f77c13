package rackspace

import (
	"context"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v2/tokens"

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

// New returns the provider.
func New(o cloud.Options) *cloud.RebootingProvider {
	return cloud.NewRebooting(cloud.Cloud{Name: "Rackspace", Type: Type, Classify: nova.Classify, Open: open}, o)
}

// apiKey signs in with Rackspace's own kind of credentials.
type apiKey struct{ user, key string }

// ToTokenV2CreateMap makes the request.
func (a apiKey) ToTokenV2CreateMap() (map[string]any, error) {
	return map[string]any{"auth": map[string]any{"RAX-KSKEY:apiKeyCredentials": map[string]string{"username": a.user, "apiKey": a.key}}}, nil
}

// CanReauth says that a token that ran out is replaced.
func (apiKey) CanReauth() bool { return true }

// open signs in.
func open(ctx context.Context, s *cloud.Session) (cloud.Driver, error) {
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
	d, err := nova.NewDriver(s, catalog, about, computeName, imageName)
	return &driver{d}, err
}

func region(f cloud.Fields) string {
	if name := f.Text("rackspace_region"); name != "" {
		return strings.ToLower(name)
	}
	return "dfw"
}

// identityOf returns the address of the identity service without its version: that
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
