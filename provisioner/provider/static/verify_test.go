package static

import (
	"strings"
	"testing"

	"loom/app/loom"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hosts  string
		ask    loom.Offer
		ok     bool
		phrase string
	}{
		{"10.0.0.1 flavor=big image=deb\n10.0.0.2", loom.Offer{Kind: loom.OfferFlavor, ID: "big"}, true, "2 of 2"},
		{"10.0.0.1 flavor=big image=deb\n10.0.0.2", loom.Offer{Kind: loom.OfferFlavor, ID: "small"}, true, "1 of 2"},
		{"10.0.0.1 flavor=big image=deb", loom.Offer{Kind: loom.OfferImage, ID: "deb"}, true, "1 of 1"},
		{"10.0.0.1 flavor=big image=deb", loom.Offer{Kind: loom.OfferImage, ID: "big"}, false, "None of the 1"},
		{"", loom.Offer{Kind: loom.OfferImage, ID: "big"}, false, "None of the 0"},
		{"10.0.0.1 colour=red", loom.Offer{Kind: loom.OfferImage, ID: "big"}, false, "colour"},
	} {
		call := &loom.ProviderCall{Provider: loom.Provider{Fields: map[string]any{"hosts": c.hosts}}, Ask: c.ask}
		probe, err := new(Static).Verify(t.Context(), call)
		if err != nil || probe.OK != c.ok || !strings.Contains(probe.Checks[0].Message, c.phrase) {
			t.Errorf("%q, %+v: %+v, %v", c.hosts, c.ask, probe, err)
		}
	}
}
