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

// Joyent is the provider. It has no state.
type Joyent struct {
	options cloud.Options
	// loopback lets machines have loopback addresses, for tests.
	loopback bool
}

// New makes the provider.
func New(o cloud.Options) *Joyent { return &Joyent{options: o} }

// Type describes the provider type for the catalog.
func (*Joyent) Type() loom.PluginType { return Type() }

// Create asks for a machine, unless one has the node's tag already.
func (j *Joyent) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := j.open(ctx, spec, sink)
	if err != nil {
		return s.CreateFailure(ctx, err)
	}
	return s.Create(ctx, spec, d)
}

// Confirm waits until the machine runs, is usable over SSH and has done what it
// does at its first boot, and mounts its data disk.
func (j *Joyent) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := j.open(ctx, spec, sink)
	if err != nil {
		return s.Failure(ctx, err)
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return s.Failure(ctx, err)
	}
	return s.Confirm(ctx, spec, m, cloud.Disks{First: firstBoot, Named: []cloud.NamedDisk{{Device: dataDisk, Mount: cloud.DataMount}}})
}

// Delete removes the machine and waits until it is gone.
func (j *Joyent) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := j.open(ctx, spec, sink)
	if err != nil {
		return s.DeleteFailure(ctx, spec, err)
	}
	return s.Delete(ctx, spec, d)
}

func (j *Joyent) open(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (*cloud.Session, *driver, error) {
	s := j.options.Begin(Type(), spec, sink, classify)
	d, err := dial(ctx, s)
	if err == nil {
		d.loopback = j.loopback
	}
	return s, d, err
}

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
	return &driver{client: c}, nil
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
