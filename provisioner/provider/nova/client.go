package nova

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"loom/provisioner/provider/cloud"
)

// Client makes a client of the identity service at an address. Its calls are those
// of Session.Client; addresses without encryption are refused unless the options
// allow them, also those that the catalog names.
func Client(s *cloud.Session, identity string, verify bool) (*gophercloud.ProviderClient, error) {
	p, err := openstack.NewClient(identity)
	if err != nil {
		return nil, cloud.Errorf(cloud.Refused, "the identity service’s address cannot be used: %s", err)
	}
	p.HTTPClient = *s.Client(verify)
	if !s.Insecure {
		p.HTTPClient.Transport = encrypted{p.HTTPClient.Transport}
	}
	p.UserAgent.Prepend("loom")
	return p, nil
}

// encrypted makes no call without encryption.
type encrypted struct{ http.RoundTripper }

// RoundTrip refuses plain HTTP.
func (e encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, cloud.Errorf(cloud.Refused, "the cloud’s catalog names %s://%s, which is not encrypted; let it name HTTPS, or start Loom with LOOM_ALLOW_INSECURE_ENDPOINTS=true",
			r.URL.Scheme, r.URL.Host)
	}
	return e.RoundTripper.RoundTrip(r)
}

// Endpoint is a public address of a service in the catalog.
type Endpoint struct{ Type, Name, Region, URL string }

// Catalog is what the identity service told.
type Catalog struct {
	Provider  *gophercloud.ProviderClient
	Endpoints []Endpoint
	// Region in which services are looked for, "" for the first one; Field is the
	// provider field that names it.
	Region, Field string
}

// Service makes the client of a service. name "" takes any; version, such as "v2.0",
// is added to the address where it is not there yet.
func (c Catalog) Service(kind, name, version string) (*gophercloud.ServiceClient, error) {
	var regions []string
	for _, e := range c.Endpoints {
		if e.Type != kind || name != "" && e.Name != name || e.URL == "" {
			continue
		}
		if c.Region != "" && e.Region != c.Region {
			regions = append(regions, e.Region)
			continue
		}
		service := &gophercloud.ServiceClient{ProviderClient: c.Provider, Endpoint: gophercloud.NormalizeURL(e.URL), Type: kind}
		if version != "" && !strings.Contains(service.Endpoint, "/"+version+"/") {
			service.ResourceBase = service.Endpoint + version + "/"
		}
		return service, nil
	}
	if len(regions) == 0 {
		return nil, cloud.Errorf(cloud.Refused, "the cloud’s catalog has no service of type %s for this account", kind)
	}
	slices.Sort(regions)
	return nil, cloud.Errorf(cloud.Refused, "the cloud has no service of type %s in region %s (provider field %s); choose one of %s",
		kind, c.Region, c.Field, strings.Join(slices.Compact(regions), ", "))
}
