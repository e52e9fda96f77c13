package execution_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

// TestSpecKeepsToThePermits: an attempt reaches what its tenant may at the moment; a CREATE
// with what was switched off since is over before it began, all else goes on.
func TestSpecKeepsToThePermits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	key := w.deliver(1)
	private := netip.MustParseAddr("10.0.0.1")
	for _, on := range []bool{true, false, true} {
		w.exec(`UPDATE tenants SET private_networks = $1`, on)
		s, err := w.ops.Spec(ctx, key)
		if err != nil || s.Reach.May(private) != on || s.Reach.May(netip.MustParseAddr("127.0.0.1")) {
			t.Fatalf("private networks %t: %+v, %v", on, s, err)
		}
	}
	w.exec(`UPDATE tenants SET provider_types_off = '{mock}'`)
	refused := func(want string) {
		t.Helper()
		_, err := w.ops.Spec(ctx, key)
		var u *execution.SpecError
		if !errors.As(err, &u) || *u.Result.Retryable || !strings.Contains(u.Result.Message, want) || !strings.Contains(u.Result.Message, "ask the superadmin") {
			t.Errorf("got %v, want a refusal with %q", err, want)
		}
	}
	refused("“mock” is switched off")
	w.exec(`UPDATE tenants SET provider_types_off = '{}', instance_roles = false`)
	w.seal("provider:lab", "use_instance_role", "true")
	refused("Instance roles")
	w.exec(`UPDATE tasks SET action = 'confirm' WHERE id = $1`, int64(key.Task))
	w.exec(`UPDATE tenants SET provider_types_off = '{mock}'`)
	if _, err := w.ops.Spec(ctx, key); err != nil {
		t.Errorf("a task on a machine that is there: %v", err)
	}
}
