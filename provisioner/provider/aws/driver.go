package aws

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/remote"
)

// driver makes the calls.
type driver struct {
	*cloud.Session
	client *ec2.Client
}

// Idempotent reports that EC2 remembers client tokens.
func (*driver) Idempotent() bool { return true }

// token is the idempotency key as a client token, which has 64 characters at most.
func token(key string) string {
	if len(key) <= 64 && !strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Find looks by client token.
func (d *driver) Find(ctx context.Context, key string) ([]cloud.Machine, error) {
	return d.list(ctx, types.Filter{Name: sdk.String("client-token"), Values: []string{token(key)}})
}

// List returns the instances of the region.
func (d *driver) List(ctx context.Context) ([]cloud.Machine, error) {
	return d.list(ctx, types.Filter{Name: sdk.String("tag-key"), Values: []string{cloud.LabelKey}})
}

// pageSize is how many instances or images are asked for at once. Without it EC2 gives all.
const pageSize = 500

// list returns the instances of a filter that are not on their way out.
func (d *driver) list(ctx context.Context, filter types.Filter) ([]cloud.Machine, error) {
	pages := ec2.NewDescribeInstancesPaginator(d.client, &ec2.DescribeInstancesInput{Filters: []types.Filter{filter,
		{Name: sdk.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}}}, MaxResults: sdk.Int32(pageSize)})
	var found []cloud.Machine
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				found = append(found, machine(ctx, i))
			}
		}
		cloud.Kept(ctx, len(found))
	}
	return found, nil
}

// Create looks at the image and asks for an instance of it.
func (d *driver) Create(ctx context.Context, spec *loom.TaskSpec) (cloud.Machine, error) {
	image, err := d.image(ctx, spec.Image)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	in, err := request(spec, d.Fields, image)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	data, facts, err := cloud.UserData(ctx, spec, nil)
	if err != nil {
		return cloud.Machine{}, cloud.Before(err)
	}
	if len(data) > 0 {
		in.UserData = sdk.String(base64.StdEncoding.EncodeToString(data))
	}
	out, err := d.client.RunInstances(ctx, in)
	if hasCode(err, "IdempotentParameterMismatch") {
		// The token was used with other parameters: its machine is the node's.
		found, lookErr := d.Find(ctx, spec.IdempotencyKey)
		if lookErr != nil {
			return cloud.Machine{}, lookErr
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	if err != nil {
		return cloud.Machine{}, err
	}
	if len(out.Instances) == 0 {
		return cloud.Machine{}, cloud.Errorf(cloud.Lost, "EC2 answered without an instance")
	}
	m := machine(ctx, out.Instances[0])
	m.Facts = facts
	return m, nil
}

func (d *driver) image(ctx context.Context, id string) (types.Image, error) {
	out, err := d.client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil {
		return types.Image{}, err
	}
	if len(out.Images) == 0 {
		return types.Image{}, cloud.Errorf(cloud.Refused, "region %s has no image %s, or this account may not use it", region(d.Fields), id)
	}
	return out.Images[0], nil
}

// Get looks at an instance.
func (d *driver) Get(ctx context.Context, id string) (cloud.Machine, error) {
	out, err := d.client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return cloud.Machine{}, err
	}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			return machine(ctx, i), nil
		}
	}
	return cloud.Machine{}, cloud.Errorf(cloud.NotFound, "EC2 knows no instance %s", id)
}

// Delete terminates an instance.
func (d *driver) Delete(ctx context.Context, id string) error {
	_, err := d.client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	return err
}

// machine reads an instance. Without a public address its public name may still
// lead to one.
func machine(ctx context.Context, i types.Instance) cloud.Machine {
	m := cloud.Machine{ID: sdk.ToString(i.InstanceId), State: cloud.Pending, Made: sdk.ToTime(i.LaunchTime), Labels: map[string]string{},
		Hostname: sdk.ToString(i.PublicDnsName), Flavor: string(i.InstanceType), Image: sdk.ToString(i.ImageId),
		Addresses: []string{sdk.ToString(i.PublicIpAddress), sdk.ToString(i.PrivateIpAddress)}}
	for _, tag := range i.Tags {
		m.Labels[sdk.ToString(tag.Key)] = sdk.ToString(tag.Value)
	}
	m.Name = m.Labels["Name"]
	public := sdk.ToString(i.PublicIpAddress)
	if public == "" && m.Hostname != "" {
		public = cloud.Resolve(ctx, m.Hostname)
	}
	m.Access, m.Bind = cloud.Addresses(public, sdk.ToString(i.PrivateIpAddress))
	if i.State != nil {
		m.Detail = string(i.State.Name)
		switch i.State.Name {
		case types.InstanceStateNamePending:
		case types.InstanceStateNameRunning:
			m.State = cloud.Running
		case types.InstanceStateNameShuttingDown:
			m.State = cloud.Leaving
		case types.InstanceStateNameTerminated:
			m.State = cloud.Gone
		case types.InstanceStateNameStopped:
			m.State = cloud.Stopped
		case types.InstanceStateNameStopping:
			m.State = cloud.Failed
		}
	}
	if m.State != cloud.Pending && m.State != cloud.Running && i.StateReason != nil {
		m.Detail += " (" + sdk.ToString(i.StateReason.Message) + ")"
	}
	return m
}

// Reboot asks for the start or the reset of an instance. EC2 first asks the instance itself
// to restart, and resets it when that takes some minutes.
func (d *driver) Reboot(ctx context.Context, m cloud.Machine) (err error) {
	if m.State == cloud.Stopped {
		_, err = d.client.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{m.ID}})
	} else {
		_, err = d.client.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{m.ID}})
	}
	return err
}

// Finish reads the host keys, and drops the host name that the fields do not ask for.
func (d *driver) Finish(ctx context.Context, m *cloud.Machine) (cloud.Disks, error) {
	if !d.Fields.Switch("provider_hostname", false) {
		m.Hostname = ""
	} else if m.Hostname == "" {
		m.Hostname = cloud.ReverseName(ctx, m.Access)
	}
	if d.Task.Results["ssh_host_keys"] == nil {
		_ = d.Once(ctx, func(ctx context.Context) error { // without them they are learned
			m.HostKeys = d.consoleKeys(ctx, m.ID)
			return nil
		})
	}
	return cloud.Disks{Grow: true, Spare: ownDisk}, nil
}

const (
	keysBegin = "-----BEGIN SSH HOST KEY KEYS-----"
	keysEnd   = "-----END SSH HOST KEY KEYS-----"
)

// consoleKeys reads the host keys that cloud-init printed on the console, if it
// has printed them already; else nil, and they are learned on first use.
func (d *driver) consoleKeys(ctx context.Context, id string) map[string]string {
	out, err := d.client.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id, Latest: sdk.Bool(true)})
	if err != nil {
		return nil // not every instance type has it, nor every role
	}
	text, err := base64.StdEncoding.DecodeString(sdk.ToString(out.Output))
	if err != nil {
		return nil
	}
	return parseKeys(string(text))
}

// parseKeys reads the last block of host keys of a console.
func parseKeys(console string) map[string]string {
	begin := strings.LastIndex(console, keysBegin)
	if begin < 0 {
		return nil
	}
	block, _, whole := strings.Cut(console[begin+len(keysBegin):], keysEnd)
	if !whole {
		return nil
	}
	keys := map[string]string{}
	for line := range strings.Lines(block) {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			continue
		}
		if kind, encoded := remote.EncodeHostKey(key); kind == "ed25519" || kind == "ecdsa" || kind == "rsa" {
			keys[kind] = encoded
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return keys
}

var xenDisk = regexp.MustCompile(`^/dev/xvd[b-z]$`)

// ownDisk knows the data disks of EC2's machines.
func ownDisk(b cloud.Block) bool {
	return strings.HasPrefix(b.Model, "Amazon E") || xenDisk.MatchString(b.Path)
}
