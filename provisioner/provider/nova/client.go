package nova

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"loom/provisioner/provider/cloud"
)

// SignIn returns a client that is signed in at the identity service: one for all tasks with
// the same credentials, which about tells with the address. signIn makes the one call that it takes.
// The client renews its token by itself, once for all.
func SignIn(ctx context.Context, s *cloud.Session, identity string, verify bool, about []string, signIn func(context.Context, *gophercloud.ProviderClient) error) (client *gophercloud.ProviderClient, err error) {
	about = append([]string{"token", strconv.FormatBool(verify)}, about...)
	err = s.Call(ctx, func(ctx context.Context) (err error) {
		client, err = cloud.Shared(ctx, s, about, func(ctx context.Context) (*gophercloud.ProviderClient, time.Time, error) {
			fresh, err := Client(s, identity, verify)
			if err == nil {
				err = signIn(ctx, fresh)
			}
			return fresh, time.Time{}, err
		})
		return err
	})
	return client, err
}

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

// OneRegion is an error where several regions have the services that machines need and
// no field says which one is meant: each service would take its own first.
func (c Catalog) OneRegion() error {
	if regions := c.Regions(); c.Region == "" && len(regions) > 1 {
		return cloud.Errorf(cloud.Refused, "the cloud has several regions; name one of %s in provider field %s", strings.Join(regions, ", "), c.Field)
	}
	return nil
}

// Regions returns those in which machines can be made, or what they need.
func (c Catalog) Regions() []string {
	var regions []string
	for _, e := range c.Endpoints {
		if (e.Type == "compute" || e.Type == "network" || e.Type == "image") && e.URL != "" && e.Region != "" {
			regions = append(regions, e.Region)
		}
	}
	slices.Sort(regions)
	return slices.Compact(regions)
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
	err := cloud.Errorf(cloud.Refused, "the cloud has no service of type %s in region %s (provider field %s); choose one of %s",
		kind, c.Region, c.Field, strings.Join(slices.Compact(regions), ", "))
	err.Step = cloud.StepRegion
	return nil, err
}
