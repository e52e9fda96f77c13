package provisioner

import (
	"context"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	mockprovider "loom/provisioner/provider/mock"
)

// lister lists what it has and cannot look up anything else.
type lister struct {
	provider.Provider
	probe loom.Probe
}

// Probe returns what the test wants.
func (l lister) Probe(context.Context, *loom.ProviderCall) (loom.Probe, error) { return l.probe, nil }

func TestVerifyOutcomes(t *testing.T) {
	t.Parallel()
	full := loom.Probe{OK: true, Flavors: []loom.ProbeFlavor{{ID: "1", Name: "small"}, {ID: "m2"}}, Images: []loom.ProbeImage{{ID: "i-1", Name: "Debian 12"}}}
	full.Check("credentials", true, "Taken.")
	mock := mockprovider.New()
	flavor, image := loom.OfferFlavor, loom.OfferImage
	for _, c := range []struct {
		name   string
		made   provider.Provider
		ask    loom.Offer
		ok     bool
		check  string
		phrase string
	}{
		{"a size that is listed", lister{mock, full}, loom.Offer{Kind: flavor, ID: "1"}, true, "flavor", "has it: small"},
		{"a size without a name", lister{mock, full}, loom.Offer{Kind: flavor, ID: "m2"}, true, "flavor", "has it."},
		{"an image that is listed", lister{mock, full}, loom.Offer{Kind: image, ID: "i-1"}, true, "image", "Debian 12"},
		{"a size is no image", lister{mock, full}, loom.Offer{Kind: image, ID: "1"}, false, "image", "not among the 1 image"},
		{"a name instead of an id", lister{mock, full}, loom.Offer{Kind: flavor, ID: "small"}, false, "flavor", "give 1"},
		{"what is not listed", lister{mock, full}, loom.Offer{Kind: flavor, ID: "huge"}, false, "flavor", "not among the 2 sizes"},
		{"no lists at all", lister{mock, loom.Probe{OK: true}}, loom.Offer{Kind: flavor, ID: "huge"}, false, "flavor", "cannot be said"},
		{"a provider that refuses", lister{mock, loom.FailedProbe("credentials", "They are wrong.")}, loom.Offer{Kind: flavor, ID: "huge"}, false, "credentials", "wrong"},
		{"a plugin that looks up itself", mock, loom.Offer{Kind: image, ID: "any"}, true, "image", "any image"},
		{"a plugin that cannot be asked", mute{mock}, loom.Offer{Kind: image, ID: "any"}, false, "probe", "cannot say"},
	} {
		in := call("mock")
		in.Ask = c.ask
		got, err := asker(t, c.made).Probe(t.Context(), in)
		if err != nil || got.OK != c.ok || len(got.Checks) != 1 || got.Checks[0].Name != c.check || !strings.Contains(got.Checks[0].Message, c.phrase) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
