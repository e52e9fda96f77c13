package aws

import (
	"context"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"loom/provisioner/provider/cloud"
)

// New returns the provider.
func New(o cloud.Options) *cloud.RebootingProvider { return newProvider(o, "") }

// newProvider returns the provider with the address of this host's own EC2 metadata; "" for the
// usual one.
func newProvider(o cloud.Options, metadata string) *cloud.RebootingProvider {
	open := func(ctx context.Context, s *cloud.Session) (cloud.Driver, error) { return open(ctx, s, metadata) }
	return cloud.NewRebooting(cloud.Cloud{Name: "EC2", Type: Type, Classify: classify, Open: open}, o)
}

// open makes the client of a session.
func open(ctx context.Context, s *cloud.Session, metadata string) (cloud.Driver, error) {
	endpoint, err := s.Endpoint(s.Fields, "")
	if err != nil {
		return nil, err
	}
	keys, err := keysOf(ctx, s, metadata)
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
	return &driver{Session: s, client: ec2.New(options)}, nil
}

func region(f cloud.Fields) string {
	if name := f.Text("aws_region"); name != "" {
		return name
	}
	return "us-east-1"
}

// keysOf returns the credentials: those of this host's role where the field says so,
// else those of the fields.
func keysOf(ctx context.Context, s *cloud.Session, metadata string) (sdk.CredentialsProvider, error) {
	f := s.Fields
	if f.Switch("use_instance_role", false) {
		got, err := cloud.Shared(ctx, s, []string{"role", metadata}, func(ctx context.Context) (sdk.Credentials, time.Time, error) {
			role := ec2rolecreds.New(func(o *ec2rolecreds.Options) {
				o.Client = imds.New(imds.Options{Endpoint: metadata})
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
