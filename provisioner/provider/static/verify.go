package static

import (
	"context"
	"fmt"

	"loom/app/loom"
)

// Verify counts the machines of the list that serve a size or an image. It asks none of
// them.
func (s *Static) Verify(_ context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	hosts, err := parseHosts(text(call.Provider.Fields["hosts"]))
	if err != nil {
		return loom.FailedProbe("hosts", sentence(err.Error())), nil
	}
	serving := 0
	for _, h := range hosts {
		if given := map[loom.OfferKind]string{loom.OfferFlavor: h.flavor, loom.OfferImage: h.image}[call.Ask.Kind]; given == "" || given == call.Ask.ID {
			serving++
		}
	}
	probe := loom.Probe{OK: true}
	if serving == 0 {
		probe.Check(string(call.Ask.Kind), false, fmt.Sprintf("None of the %d machines is of the %s “%.100s”; write it behind one of them in the field hosts.", len(hosts), call.Ask.Kind.Noun(), call.Ask.ID))
		return probe, nil
	}
	probe.Check(string(call.Ask.Kind), true, fmt.Sprintf("%d of %d machines serve it.", serving, len(hosts)))
	return probe, nil
}
