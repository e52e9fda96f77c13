package openstack

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/nova"
)

// New returns the provider.
func New(o cloud.Options) *cloud.RebootingProvider {
	return cloud.NewRebooting(cloud.Cloud{Name: "OpenStack", Type: Type, Classify: nova.Classify, Open: open, Facts: []string{factID, factCreated}}, o)
}

// open signs in and looks for Nova.
func open(ctx context.Context, s *cloud.Session) (cloud.Driver, error) {
	catalog, about, err := signIn(ctx, s)
	if err != nil {
		return nil, err
	}
	s.SignedIn("Keystone takes the credentials.")
	s.Offer("openstack_region", catalog.Regions())
	d, err := nova.NewDriver(s, catalog, about, "", "")
	if err == nil && (s.Action == loom.ActionCreate || s.Asked()) {
		err = catalog.OneRegion() // each service would be asked in a region of its own
	}
	var e *cloud.Error
	if errors.As(err, &e) {
		e.Step = cloud.StepRegion
	}
	return &driver{Driver: d}, err
}

// signIn signs in at Keystone. about tells apart with what.
func signIn(ctx context.Context, s *cloud.Session) (catalog nova.Catalog, about []string, err error) {
	identity, err := identityOf(s)
	if err != nil {
		return catalog, nil, err
	}
	options, err := credentials(s.Fields)
	if err != nil {
		return catalog, nil, err
	}
	verify := s.Fields.Switch("openstack_ssl_verify_peer", true)
	about = append(options.about(), identity)
	client, err := nova.SignIn(ctx, s, identity, verify, about, func(ctx context.Context, client *gophercloud.ProviderClient) error {
		return openstack.AuthenticateV3(ctx, client, options.AuthOptions, gophercloud.EndpointOpts{})
	})
	if err != nil {
		var e *cloud.Error
		if errors.As(err, &e) && e.Kind == cloud.NotFound {
			e.Kind = cloud.Refused
			e.Message = "there is no Keystone of version 3 at " + identity + " (provider field openstack_auth_url): " + e.Message
		}
		return catalog, nil, err
	}
	catalog, err = catalogOf(client, s.Fields)
	return catalog, about, err
}

// identityOf returns the address of Keystone without its version. The field
// endpoint_url goes before openstack_auth_url.
func identityOf(s *cloud.Session) (string, error) {
	text := s.Fields.Text("openstack_auth_url")
	address, err := s.Endpoint(s.Fields, "")
	if err == nil && address == "" {
		if text == "" {
			return "", cloud.Errorf(cloud.Refused, "provider field openstack_auth_url is empty; give Keystone’s address, such as https://keystone.example:5000/v3")
		}
		address, err = s.CheckURL("openstack_auth_url", text)
	}
	if err != nil {
		return "", err
	}
	return plain(address), nil
}

// plain cuts what addresses of Keystone end in, of the old and the new form.
func plain(address string) string {
	address = strings.TrimRight(address, "/")
	for _, ending := range []string{"/tokens", "/auth", "/v2.0", "/v3"} {
		address = strings.TrimRight(strings.TrimSuffix(address, ending), "/")
	}
	return address + "/"
}

// projectID is how Keystone writes ids, with and without dashes.
var projectID = regexp.MustCompile(`^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$`)

// keystone is what is signed in with.
type keystone struct{ *gophercloud.AuthOptions }

// about tells apart what gives different tokens.
func (k keystone) about() []string {
	all := []string{k.ApplicationCredentialID, k.ApplicationCredentialSecret, k.Username, k.Password, k.DomainName}
	if k.Scope != nil {
		all = append(all, k.Scope.ProjectID, k.Scope.ProjectName, k.Scope.DomainName)
	}
	return all
}

// credentials returns what is signed in with: an application credential, which
// belongs to a project, or a user's name, password and project.
func credentials(f cloud.Fields) (keystone, error) {
	id, secret := f.Text("application_credential_id"), f.Text("application_credential_secret")
	if id != "" && secret != "" {
		return keystone{&gophercloud.AuthOptions{ApplicationCredentialID: id, ApplicationCredentialSecret: secret, AllowReauth: true}}, nil
	}
	for _, name := range []string{"api_user", "api_password", "openstack_tenant"} {
		if f.Text(name) == "" {
			return keystone{}, cloud.Errorf(cloud.Credentials, "provider field %s is empty; fill in user name, password and project, or an application credential", name)
		}
	}
	both := cmp.Or(f.Text("openstack_domain"), "Default")
	user, project := cmp.Or(f.Text("openstack_user_domain"), both), cmp.Or(f.Text("openstack_project_domain"), both)
	scope := &gophercloud.AuthScope{ProjectName: f.Text("openstack_tenant"), DomainName: project}
	if projectID.MatchString(scope.ProjectName) {
		scope = &gophercloud.AuthScope{ProjectID: scope.ProjectName}
	}
	return keystone{&gophercloud.AuthOptions{Username: f.Text("api_user"), Password: f.Text("api_password"), DomainName: user, Scope: scope, AllowReauth: true}}, nil
}

// catalogOf reads the catalog that came with the token.
func catalogOf(client *gophercloud.ProviderClient, f cloud.Fields) (nova.Catalog, error) {
	c := nova.Catalog{Provider: client, Region: f.Text("openstack_region"), Field: "openstack_region"}
	token, ok := client.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return c, cloud.Errorf(cloud.Refused, "Keystone gave a token without a catalog of services; give a project")
	}
	services, err := token.ExtractServiceCatalog()
	if err != nil {
		return c, err
	}
	for _, entry := range services.Entries {
		for _, e := range entry.Endpoints {
			if e.Interface != string(gophercloud.AvailabilityPublic) {
				continue
			}
			region := e.RegionID
			if region == "" || e.Region == c.Region {
				region = e.Region
			}
			c.Endpoints = append(c.Endpoints, nova.Endpoint{Type: entry.Type, Name: entry.Name, Region: region, URL: e.URL})
		}
	}
	return c, nil
}
