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

// Verify looks up one size or image; images of others are not in the list of a probe.
func (a *AWS) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	s := a.options.Ask(Type(), call, classify)
	d, err := a.dial(ctx, s)
	if err != nil {
		return s.Failed(ctx, err), ctx.Err()
	}
	return s.LookUp(ctx, call.Ask, func(ctx context.Context) (string, error) {
		if call.Ask.Kind == loom.OfferImage {
			image, err := d.image(ctx, call.Ask.ID)
			return sdk.ToString(image.Name), err
		}
		return d.size(ctx, call.Ask.ID)
	})
}

// size describes a size of the region.
func (d *driver) size(ctx context.Context, id string) (string, error) {
	out, err := d.client.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(id)}})
	if err != nil {
		return "", err
	}
	if len(out.InstanceTypes) == 0 {
		return "", cloud.Errorf(cloud.Refused, "region %s has no instance type %s", region(d.fields), id)
	}
	t := out.InstanceTypes[0]
	if t.VCpuInfo == nil || t.MemoryInfo == nil {
		return "", nil
	}
	return fmt.Sprintf("%d vCPU, %d MB", sdk.ToInt32(t.VCpuInfo.DefaultVCpus), sdk.ToInt64(t.MemoryInfo.SizeInMiB)), nil
}
