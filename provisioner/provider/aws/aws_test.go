package aws_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/ec2"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/cloud"
)

func lab(t *testing.T, ssh bool) *cloudtest.Lab {
	t.Helper()
	dialect := ec2.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return aws.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = ec2.Size, ec2.Image, "RunInstances"
	l.Secrets = []string{ec2.Secret, "wrong-secret-key"}
	l.Throttle = fakecloud.Fault{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	l.Fields = map[string]any{"api_user": ec2.KeyID, "api_password": ec2.Secret, "ssh_keypair": ec2.KeyPair, "ssh_key_resource": cloudtest.KeyResource,
		"aws_region": "us-east-1", "security_groups": "default", "subnet_id": "", "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-secret-key" }
	l.SetPublicKey = func(public string) { dialect.PublicKey = public }
	l.SetPageSize = func(n int) { dialect.PageSize = n }
	l.UserData = func() string {
		calls := l.Cloud.Calls(l.MakeOp)
		form, err := url.ParseQuery(calls[len(calls)-1].Body)
		if err != nil {
			t.Fatal(err)
		}
		data, err := base64.StdEncoding.DecodeString(form.Get("UserData"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return l
}

func TestCourse(t *testing.T) {
	t.Parallel()
	cloudtest.Course{
		New: lab, Idempotent: true, ListOp: "DescribeInstances", ResetOp: "RebootInstances", Unknown: []any{"i-00000000000000099", "no instance"},
		Broken: "Server.InsufficientInstanceCapacity: none left", BrokenSays: "none left",
		Refusals: []cloudtest.Refusal{
			{Fault: fakecloud.Fault{Status: 403, Code: "AuthFailure"}, Status: 201, Never: true, Message: "the cloud refuses the credentials: AuthFailure"},
			{Fault: fakecloud.Fault{Status: 403, Code: "InvalidClientTokenId"}, Status: 201, Never: true, Message: "the cloud refuses the credentials: InvalidClientTokenId"},
			{Fault: fakecloud.Fault{Status: 403, Code: "SignatureDoesNotMatch"}, Status: 201, Never: true, Message: "the cloud refuses the credentials: SignatureDoesNotMatch"},
			{Fault: fakecloud.Fault{Status: 403, Code: "UnauthorizedOperation"}, Status: 202, Never: true, Message: "UnauthorizedOperation: "}, // the credentials are right
			{Fault: fakecloud.Fault{Status: 400, Code: "InstanceLimitExceeded"}, Status: 202, Message: "InstanceLimitExceeded"},
			{Fault: fakecloud.Fault{Status: 400, Code: "VcpuLimitExceeded"}, Status: 202, Message: "VcpuLimitExceeded"},
			{Fault: fakecloud.Fault{Status: 500, Code: "InsufficientInstanceCapacity"}, Status: 202, Message: "Capacity"},
			{Fault: fakecloud.Fault{Status: 400, Code: "InvalidAMIID.NotFound"}, Status: 202, Never: true},
			{Fault: fakecloud.Fault{Status: 400, Code: "InvalidKeyPair.NotFound"}, Status: 202, Never: true},
			{Fault: fakecloud.Fault{Status: 400, Code: "InvalidParameterValue", Message: "the key is " + ec2.Secret}, Status: 202, Never: true, Message: "[redacted]"},
			{Fault: fakecloud.Fault{Status: 503, Code: "RequestLimitExceeded", RetryAfter: "20"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 400, Code: "Throttling"}, Status: 1}, {Fault: fakecloud.Fault{Status: 500}, Status: 1, Message: "InternalError"},
			{Fault: fakecloud.Fault{Status: 503, Code: "Unavailable"}, Status: 1},
		},
		Settings: []cloudtest.Setting{
			{Field: "api_password", Value: "wrong-secret-key", Status: 201, Message: "SignatureDoesNotMatch"}, {Field: "api_password", Status: 201, Message: "api_password"},
			{Field: "endpoint_url", Value: "ftp://cloud.example", Status: 202, Message: "endpoint_url"},
			{Field: "endpoint_url", Value: "https://user:word@cloud.example", Status: 202, Message: "endpoint_url"},
			{Field: "aws_root_ebs_size", Value: "ten", Status: 202, Message: "aws_root_ebs_size"},
			{Field: "aws_root_ebs_volume_type", Value: "golden", Status: 202, Message: "aws_root_ebs_volume_type"},
			{Field: "tags", Value: "no pair", Status: 202, Message: "tags"}, {Field: "ssh_keypair", Value: "other", Status: 202, Message: "InvalidKeyPair.NotFound"},
			{Field: "security_groups", Value: "default,other", Status: 202, Message: "InvalidGroup.NotFound"},
			{Change: func(s *loom.TaskSpec) { s.Image = "ami-unknown" }, Status: 202},
		},
		Flavors: []loom.ProbeFlavor{{ID: ec2.Size, Name: ec2.Size, VCPU: 2, RAM: 2048}}, Images: []loom.ProbeImage{{ID: ec2.Image, Name: "debian-12"}},
		Checks: []string{"sign in", "region", "key pair", "security groups", "sizes", "images"},
		Wrong: []cloudtest.Wrong{{Field: "api_password", Value: "wrong-secret-key", Check: "sign in"}, {Field: "ssh_keypair", Value: "other", Check: "key pair"}, {Field: "ssh_key_resource", Value: "other", Check: "key pair"},
			{Field: "availability_zone", Value: "mars", Check: "availability zone"}, {Field: "subnet_id", Value: "subnet-other", Check: "subnet"}, {Field: "security_groups", Value: "other", Check: "security groups"},
			{Field: "security_group_ids", Value: "sg-other", Check: "security groups"}},
		Offers: []cloudtest.Offer{
			{Kind: loom.OfferFlavor, ID: ec2.Size, OK: true, Message: "2 vCPU, 2048 MB"}, {Kind: loom.OfferFlavor, ID: "t3.small2", OK: false, Message: "InvalidInstanceType"},
			{Kind: loom.OfferImage, ID: ec2.Image, OK: true, Message: "debian-12"}, {Kind: loom.OfferImage, ID: ec2.StoreImage, OK: true, Message: "has it."}, {Kind: loom.OfferImage, ID: "ami-1", OK: false, Message: "InvalidAMIID"},
		},
	}.Run(t)
}

// The console tells the host keys, so none is taken on trust.
func TestHostKeysOfTheConsole(t *testing.T) {
	t.Parallel()
	l := lab(t, true)
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	confirmed, sink := l.Must(spec, loom.ActionConfirm, 0)
	if strings.Contains(sink.Text(), "learned on first use") || fmt.Sprint(confirmed.Result["ssh_host_keys"]) != fmt.Sprint(l.SSH.HostKeys) {
		t.Errorf("host keys are %v\n%s", confirmed.Result["ssh_host_keys"], sink.Text())
	}
}

func TestProviderHostname(t *testing.T) {
	t.Parallel()
	l := lab(t, true)
	l.Fields["provider_hostname"] = "on"
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	if confirmed, _ := l.Must(spec, loom.ActionConfirm, 0); confirmed.Hostname != "ec2-1.compute-1.amazonaws.example" {
		t.Errorf("confirm gave host name %q", confirmed.Hostname)
	}
}

func TestSameTokenOtherParameters(t *testing.T) {
	t.Parallel()
	l := lab(t, false)
	spec := l.Spec(1)
	first, _ := l.Must(spec, loom.ActionCreate, 0)
	// The first look finds nothing, so the request is made with other tags.
	again := l.Spec(1)
	again.Hostname = "renamed.local"
	l.Cloud.Behave(fakecloud.Behaviour{})
	l.Cloud.Inject(fakecloud.Fault{Op: "DescribeInstances", Status: 500})
	second, _ := l.Must(again, loom.ActionCreate, 0)
	if first.Result["providerid"] != second.Result["providerid"] || l.Cloud.Counts().Created != 1 {
		t.Errorf("%v and %v", first.Result, second.Result)
	}
	lagging := lab(t, false)
	lagging.Cloud.Behave(fakecloud.Behaviour{Unlisted: 1})
	one := lagging.Spec(1)
	lagging.Must(one, loom.ActionCreate, 0)
	two := lagging.Spec(1)
	two.Hostname = "renamed.local"
	lagging.Must(two, loom.ActionCreate, 0)
	if one.Results["providerid"] != two.Results["providerid"] || lagging.Cloud.Counts().Created != 1 {
		t.Errorf("a mismatch of parameters gave %v and %v", one.Results, two.Results)
	}
}

func TestRoleOfThisHost(t *testing.T) {
	t.Parallel()
	l := lab(t, false)
	var asked atomic.Int32
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, "token")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			fmt.Fprint(w, "role")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/role"):
			asked.Add(1)
			fmt.Fprintf(w, `{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":%q,"Token":"session","Expiration":"2099-01-01T00:00:00Z"}`, ec2.KeyID, ec2.Secret)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(metadata.Close)
	p := aws.NewWithMetadata(cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: l.Clock.Sleep}}, metadata.URL)
	spec := l.Spec(1)
	spec.Provider.Fields["api_user"], spec.Provider.Fields["api_password"], spec.Provider.Fields["use_instance_role"] = "", "", "true"
	if r, err := p.Create(l.Context(), spec, &cloudtest.Sink{}); err != nil || r.Status != 0 {
		t.Errorf("with the role of the host CREATE gave %+v, %v", r, err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the role was asked for %d times", n)
	}
	// What the role gave is shared by all tasks; a probe asks for it again.
	metadata.Close()
	if r, err := p.Create(l.Context(), l.Spec(2), &cloudtest.Sink{}); err != nil || r.Status != 0 {
		t.Errorf("with the credentials of before CREATE gave %+v, %v", r, err)
	}
	call := l.Call()
	call.Provider = spec.Provider
	if probe, err := p.Probe(l.Context(), call); err != nil || probe.OK || !strings.Contains(fmt.Sprint(probe.Checks), "role") {
		t.Errorf("without a role a probe gave %+v, %v", probe, err)
	}
	gone := aws.NewWithMetadata(cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: l.Clock.Sleep}}, metadata.URL+"/gone")
	if r, err := gone.Create(l.Context(), spec, &cloudtest.Sink{}); err != nil || r.Status != 201 || !strings.Contains(r.Message, "role") {
		t.Errorf("without a role CREATE gave %+v, %v", r, err)
	}
}
