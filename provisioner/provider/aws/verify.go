package aws

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Describe looks up a size or image; images of others are not in the lists.
func (d *driver) Describe(ctx context.Context, offer loom.Offer) (string, error) {
	if offer.Kind == loom.OfferImage {
		image, err := d.image(ctx, offer.ID)
		return sdk.ToString(image.Name), err
	}
	return d.size(ctx, offer.ID)
}

// size describes a size of the region.
func (d *driver) size(ctx context.Context, id string) (string, error) {
	out, err := d.client.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(id)}})
	if err != nil {
		return "", err
	}
	if len(out.InstanceTypes) == 0 {
		return "", cloud.Errorf(cloud.Refused, "region %s has no instance type %s", region(d.Fields), id)
	}
	t := out.InstanceTypes[0]
	if t.VCpuInfo == nil || t.MemoryInfo == nil {
		return "", nil
	}
	return fmt.Sprintf("%d vCPU, %d MB", sdk.ToInt32(t.VCpuInfo.DefaultVCpus), sdk.ToInt64(t.MemoryInfo.SizeInMiB)), nil
}
