package local

import (
	"context"
	"slices"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
)

// Verify says whether a size or an image is one that this provider can make: there is
// no list of them.
func (l *Local) Verify(_ context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	probe, name := loom.Probe{OK: true}, string(call.Ask.Kind)
	if call.Ask.Kind == loom.OfferFlavor {
		limits, err := parseFlavor(call.Ask.ID)
		if err == nil {
			_, err = l.ceilings.bound(limits)
		}
		if err != nil {
			probe.Check(name, false, cloud.Sentence(message(err)))
			return probe, nil
		}
		probe.Check(name, true, "Machines can be made with these limits.")
		return probe, nil
	}
	im, err := parseImage(call.Ask.ID)
	switch {
	case err != nil:
		probe.Check(name, false, cloud.Sentence(message(err)))
	case slices.Contains(l.builtImages(), im.String()):
		probe.Check(name, true, "Its base root is built.")
	default:
		probe.Check(name, true, "Its base root is built when the first machine needs it; whether the Debian mirror has the packages shows then.")
	}
	return probe, nil
}

var _ provider.Verifier = (*Local)(nil)
