package mock

import (
	"context"

	"loom/app/loom"
)

// Verify says that a size or an image is there, since any is. It fails when fail_tasks
// names “probe”.
func (p Provider) Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	if err := pause(ctx, call); err != nil {
		return loom.Probe{}, err
	}
	if fieldLists(call, "probe") {
		return loom.FailedProbe("connection", "The connection fails, as fail_tasks asks for; take “probe” out of it."), nil
	}
	probe := loom.Probe{OK: true}
	probe.Check(string(call.Ask.Kind), true, "Invented machines take any "+call.Ask.Kind.Noun()+".")
	return probe, nil
}
