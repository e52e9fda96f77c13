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

// New returns the provider.
func New(o cloud.Options) *cloud.Provider {
	return cloud.New(cloud.Cloud{Name: "Compute Engine", Type: Type, Classify: classify, Open: open}, o)
}

// open makes the client of a session, and reads what its task needs besides.
func open(ctx context.Context, s *cloud.Session) (cloud.Driver, error) {
	d, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	switch s.Action { //nolint:exhaustive // others need nothing
	case loom.ActionCreate:
		var trouble *remote.Error
		if d.keys, err = publicKeys(ctx, s.Task); errors.As(err, &trouble) {
			return nil, &cloud.Error{Kind: cloud.Refused, Message: err.Error(), Err: err}
		}
		return d, cloud.Local(err)
	case loom.ActionConfirm:
		d.data, err = dataDisks(s.Fields)
	}
	return d, err
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
	d := &driver{Session: s, api: api, project: s.Fields.Text("google_project"), zone: s.Fields.Text("zone_name"), images: map[string]image{}}
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
