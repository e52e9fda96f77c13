package aws_test

import (
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud/ec2"
	"loom/provisioner/provider/cloud"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields map[string]any
		image  string
		want   string
		lacks  string
	}{
		"by name": {nil, "", "SecurityGroup.1=default BlockDeviceMapping.1.DeviceName=/dev/xvda BlockDeviceMapping.1.Ebs.VolumeSize=10 BlockDeviceMapping.1.Ebs.VolumeType=gp3 BlockDeviceMapping.1.Ebs.DeleteOnTermination=true KeyName=lab InstanceType=t3.small",
			"SubnetId NetworkInterface.1.DeviceIndex Placement.AvailabilityZone IamInstanceProfile.Name"},
		"in a VPC": {map[string]any{"subnet_id": ec2.Subnet, "security_group_ids": ec2.GroupID + ", "}, "",
			"NetworkInterface.1.DeviceIndex=0 NetworkInterface.1.AssociatePublicIpAddress=true NetworkInterface.1.SubnetId=" + ec2.Subnet + " NetworkInterface.1.SecurityGroupId.1=" + ec2.GroupID, "SubnetId SecurityGroup.1 SecurityGroupId.1"},
		"in a VPC, private": {map[string]any{"subnet_id": ec2.Subnet, "security_group_ids": ec2.GroupID, "associate_public_ip": "false", "dedicated_instance": true}, "",
			"SubnetId=" + ec2.Subnet + " SecurityGroupId.1=" + ec2.GroupID + " Placement.Tenancy=dedicated", "NetworkInterface.1.DeviceIndex SecurityGroup.1"},
		"by id in the default VPC": {map[string]any{"security_group_ids": ec2.GroupID}, "", "SecurityGroupId.1=" + ec2.GroupID, "SecurityGroup.1"},
		"placed": {map[string]any{"availability_zone": "us-east-1a", "placement_group": "near", "iam_instance_profile": "web", "dedicated_instance": true}, "",
			"Placement.AvailabilityZone=us-east-1a Placement.GroupName=near IamInstanceProfile.Name=web", "Placement.Tenancy"},
		"profile by ARN": {map[string]any{"iam_instance_profile": "arn:aws:iam::1:instance-profile/web"}, "", "IamInstanceProfile.Arn=arn:aws:iam::1:instance-profile/web", "IamInstanceProfile.Name"},
		"root volume":    {map[string]any{"aws_root_ebs_size": 40.0, "aws_root_ebs_volume_type": "io2", "aws_root_ebs_delete_on_term": "false"}, "", "BlockDeviceMapping.1.Ebs.VolumeSize=40 BlockDeviceMapping.1.Ebs.VolumeType=io2 BlockDeviceMapping.1.Ebs.Iops=2000 BlockDeviceMapping.1.Ebs.DeleteOnTermination=false", ""},
		"old providers":  {map[string]any{"aws_ebs_size": "30", "aws_ebs_delete_on_term": "false", "tags": []any{"team=red", "Name=mine"}}, "", "BlockDeviceMapping.1.Ebs.VolumeSize=30 BlockDeviceMapping.1.Ebs.DeleteOnTermination=false", ""},
		"too small":      {map[string]any{"aws_root_ebs_size": "1"}, "", "BlockDeviceMapping.1.Ebs.VolumeSize=8", ""},
		"instance store": {nil, ec2.StoreImage, "ImageId=" + ec2.StoreImage, "BlockDeviceMapping.1.DeviceName"},
	} {
		l := lab(t, false)
		for field, value := range c.fields {
			l.Fields[field] = value
		}
		spec := l.Spec(1)
		if c.image != "" {
			spec.Image = c.image
		}
		l.Must(spec, loom.ActionCreate, 0)
		form, _ := url.ParseQuery(l.Cloud.Calls("RunInstances")[0].Body)
		for pair := range strings.FieldsSeq("ClientToken=" + spec.IdempotencyKey + " MinCount=1 MaxCount=1 " + c.want) {
			if key, value, _ := strings.Cut(pair, "="); form.Get(key) != value {
				t.Errorf("%s: %s is %q, not %q", name, key, form.Get(key), value)
			}
		}
		for key := range strings.FieldsSeq(c.lacks) {
			if form.Has(key) {
				t.Errorf("%s: %s is %q", name, key, form.Get(key))
			}
		}
		tags := l.Cloud.Machines()[0].Tags
		if tags["Name"] != spec.Hostname || tags[cloud.LabelNode] != string(spec.Node) || name == "old providers" && tags["team"] != "red" {
			t.Errorf("%s: tags %v", name, tags)
		}
	}
}
