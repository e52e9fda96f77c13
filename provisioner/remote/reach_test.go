package remote_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestReach: the dialer connects to no address that the target may not reach, says so
// at once and for good, and asks a jump host for nothing: what lies behind it is reached
// by the jump host, not by Loom.
func TestReach(t *testing.T) {
	t.Parallel()
	machine, jump := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	refuse := loom.Reach{Private: true}
	direct, way := target(machine), behind(machine, jump)
	direct.Reach, way.Reach, way.Jump[0].Reach = refuse, refuse, refuse
	named := target(machine)
	named.Reach, named.Address = refuse, "localhost"
	for name, to := range map[string]remote.Target{"straight": direct, "by name": named, "by a jump host": way} {
		pool := remote.NewPool()
		defer pool.Close()
		_, _, err := pool.Conn(t.Context(), to)
		_, scanned := pool.Dialer().ScanHostKey(t.Context(), to)
		for what, err := range map[string]error{"dial": err, "wait": pool.Dialer().WaitBanner(t.Context(), to, time.Hour), "scan": scanned} {
			if !errors.Is(err, remote.ErrRefused) || !strings.Contains(err.Error(), "LOOM_PROVIDER_NETWORKS") {
				t.Errorf("%s %s: %v", what, name, err)
				continue
			}
			if r, err := remote.Failure(err); err != nil || r.Retryable == nil || *r.Retryable {
				t.Errorf("%s %s: %+v, %v", what, name, r, err)
			}
		}
	}
	if n := machine.Dials() + jump.Dials(); n != 0 {
		t.Errorf("%d connections", n)
	}
	way = behind(machine, jump)
	way.Reach = loom.Reach{} // what the machine's own address is does not matter then
	conn, err := remote.Dial(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestReachChanges: a kept connection serves nobody who may not open it.
func TestReachChanges(t *testing.T) {
	t.Parallel()
	machine, jump := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	for name, to := range map[string]remote.Target{"machine": target(machine), "jump host": behind(machine, jump)} {
		to.Node = loom.NodeID(name)
		_, release, err := pool.Conn(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		release()
		to.Reach = loom.Reach{}
		for i := range to.Jump {
			to.Jump[i].Reach = loom.Reach{}
		}
		if _, _, err := pool.Conn(context.Background(), to); !errors.Is(err, remote.ErrRefused) {
			t.Errorf("%s: the kept connection was given: %v", name, err)
		}
		to.Node = loom.NodeID("other " + name)
		if _, _, err := pool.Conn(context.Background(), to); !errors.Is(err, remote.ErrRefused) {
			t.Errorf("%s: another node got %v", name, err)
		}
	}
}

// TestTargetsReach: a target reaches what its task does, and so do its jump hosts.
func TestTargetsReach(t *testing.T) {
	t.Parallel()
	reach := loom.Reach{Private: true, Networks: loom.Named(netip.MustParsePrefix("127.0.0.0/8"))}
	to, err := remote.TargetOf(&loom.TaskSpec{Reach: reach, Provider: loom.Provider{Fields: map[string]any{"ssh_jump": "a,b"}}}, "")
	if err != nil || len(to.Jump) != 2 {
		t.Fatalf("%+v, %v", to, err)
	}
	for _, one := range append(to.Jump, to) {
		if one.Reach.Key() != reach.Key() {
			t.Errorf("%s reaches %s", one.Address, one.Reach.Key())
		}
	}
}
