package openstack_test

import (
	"context"
	"errors"
	"testing"

	"loom/app/loom"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
)

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Pending: 1 << 30})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	abort := errors.New("somebody aborted")
	ctx, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	sink := &cloudtest.Sink{On: func(string) { cancel(abort) }}
	if _, err := l.Provider.Confirm(ctx, spec, sink); !errors.Is(err, abort) {
		t.Errorf("a cancelled confirm gave %v", err)
	}
}
