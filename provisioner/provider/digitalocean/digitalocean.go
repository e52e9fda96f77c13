package digitalocean

import (
	"context"
	"strings"

	"github.com/digitalocean/godo"

	"loom/provisioner/provider/cloud"
)

// usualEndpoint is the API of DigitalOcean.
const usualEndpoint = "https://api.digitalocean.com/"

// New returns the provider.
func New(o cloud.Options) *cloud.Provider {
	return cloud.New(cloud.Cloud{Name: "DigitalOcean", Type: Type, Classify: classify, Open: open}, o)
}

// open makes the client of a session.
func open(_ context.Context, s *cloud.Session) (cloud.Driver, error) {
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
	return &driver{Session: s, client: client}, nil
}
