package aws_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/ec2"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *ec2.EC2) {
	t.Helper()
	dialect := ec2.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return aws.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = ec2.Size, ec2.Image, "RunInstances"
	l.Secrets = []string{ec2.Secret, "wrong-secret-key"}
	l.Throttle = standin.Fault{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	l.Fields = map[string]any{"api_user": ec2.KeyID, "api_password": ec2.Secret, "ssh_keypair": ec2.KeyPair, "ssh_key_resource": cloudtest.KeyResource,
		"aws_region": "us-east-1", "security_groups": "default", "subnet_id": "", "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-secret-key" }
	return l, dialect
}

func TestWalls(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Walls()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Conform()
}

func TestLife(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	spec := l.Spec(1)
	made, sink := l.Must(spec, loom.ActionCreate, 0)
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != made.Result["providerid"] {
		t.Errorf("reported %v, gave %v", facts, made.Result)
	}
	if auth := made.Result["ssh-auth"].(map[string]any); auth["identityfile"] != "ssh_keys/lab-key" || auth["user"] != "tester" {
		t.Errorf("ssh-auth is %v", auth)
	}
	confirmed, sink := l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != "192.0.2.7" || confirmed.Hostname != "" {
		t.Errorf("confirm gave %+v", confirmed)
	}
	// The console told the keys, so none was taken on trust.
	if strings.Contains(sink.Text(), "learned on first use") || fmt.Sprint(confirmed.Result["ssh_host_keys"]) != fmt.Sprint(l.SSH.HostKeys) {
		t.Errorf("host keys are %v\n%s", confirmed.Result["ssh_host_keys"], sink.Text())
	}
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 1 || list[0].Key != spec.IdempotencyKey || list[0].Node != spec.Node || list[0].Tenant != "Acme" || list[0].Cluster != "00000007" || list[0].Name != spec.Hostname {
		t.Errorf("list gave %+v, %v", list, err)
	}
	gone, _ := l.Must(spec, loom.ActionDelete, 0)
	if value, there := gone.Result["ssh_host_keys"]; !there || value != nil {
		t.Errorf("delete does not clear the facts: %v", gone.Result)
	}
	if list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err != nil || len(list) != 0 {
		t.Errorf("list gave %+v, %v", list, err)
	}
}

func TestProviderHostname(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Fields["provider_hostname"] = "on"
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	if confirmed, _ := l.Must(spec, loom.ActionConfirm, 0); confirmed.Hostname != "ec2-1.compute-1.amazonaws.example" {
		t.Errorf("confirm gave host name %q", confirmed.Hostname)
	}
}

func TestLostAnswersMakeOneMachine(t *testing.T) {
	t.Parallel()
	for _, f := range []standin.Fault{{Lost: true, Times: 1}, {Lost: true, Times: 3}, {Garbled: true}, {Status: 500, Times: 2}, {Status: 503, Code: "Unavailable"}} {
		l, _ := lab(t, false)
		f.Op = "RunInstances"
		l.Cloud.Inject(f)
		spec := l.Spec(1)
		result, _ := l.Must(spec, loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Created != 1 || len(l.Cloud.Leaked(result.Result["providerid"].(string))) != 0 {
			t.Errorf("%+v: %+v", f, n)
		}
	}
}

// A listing that lags must not matter: the token does not.
func TestListingThatLags(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Unlisted: 100})
	spec := l.Spec(1)
	first, _ := l.Must(spec, loom.ActionCreate, 0)
	second, _ := l.Must(spec, loom.ActionCreate, 0)
	if first.Result["providerid"] != second.Result["providerid"] || l.Cloud.Counts().Created != 1 {
		t.Errorf("%v and %v, %+v", first.Result, second.Result, l.Cloud.Counts())
	}
}

func TestSameTokenOtherParameters(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	spec := l.Spec(1)
	first, _ := l.Must(spec, loom.ActionCreate, 0)
	// The first look finds nothing, so the request is made with other tags.
	again := l.Spec(1)
	again.Hostname = "renamed.local"
	l.Cloud.Behave(standin.Behaviour{})
	l.Cloud.Inject(standin.Fault{Op: "DescribeInstances", Status: 500})
	second, _ := l.Must(again, loom.ActionCreate, 0)
	if first.Result["providerid"] != second.Result["providerid"] || l.Cloud.Counts().Created != 1 {
		t.Errorf("%v and %v", first.Result, second.Result)
	}
	lagging, _ := lab(t, false)
	lagging.Cloud.Behave(standin.Behaviour{Unlisted: 1})
	one := lagging.Spec(1)
	lagging.Must(one, loom.ActionCreate, 0)
	two := lagging.Spec(1)
	two.Hostname = "renamed.local"
	lagging.Must(two, loom.ActionCreate, 0)
	if one.Results["providerid"] != two.Results["providerid"] || lagging.Cloud.Counts().Created != 1 {
		t.Errorf("a mismatch of parameters gave %v and %v", one.Results, two.Results)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Leaving: 3})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	id := spec.Results["providerid"]
	l.Must(spec, loom.ActionDelete, 0)
	if m := l.Cloud.Machines()[0]; m.State != standin.Gone {
		t.Errorf("delete did not wait: the machine is %s", m.State)
	}
	spec.Results["providerid"] = id
	l.Must(spec, loom.ActionDelete, 0) // twice
	for _, other := range []string{"", "i-00000000000000099", "no instance"} {
		never := l.Spec(9)
		never.Results["providerid"] = other
		l.Must(never, loom.ActionDelete, 0)
	}
	forgotten := l.Spec(2)
	l.Must(forgotten, loom.ActionCreate, 0)
	forgotten.Results = map[string]any{}
	l.Must(forgotten, loom.ActionDelete, 0)
	if n := l.Cloud.Counts(); n.Live != 0 {
		t.Errorf("delete by key left %+v", n)
	}
	// Wrong credentials: a failure where there was a machine, else nothing to do.
	third := l.Spec(3)
	l.Must(third, loom.ActionCreate, 0)
	l.Refuse(third.Provider.Fields)
	if r, _ := l.Must(third, loom.ActionDelete, 1); !strings.Contains(r.Message, "credentials") || third.Results["providerid"] == nil {
		t.Errorf("wrong credentials gave %+v", r)
	}
	never := l.Spec(4)
	l.Refuse(never.Provider.Fields)
	l.Must(never, loom.ActionDelete, 0)
}

func TestTwoNodesAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	specs := []*loom.TaskSpec{l.Spec(1), l.Spec(2), l.Spec(1)}
	var wg sync.WaitGroup
	for _, spec := range specs {
		wg.Go(func() {
			if r, _, err := l.Do(l.Context(), spec, loom.ActionCreate); err != nil || r.Status != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if n := l.Cloud.Counts(); n.Live != 2 || n.Doubles != 0 || specs[0].Results["providerid"] != specs[2].Results["providerid"] {
		t.Errorf("%+v", n)
	}
}

func TestMachinesThatFail(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for i, c := range []struct {
		b       standin.Behaviour
		message string
	}{
		{standin.Behaviour{Break: "Server.InsufficientInstanceCapacity: none left"}, "none left"},
		{standin.Behaviour{Pending: 1 << 30}, "did not run within 600 s"},
		{standin.Behaviour{NoAddress: true}, "no address"},
		{standin.Behaviour{Unseen: 1 << 30}, "quota"},
	} {
		l.Cloud.Behave(c.b)
		spec := l.Spec(10 + i)
		l.Must(spec, loom.ActionCreate, 0)
		if r, sink := l.Must(spec, loom.ActionConfirm, 1); !strings.Contains(r.Message, c.message) || r.Retryable != nil {
			t.Errorf("%+v gave %+v\n%s", c.b, r, sink.Text())
		}
		l.Cloud.Heal()
		l.Must(spec, loom.ActionDelete, 0)
	}
	if r, _ := l.Must(l.Spec(5), loom.ActionConfirm, 1); !strings.Contains(r.Message, "no machine") {
		t.Errorf("a node without a machine gave %+v", r)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Pending: 1 << 30})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	abort := errors.New("somebody aborted")
	ctx, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	sink := &cloudtest.Sink{On: func(text string) { cancel(abort) }}
	if _, err := l.Provider.Confirm(ctx, spec, sink); !errors.Is(err, abort) {
		t.Errorf("a cancelled confirm gave %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	var cases []cloudtest.Refusal
	for _, code := range []string{"AuthFailure", "UnauthorizedOperation", "InvalidClientTokenId", "SignatureDoesNotMatch"} {
		status, says := 201, "the cloud refuses the credentials: "+code
		if code == "UnauthorizedOperation" { // the credentials are right, but may not do it
			status, says = 202, code+": "
		}
		cases = append(cases, cloudtest.Refusal{Fault: standin.Fault{Status: 403, Code: code}, Status: status, Never: true, Message: says})
	}
	for _, code := range []string{"InstanceLimitExceeded", "VcpuLimitExceeded"} {
		cases = append(cases, cloudtest.Refusal{Fault: standin.Fault{Status: 400, Code: code}, Status: 202, Message: code})
	}
	cases = append(cases,
		cloudtest.Refusal{Fault: standin.Fault{Status: 500, Code: "InsufficientInstanceCapacity"}, Status: 202, Message: "Capacity"},
		cloudtest.Refusal{Fault: standin.Fault{Status: 400, Code: "InvalidAMIID.NotFound"}, Status: 202, Never: true},
		cloudtest.Refusal{Fault: standin.Fault{Status: 400, Code: "InvalidKeyPair.NotFound"}, Status: 202, Never: true},
		cloudtest.Refusal{Fault: standin.Fault{Status: 400, Code: "InvalidParameterValue", Message: "the key is " + ec2.Secret}, Status: 202, Never: true, Message: "[redacted]"},
		cloudtest.Refusal{Fault: standin.Fault{Status: 503, Code: "RequestLimitExceeded", RetryAfter: "20"}, Status: 1},
		cloudtest.Refusal{Fault: standin.Fault{Status: 400, Code: "Throttling"}, Status: 1},
		cloudtest.Refusal{Fault: standin.Fault{Status: 500}, Status: 1, Message: "InternalError"},
		cloudtest.Refusal{Fault: standin.Fault{Status: 503, Code: "Unavailable"}, Status: 1},
	)
	l.Refusals(cases)
}

func TestManyPages(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.PageSize = 2
	for n := range 5 {
		l.Must(l.Spec(n), loom.ActionCreate, 0)
	}
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 5 {
		t.Errorf("list gave %d machines, %v", len(list), err)
	}
	l.Cloud.Inject(standin.Fault{Op: "DescribeInstances", Status: 403})
	if _, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err == nil {
		t.Error("a list that is not whole is no error")
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Flavors) != 1 || probe.Flavors[0] != (loom.ProbeFlavor{ID: ec2.Size, Name: ec2.Size, VCPU: 2, RAM: 2048}) ||
		len(probe.Images) != 1 || probe.Images[0].ID != ec2.Image {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, c := range map[string]struct{ value, check string }{
		"api_password": {"wrong-secret-key", "sign in"}, "ssh_keypair": {"other", "key pair"}, "availability_zone": {"mars", "availability zone"}, "ssh_key_resource": {"other", "key pair"},
		"subnet_id": {"subnet-other", "subnet"}, "security_groups": {"other", "security groups"}, "security_group_ids": {"sg-other", "security groups"},
		"endpoint_url": {"nonsense", "settings"},
	} {
		call := l.Call()
		call.Provider.Fields[field] = c.value
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call)
		failed := ""
		for _, check := range probe.Checks {
			if !check.OK {
				failed += check.Name
			}
			if strings.Contains(check.Message, "wrong-secret-key") {
				t.Errorf("a check says the secret: %+v", check)
			}
		}
		if err != nil || probe.OK || failed != c.check {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
}

func TestRoleOfThisHost(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
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

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Unreachable()
	l.Passes("sign in", "region", "key pair", "security groups", "sizes", "images")
}

func TestManyNodes(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Many("", nil)
}

func TestProbeComparesKeys(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.ComparesKeys(func(public string) { dialect.PublicKey = public })
}
