package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/ec2"
	"loom/provisioner/fakecloud/gce"
	"loom/provisioner/fakecloud/ocean"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/fakecloud/triton"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
)

// benchCloud is a provider before its fake cloud.
type benchCloud struct {
	name    string
	dialect fakecloud.Dialect
	made    provider.Provider
	fields  map[string]any
	// flavor and image of the nodes; signIn is the operation of signing in, make the one
	// that makes a machine.
	flavor, image, signIn, make string
	// slow gives the cloud two workers that take a while for each machine; calls is the
	// field max_calls, "" for the usual number.
	slow  bool
	calls string
	// begun is called once the fake cloud runs; may be nil.
	begun func() error
}

// benchClouds prints how many calls a node takes at each cloud, from its CREATE to its
// DELETE but for SSH, when all nodes are made at once: at fake clouds, one of them slow.
func (e *environment) benchClouds(ctx context.Context, nodes int) (err error) {
	dir, err := os.MkdirTemp("", "loom-bench-clouds-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	clouds, err := benchClouds(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "\nCalls of %d nodes that are made at once and deleted at once, at fake clouds\n\n"+
		"  %-30s %8s %8s %10s %10s %10s %9s %9s\n", nodes, "", "a node", "create", "sign-ins", "in flight", "dropped", "doubles", "took")
	for _, c := range clouds {
		if err := e.benchCloud(provider.WithEnv(ctx, provider.Env{Files: dir}), c, nodes); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	fmt.Fprintf(e.Out, "\n  “create” are the calls that make a machine. The slow Nova has two workers, who take %s for each machine.\n", benchNova)
	return nil
}

// benchNova is how long a slow Nova takes for a machine.
const benchNova = 20 * time.Millisecond

// benchClouds returns the clouds, and puts their keys into dir.
func benchClouds(dir string) ([]benchCloud, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	keep := func(name string, content []byte) error {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return fmt.Errorf("write a key: %w", err)
		}
		return nil
	}
	if err := keep("ssh_keys/key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})); err != nil {
		return nil, err
	}
	accounts := gce.New()
	o := cloud.Options{Insecure: true, LeaveDisks: true, Pace: cloud.Pace{Poll: 10 * time.Millisecond, SlowPoll: 10 * time.Millisecond, Unseen: time.Second}}
	nova := func(name string, slow bool, calls string) benchCloud {
		return benchCloud{name: name, dialect: stack.New(), made: openstack.New(o), flavor: stack.Flavor, image: stack.Image, signIn: stack.SignIn, make: stack.Create, slow: slow, calls: calls,
			fields: map[string]any{"api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project, "ssh_keypair": stack.KeyPair}}
	}
	return []benchCloud{
		nova("OpenStack", false, ""), nova("OpenStack, slow", true, ""), nova("OpenStack, slow, 100 at once", true, "100"),
		{name: "Rackspace", dialect: stack.NewRackspace(), made: rackspace.New(o), flavor: stack.Flavor, image: stack.Image, signIn: stack.SignInV2, make: stack.Create,
			fields: map[string]any{"api_user": stack.User, "api_password": stack.APIKey, "rackspace_region": "dfw", "ssh_keypair": stack.KeyPair}},
		{name: "Amazon EC2", dialect: ec2.New(), made: aws.New(o), flavor: ec2.Size, image: ec2.Image, make: "RunInstances",
			fields: map[string]any{"api_user": ec2.KeyID, "api_password": ec2.Secret, "ssh_keypair": ec2.KeyPair, "aws_region": "us-east-1", "security_groups": ec2.Group}},
		{name: "Google Compute Engine", dialect: accounts, made: google.New(o), flavor: gce.Size, image: gce.Image, signIn: gce.Token, make: gce.Insert,
			begun:  func() error { return keep("api_keys/account", accounts.Key()) },
			fields: map[string]any{"google_project": gce.Project, "api_key_resource": "account", "zone_name": gce.Zone, "google_data_disk_size_gb": "20"}},
		{name: "Joyent Triton", dialect: triton.New(key.Public()), made: joyent.New(o), flavor: triton.Package, image: triton.Image, make: triton.Create,
			fields: map[string]any{"api_user": triton.Login, "ssh_keypair": triton.KeyName}},
		{name: "DigitalOcean", dialect: ocean.New(), made: digitalocean.New(o), flavor: ocean.Size, image: ocean.Image, make: ocean.Create,
			fields: map[string]any{"api_password": ocean.Token, "ssh_keypair": ocean.KeyName, "digitalocean_region": ocean.Region}},
	}, nil
}

// benchCloud measures one cloud.
func (e *environment) benchCloud(ctx context.Context, c benchCloud, nodes int) error {
	at := fakecloud.New(c.dialect, nil)
	defer at.Close()
	if c.slow {
		at.Slow(c.make, 2, benchNova)
	}
	c.fields["endpoint_url"], c.fields["openstack_auth_url"], c.fields["ssh_key_resource"], c.fields["max_calls"] = at.URL(), at.URL(), "key", c.calls
	if c.begun != nil {
		if err := c.begun(); err != nil {
			return err
		}
	}
	begin := time.Now()
	specs := make([]*loom.TaskSpec, nodes)
	errs := make([]error, nodes)
	each := func(do func(spec *loom.TaskSpec) error) error {
		var all sync.WaitGroup
		for n := range nodes {
			all.Go(func() { errs[n] = do(specs[n]) })
		}
		all.Wait()
		return errors.Join(errs...)
	}
	// The API is on this host; that machines are not reached ends CONFIRM where SSH begins.
	reach, err := loom.ParseReach("127.0.0.0/8,!0.0.0.0/0,!::/0")
	if err != nil {
		return fmt.Errorf("read networks: %w", err)
	}
	for n := range specs {
		specs[n] = &loom.TaskSpec{Tenant: "bench", Node: loom.NodeID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n+1)), Attempt: 1, Hostname: fmt.Sprintf("bench-%d.local", n+1),
			IdempotencyKey: fmt.Sprintf("00000000-0000-5000-8000-%012d", n+1), Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: n + 1},
			Flavor: c.flavor, Image: c.image, Results: map[string]any{}, Reach: loom.Reach{Networks: reach},
			Provider: loom.Provider{Base: loom.Base{Name: "bench"}, Type: c.made.Type().Name, Fields: maps.Clone(c.fields)}}
	}
	if err := each(func(spec *loom.TaskSpec) error {
		made, err := c.made.Create(ctx, spec, quiet{})
		if err != nil || made.Status != 0 {
			return fmt.Errorf("CREATE ended with %d, %s: %w", made.Status, made.Message, err)
		}
		spec.Results = made.Result
		confirmed, err := c.made.Confirm(ctx, spec, quiet{})
		if err != nil || !strings.Contains(confirmed.Message, "no SSH connection") {
			return fmt.Errorf("CONFIRM ended with %d, %s: %w", confirmed.Status, confirmed.Message, err)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := each(func(spec *loom.TaskSpec) error {
		gone, err := c.made.Delete(ctx, spec, quiet{})
		if err != nil || gone.Status != 0 {
			return fmt.Errorf("DELETE ended with %d, %s: %w", gone.Status, gone.Message, err)
		}
		return nil
	}); err != nil {
		return err
	}
	took, counts, all := time.Since(begin), at.Counts(), at.Calls("")
	if counts.Live != 0 || counts.Created != nodes {
		return fmt.Errorf("%d machines live, %d were made", counts.Live, counts.Created)
	}
	signIns, abandoned := 0, 0
	for _, call := range all {
		if c.signIn != "" && call.Op == c.signIn {
			signIns++
		}
		if call.Abandoned {
			abandoned++
		}
	}
	fmt.Fprintf(e.Out, "  %-30s %8.1f %8.1f %10d %10d %10d %9d %9s\n", c.name, float64(len(all))/float64(nodes), float64(len(at.Calls(c.make)))/float64(nodes),
		signIns, counts.Most, abandoned, counts.Doubles, seconds(took))
	return nil
}

// quiet drops what a task says.
type quiet struct{}

// Log drops the line.
func (quiet) Log(string, string) {}

// Fact drops the results: those of the task are all.
func (quiet) Fact(map[string]any) error { return nil }
