package provisioner

import (
	"context"
	"errors"
	"fmt"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// verify looks up the one size or image that a call asks for. Providers that cannot do
// that list what they have.
func verify(ctx context.Context, prober provider.Prober, call *loom.ProviderCall) (loom.Probe, error) {
	if v, ok := prober.(provider.Verifier); ok {
		if probe, err := v.Verify(ctx, call); !errors.Is(err, errors.ErrUnsupported) {
			return probe, err
		}
	}
	listed, err := prober.Probe(ctx, call)
	if err != nil {
		return loom.Probe{}, err
	}
	return listedOffer(listed, call.Ask), nil
}

// listedOffer says whether what a probe lists has a size or image.
func listedOffer(listed loom.Probe, ask loom.Offer) loom.Probe {
	name := string(ask.Kind)
	offers := make([]loom.ProbeImage, len(listed.Flavors), len(listed.Flavors)+len(listed.Images))
	for i, f := range listed.Flavors {
		offers[i] = loom.ProbeImage{ID: f.ID, Name: f.Name}
	}
	if ask.Kind == loom.OfferImage {
		offers = listed.Images
	}
	probe := loom.Probe{OK: true}
	for _, o := range offers {
		if o.ID == ask.ID {
			probe.Check(name, true, there(ask, o.Name))
			return probe
		}
	}
	for _, o := range offers {
		if o.Name == ask.ID {
			probe.Check(name, false, fmt.Sprintf("“%s” is what people call it; machines are asked for by id: give %s.", ask.ID, o.ID))
			return probe
		}
	}
	for _, c := range listed.Checks {
		if !c.OK && len(offers) == 0 {
			probe.Check(c.Name, false, c.Message)
			return probe
		}
	}
	if len(offers) == 0 {
		probe.Check(name, false, fmt.Sprintf("The provider lists no %ss, so whether it has this one cannot be said.", ask.Kind.Noun()))
		return probe
	}
	probe.Check(name, false, fmt.Sprintf("It is not among the %d %ss that the provider lists; test the provider and choose one of those it offers.", len(offers), ask.Kind.Noun()))
	return probe
}

// there says that a size or image was found, with its name where that tells more.
func there(ask loom.Offer, name string) string {
	if name == "" || name == ask.ID {
		return "The provider has it."
	}
	return "The provider has it: " + name + "."
}
