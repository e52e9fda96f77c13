package aws

import (
	"context"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// AWS is the provider. It has no state.
type AWS struct {
	options cloud.Options
	// metadata is where this host's own EC2 metadata is; empty: the usual place.
	metadata string
}

// New makes the provider.
func New(o cloud.Options) *AWS { return &AWS{options: o} }

// Type describes the provider type for the catalog.
func (*AWS) Type() loom.PluginType { return Type() }

// Create asks for an instance. Its client token is the idempotency key, so that the
// cloud itself makes no second one.
func (a *AWS) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := a.open(ctx, spec, sink)
	if err != nil {
		return s.CreateFailure(ctx, err)
	}
	return s.Create(ctx, spec, d)
}

// Confirm waits until the instance runs and is usable over SSH.
func (a *AWS) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := a.open(ctx, spec, sink)
	if err != nil {
		return s.Failure(ctx, err)
	}
	m, err := s.Await(ctx, spec, d)
	if err != nil {
		return s.Failure(ctx, err)
	}
	if !s.Fields.Switch("provider_hostname", false) {
		m.Hostname = ""
	} else if m.Hostname == "" {
		m.Hostname = cloud.ReverseName(ctx, m.Access)
	}
	if spec.Results["ssh_host_keys"] == nil {
		_ = s.Once(ctx, func(ctx context.Context) error { // without them they are learned
			m.HostKeys = d.consoleKeys(ctx, m.ID)
			return nil
		})
	}
	return s.Confirm(ctx, spec, m, cloud.Disks{Grow: true, Spare: ownDisk})
}

// Delete terminates the instance and waits until it is terminated.
func (a *AWS) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := a.open(ctx, spec, sink)
	if err != nil {
		return s.DeleteFailure(ctx, spec, err)
	}
	return s.Delete(ctx, spec, d)
}

func (a *AWS) open(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (*cloud.Session, *driver, error) {
	s := a.options.Begin(Type(), spec, sink, classify)
	d, err := a.dial(ctx, s)
	return s, d, err
}

// dial makes the client of a session.
func (a *AWS) dial(ctx context.Context, s *cloud.Session) (*driver, error) {
	endpoint, err := s.Endpoint(s.Fields, "")
	if err != nil {
		return nil, err
	}
	keys, err := a.keys(ctx, s)
	if err != nil {
		return nil, err
	}
	options := ec2.Options{
		Region: region(s.Fields), Credentials: keys, HTTPClient: s.Client(true),
		Retryer: sdk.NopRetryer{}, // the session repeats, and says so
	}
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	return &driver{client: ec2.New(options), fields: s.Fields}, nil
}

func region(f cloud.Fields) string {
	if name := f.Text("aws_region"); name != "" {
		return name
	}
	return "us-east-1"
}

// keys gives the credentials: those of this host's role where the field says so,
// else those of the fields.
func (a *AWS) keys(ctx context.Context, s *cloud.Session) (sdk.CredentialsProvider, error) {
	f := s.Fields
	if f.Switch("use_instance_role", false) {
		got, err := cloud.Shared(ctx, s, []string{"role", a.metadata}, func(ctx context.Context) (sdk.Credentials, time.Time, error) {
			role := ec2rolecreds.New(func(o *ec2rolecreds.Options) {
				o.Client = imds.New(imds.Options{Endpoint: a.metadata})
			})
			got, err := role.Retrieve(ctx)
			return got, got.Expires, err
		})
		if err != nil {
			return nil, &cloud.Error{Kind: cloud.Credentials, Err: err,
				Message: "this host’s EC2 role gives no credentials; give the host a role, or fill in api_user and api_password"}
		}
		return credentials.StaticCredentialsProvider{Value: got}, nil
	}
	id, secret := f.Text("api_user"), f.Text("api_password")
	if id == "" || secret == "" {
		return nil, cloud.Errorf(cloud.Credentials, "provider fields api_user and api_password have to be filled in")
	}
	return credentials.NewStaticCredentialsProvider(id, secret, f.Text("aws_session_token")), nil
}
