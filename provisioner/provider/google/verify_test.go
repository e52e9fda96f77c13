package google_test

import (
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/standin/gce"
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
		{loom.OfferFlavor, gce.Size, true, "2 vCPU, 2 GB RAM"},
		{loom.OfferFlavor, "e2-huge", false, "no such size"},
		{loom.OfferImage, gce.Image, true, "has it."},
		{loom.OfferImage, gce.PublicImage, true, "has it."},
		{loom.OfferImage, "family/debian-cloud/debian-12", true, gce.PublicImage},
		{loom.OfferImage, "family/debian-cloud/debian-99", false, "no such image"},
		{loom.OfferImage, "projects/debian-cloud/global/images/nothing", false, "no such image"},
		{loom.OfferImage, "nothing", false, "have an image"},
		{loom.OfferImage, "a/b", false, "is no image"},
	} {
		call := l.Call()
		call.Ask = loom.Offer{Kind: c.kind, ID: c.id}
		probe, err := l.Provider.(provider.Verifier).Verify(l.Context(), call)
		if err != nil || probe.OK != c.ok || len(probe.Checks) != 1 || probe.Checks[0].Name != string(c.kind) || !strings.Contains(probe.Checks[0].Message, c.phrase) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.id, probe, err)
		}
	}
	call := l.Call()
	call.Ask = loom.Offer{Kind: loom.OfferFlavor, ID: gce.Size}
	call.Provider.Fields["endpoint_url"] = "nonsense"
	if probe, err := l.Provider.(provider.Verifier).Verify(l.Context(), call); err != nil || probe.OK || probe.Checks[0].Name != "settings" {
		t.Errorf("with a wrong endpoint: %+v, %v", probe, err)
	}
}
