package joyent

import (
	"context"
	"errors"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/remote"
)

// usualVersion are the versions of the API that Loom knows, where no field says so.
const usualVersion = "~8||~7"

// New returns the provider.
func New(o cloud.Options) *cloud.Provider { return newProvider(o, open) }

func newProvider(o cloud.Options, open func(context.Context, *cloud.Session) (cloud.Driver, error)) *cloud.Provider {
	return cloud.New(cloud.Cloud{Name: "Triton", Type: Type, Classify: classify, Open: open}, o)
}

func open(ctx context.Context, s *cloud.Session) (cloud.Driver, error) { return dial(ctx, s) }

// dial makes the client of a session.
func dial(ctx context.Context, s *cloud.Session) (*driver, error) {
	address := s.Fields.Text("joyent_api_url")
	if address == "" {
		address = usualAddress
	}
	address, err := s.CheckURL("joyent_api_url", address)
	if own := s.Fields.Text(provider.EndpointField); own != "" {
		address, err = s.CheckURL(provider.EndpointField, own)
	}
	if err != nil {
		return nil, err
	}
	login := s.Fields.Text("api_user")
	if login == "" || strings.ContainsAny(login, "/\"\r\n") {
		return nil, cloud.Errorf(cloud.Credentials, "provider field api_user is %.50q; give the login of the account", login)
	}
	version := s.Fields.Text("joyent_version")
	if version == "" {
		version = usualVersion
	}
	if strings.ContainsAny(version, "\r\n") {
		return nil, cloud.Errorf(cloud.Refused, "provider field joyent_version is %.50q; give a version such as ~8", version)
	}
	c := &client{http: s.Client(true), address: strings.TrimRight(address, "/"), login: login, version: version}
	if c.authorize, err = authorization(s.Fields, login, provider.EnvOf(ctx).Files); err != nil {
		return nil, err
	}
	return &driver{Session: s, client: c}, nil
}

// authorization chooses how calls are authorized: by key, else by password.
func authorization(f cloud.Fields, login, files string) (authorizer, error) {
	name, resource, password := f.Text("ssh_keypair"), f.Text("ssh_key_resource"), f.Text("api_password")
	switch {
	case name != "" && resource != "":
	case password != "":
		return basic(login, password), nil
	default:
		return nil, cloud.Errorf(cloud.Credentials, "provider fields ssh_keypair and ssh_key_resource have to be filled in, or api_password where the installation takes passwords")
	}
	if strings.ContainsAny(name, "/\"\r\n") {
		return nil, cloud.Errorf(cloud.Credentials, "provider field ssh_keypair is %.50q; give the name or the fingerprint of the key in the account", name)
	}
	spec := &loom.TaskSpec{Results: map[string]any{"ssh-auth": cloud.Auth(&loom.TaskSpec{Provider: loom.Provider{Fields: f}}, "")}}
	target, err := remote.TargetOf(spec, files)
	var trouble *remote.Error
	switch {
	case errors.As(err, &trouble):
		return nil, &cloud.Error{Kind: cloud.Credentials, Message: err.Error(), Err: err}
	case err != nil || len(target.Keys) == 0:
		return nil, &cloud.Error{Kind: cloud.Credentials, Message: "the private key in ssh_key_resource cannot be read", Err: err}
	}
	return signature(login, name, target.Keys[0], loom.NewSecret(f.Text("ssh_key_passphrase")))
}
