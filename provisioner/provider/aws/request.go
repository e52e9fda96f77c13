package aws

import (
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// rootLeast is the size of a root volume where no field says so, in GB; it is
// never smaller than the image's own.
const rootLeast = 10

// request makes the call that makes the machine.
func request(spec *loom.TaskSpec, f cloud.Fields, image types.Image) (*ec2.RunInstancesInput, error) {
	tags, err := tagsOf(spec, f)
	if err != nil {
		return nil, err
	}
	in := &ec2.RunInstancesInput{
		MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ClientToken: sdk.String(token(spec.IdempotencyKey)),
		ImageId: &spec.Image, InstanceType: types.InstanceType(spec.Flavor),
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tags}, {ResourceType: types.ResourceTypeVolume, Tags: tags},
		},
	}
	if key := f.Text("ssh_keypair"); key != "" {
		in.KeyName = &key
	}
	if profile := f.Text("iam_instance_profile"); strings.HasPrefix(profile, "arn:") {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: &profile}
	} else if profile != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: &profile}
	}
	if in.BlockDeviceMappings, err = rootVolume(f, image); err != nil {
		return nil, err
	}
	connect(in, f)
	place(in, f)
	return in, nil
}

// rootVolume says how large and of what kind the root volume is. Images without
// one on EBS have none.
func rootVolume(f cloud.Fields, image types.Image) ([]types.BlockDeviceMapping, error) {
	size, err := f.Number("aws_ebs_size", rootLeast, 65536)
	if err != nil {
		return nil, err
	}
	if size, err = f.Number("aws_root_ebs_size", size, 65536); err != nil {
		return nil, err
	}
	if image.RootDeviceType != types.DeviceTypeEbs || sdk.ToString(image.RootDeviceName) == "" {
		return nil, nil
	}
	kind := types.VolumeTypeGp3
	if text := f.Text("aws_root_ebs_volume_type"); text != "" {
		kind = types.VolumeType(text)
		if !slices.Contains(kind.Values(), kind) {
			return nil, cloud.Errorf(cloud.Refused, "provider field aws_root_ebs_volume_type is %.50q; gp3, gp2, standard and io2 are known", text)
		}
	}
	for _, device := range image.BlockDeviceMappings {
		if sdk.ToString(device.DeviceName) == sdk.ToString(image.RootDeviceName) && device.Ebs != nil {
			size = max(size, int(sdk.ToInt32(device.Ebs.VolumeSize)))
		}
	}
	volume := &types.EbsBlockDevice{VolumeSize: sdk.Int32(int32(size)), VolumeType: kind,
		DeleteOnTermination: sdk.Bool(f.Switch("aws_root_ebs_delete_on_term", f.Switch("aws_ebs_delete_on_term", true)))}
	if kind == types.VolumeTypeIo1 || kind == types.VolumeTypeIo2 {
		// These have to be told; 50 per GB is what every size allows.
		volume.Iops = sdk.Int32(int32(min(max(100, 50*size), 3000)))
	}
	return []types.BlockDeviceMapping{{DeviceName: image.RootDeviceName, Ebs: volume}}, nil
}

// connect chooses the network. With a public address in a VPC, subnet and groups
// have to be those of the first interface.
func connect(in *ec2.RunInstancesInput, f cloud.Fields) {
	names, groups, subnet := f.List("security_groups"), f.List("security_group_ids"), f.Text("subnet_id")
	switch {
	case subnet != "" && f.Switch("associate_public_ip", true):
		in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: sdk.Int32(0), AssociatePublicIpAddress: sdk.Bool(true), DeleteOnTermination: sdk.Bool(true), SubnetId: &subnet, Groups: groups,
		}}
	case subnet != "":
		in.SubnetId, in.SecurityGroupIds = &subnet, groups
	case len(groups) > 0 && slices.Equal(names, []string{"default"}):
		in.SecurityGroupIds = groups // the name is only what the form begins with
	default:
		in.SecurityGroups, in.SecurityGroupIds = names, groups
	}
}

func place(in *ec2.RunInstancesInput, f cloud.Fields) {
	var p types.Placement
	zone, group := f.Text("availability_zone"), f.Text("placement_group")
	dedicated := f.Text("subnet_id") != "" && f.Switch("dedicated_instance", false)
	if zone != "" {
		p.AvailabilityZone = &zone
	}
	if group != "" {
		p.GroupName = &group
	}
	if dedicated {
		p.Tenancy = types.TenancyDedicated
	}
	if zone != "" || group != "" || dedicated {
		in.Placement = &p
	}
}

// tagsOf returns the labels, the name and the provider's own tags, which cannot
// replace them.
func tagsOf(spec *loom.TaskSpec, f cloud.Fields) ([]types.Tag, error) {
	all := map[string]string{}
	for _, pair := range f.List("tags") {
		key, value, ok := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.HasPrefix(key, "aws:") {
			return nil, cloud.Errorf(cloud.Refused, "provider field tags has %.100q; give key=value, separated by commas, with keys that do not begin with aws:", pair)
		}
		all[key] = strings.TrimSpace(value)
	}
	all["Name"] = spec.Hostname
	maps.Copy(all, cloud.LabelsOf(spec))
	var tags []types.Tag
	for _, key := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, types.Tag{Key: sdk.String(key), Value: sdk.String(all[key])})
	}
	return tags, nil
}
