package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Check looks at credentials, region, key pair, zone and network.
func (d *driver) Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool {
	if !d.Look(ctx, probe, cloud.StepSignIn, "EC2 takes the credentials.", func(ctx context.Context) error {
		_, err := d.client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
		return err
	}) {
		return false
	}
	d.checkRegion(ctx, probe)
	d.Choices(ctx, probe, "ssh_keypair", d.keyPairs)
	d.Choices(ctx, probe, "availability_zone", d.zones)
	d.CheckPair(ctx, call, probe, "EC2", d.keyPair)
	if zone := d.Fields.Text("availability_zone"); zone != "" {
		d.Look(ctx, probe, "availability zone", "The zone “"+zone+"” exists.", func(ctx context.Context) error { return d.zone(ctx, zone) })
	}
	d.checkNetwork(ctx, probe)
	return true
}

// checkRegion looks whether the account may use the region. Who may not list regions has at
// least been answered by this one.
func (d *driver) checkRegion(ctx context.Context, probe *loom.Probe) {
	name, has := region(d.Fields), []string(nil)
	err := d.Call(ctx, func(ctx context.Context) error {
		got, err := d.client.DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
		if err != nil {
			return err
		}
		has = nil
		for _, r := range got.Regions {
			has = append(has, sdk.ToString(r.RegionName))
		}
		return nil
	})
	slices.Sort(has)
	for _, r := range has {
		probe.Offer("aws_region", r, "")
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && d.Error(err).Kind != cloud.Refused && d.Error(err).Kind != cloud.Credentials:
		probe.Check(cloud.StepRegion, false, cloud.Sentence(d.Error(err).Message))
	case err == nil && !slices.Contains(has, name):
		probe.Check(cloud.StepRegion, false, fmt.Sprintf("The account has no region “%s” (provider field aws_region); choose one of %s.", name, strings.Join(has, ", ")))
	default:
		probe.Check(cloud.StepRegion, true, "The region is "+name+".")
	}
}

// keyPairs lists those of the region.
func (d *driver) keyPairs(ctx context.Context) (found []loom.ProbeChoice, err error) {
	got, err := d.client.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{})
	if err != nil {
		return nil, err
	}
	for _, k := range got.KeyPairs {
		found = append(found, loom.ProbeChoice{ID: sdk.ToString(k.KeyName), Name: sdk.ToString(k.KeyFingerprint)})
	}
	return found, nil
}

// zones lists those of the region.
func (d *driver) zones(ctx context.Context) (found []loom.ProbeChoice, err error) {
	got, err := d.client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, err
	}
	for _, z := range got.AvailabilityZones {
		found = append(found, loom.ProbeChoice{ID: sdk.ToString(z.ZoneName)})
	}
	return found, nil
}

// keyPair looks for a key pair of the region.
func (d *driver) keyPair(ctx context.Context, name string) (cloud.Pair, error) {
	got, err := d.client.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{name}, IncludePublicKey: sdk.Bool(true)})
	if err != nil {
		return cloud.Pair{}, err
	}
	if len(got.KeyPairs) == 0 {
		return cloud.Pair{}, cloud.Errorf(cloud.Refused, "EC2 has no key pair “%s” in region %s (provider field ssh_keypair)", name, region(d.Fields))
	}
	return cloud.Pair{Name: name, Public: sdk.ToString(got.KeyPairs[0].PublicKey)}, nil
}

// zone looks whether the region has an availability zone for this account.
func (d *driver) zone(ctx context.Context, name string) error {
	got, err := d.client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return err
	}
	var has []string
	for _, z := range got.AvailabilityZones {
		if sdk.ToString(z.ZoneName) == name {
			return nil
		}
		has = append(has, sdk.ToString(z.ZoneName))
	}
	return cloud.Errorf(cloud.Refused, "region %s has no availability zone “%s” (provider field availability_zone); choose one of %s", region(d.Fields), name, strings.Join(has, ", "))
}

// checkNetwork looks whether what the fields name is there.
func (d *driver) checkNetwork(ctx context.Context, probe *loom.Probe) {
	subnet, groups, names := d.Fields.Text("subnet_id"), d.Fields.List("security_group_ids"), d.Fields.List("security_groups")
	if subnet != "" {
		d.Look(ctx, probe, "subnet", "The subnet "+subnet+" exists.", func(ctx context.Context) error {
			_, err := d.client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet}})
			return err
		})
	}
	in := &ec2.DescribeSecurityGroupsInput{GroupIds: groups}
	if subnet == "" && len(groups) == 0 {
		in.GroupNames = names
	}
	if wanted := append(slices.Clone(in.GroupIds), in.GroupNames...); len(wanted) > 0 {
		d.Look(ctx, probe, "security groups", "There: "+strings.Join(wanted, ", ")+".", func(ctx context.Context) error {
			_, err := d.client.DescribeSecurityGroups(ctx, in)
			return err
		})
	}
}

// Flavors lists the present sizes of the region.
func (d *driver) Flavors(ctx context.Context) (flavors []loom.ProbeFlavor, err error) {
	pages := ec2.NewDescribeInstanceTypesPaginator(d.client, &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{{Name: sdk.String("current-generation"), Values: []string{"true"}}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range page.InstanceTypes {
			f := loom.ProbeFlavor{ID: string(t.InstanceType), Name: string(t.InstanceType)}
			if t.VCpuInfo != nil {
				f.VCPU = int(sdk.ToInt32(t.VCpuInfo.DefaultVCpus))
			}
			if t.MemoryInfo != nil {
				f.RAM = int(sdk.ToInt64(t.MemoryInfo.SizeInMiB))
			}
			flavors = append(flavors, f)
		}
	}
	slices.SortFunc(flavors, func(a, b loom.ProbeFlavor) int { return strings.Compare(a.ID, b.ID) })
	return flavors, nil
}

// Images lists the account's own images; there are far too many of others.
func (d *driver) Images(ctx context.Context) (images []loom.ProbeImage, err error) {
	pages := ec2.NewDescribeImagesPaginator(d.client, &ec2.DescribeImagesInput{Owners: []string{"self"}, MaxResults: sdk.Int32(pageSize)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Images {
			images = append(images, loom.ProbeImage{ID: sdk.ToString(i.ImageId), Name: sdk.ToString(i.Name)})
		}
	}
	slices.SortFunc(images, func(a, b loom.ProbeImage) int { return strings.Compare(a.ID, b.ID) })
	return images, nil
}
