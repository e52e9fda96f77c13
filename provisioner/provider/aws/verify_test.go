package aws_test

import (
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/standin/ec2"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for _, c := range []struct {
		kind   loom.OfferKind
		id     string
		ok     bool
		phrase string
	}{
		{loom.OfferFlavor, ec2.Size, true, "2 vCPU, 2048 MB"},
		{loom.OfferFlavor, "t3.small2", false, "InvalidInstanceType"},
		{loom.OfferImage, ec2.Image, true, "debian-12"},
		{loom.OfferImage, ec2.StoreImage, true, "has it."},
		{loom.OfferImage, "ami-1", false, "InvalidAMIID"},
	} {
		call := l.Call()
		call.Ask = loom.Offer{Kind: c.kind, ID: c.id}
		probe, err := l.Provider.(provider.Verifier).Verify(l.Context(), call)
		if err != nil || probe.OK != c.ok || len(probe.Checks) != 1 || probe.Checks[0].Name != string(c.kind) || !strings.Contains(probe.Checks[0].Message, c.phrase) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.id, probe, err)
		}
	}
	call := l.Call()
	call.Ask = loom.Offer{Kind: loom.OfferFlavor, ID: ec2.Size}
	call.Provider.Fields["endpoint_url"] = "nonsense"
	if probe, err := l.Provider.(provider.Verifier).Verify(l.Context(), call); err != nil || probe.OK || probe.Checks[0].Name != "settings" {
		t.Errorf("with a wrong endpoint: %+v, %v", probe, err)
	}
}
