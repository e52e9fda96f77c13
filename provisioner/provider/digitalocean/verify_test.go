package digitalocean_test

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/standin/ocean"
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
		{loom.OfferFlavor, ocean.Size, true, "Basic"},
		{loom.OfferFlavor, "s-8vcpu-16gb", false, "offers no size"},
		{loom.OfferImage, ocean.Image, true, "Debian 12 x64"},
		{loom.OfferImage, fmt.Sprint(ocean.ImageID), true, "Debian 12 x64"},
		{loom.OfferImage, "market-elsewhere", false, "is not in region"},
		{loom.OfferImage, "nothing", false, "no such image"},
	} {
		call := l.Call()
		call.Ask = loom.Offer{Kind: c.kind, ID: c.id}
		probe, err := l.Provider.(provider.Verifier).Verify(l.Context(), call)
		if err != nil || probe.OK != c.ok || len(probe.Checks) != 1 || probe.Checks[0].Name != string(c.kind) || !strings.Contains(probe.Checks[0].Message, c.phrase) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.id, probe, err)
		}
	}
	call := l.Call()
	call.Ask = loom.Offer{Kind: loom.OfferFlavor, ID: ocean.Size}
	call.Provider.Fields["endpoint_url"] = "nonsense"
	if probe, err := l.Provider.(provider.Verifier).Verify(l.Context(), call); err != nil || probe.OK || probe.Checks[0].Name != "settings" {
		t.Errorf("with a wrong endpoint: %+v, %v", probe, err)
	}
}
