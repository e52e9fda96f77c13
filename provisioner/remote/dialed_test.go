package remote_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestDialed tells what came of each connection.
func TestDialed(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"ed25519"}})
	var mu sync.Mutex
	var told []string
	d := &remote.Dialer{Dialed: func(outcome string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, outcome)
	}}
	dial := func(change func(*remote.Target)) {
		to := target(s)
		change(&to)
		if conn, err := d.Dial(context.Background(), to); err == nil {
			conn.Close()
		}
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	dial(func(*remote.Target) {})
	dial(func(to *remote.Target) { to.Port = nobody.Addr().(*net.TCPAddr).Port })
	dial(func(to *remote.Target) { to.User = "stranger" })
	dial(func(to *remote.Target) {
		to.HostKeys = map[string]string{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	})
	dial(func(to *remote.Target) { to.HostKeys = map[string]string{"dss": "AAAA"} }) // nothing is tried
	if want := []string{"ok", "unreachable", "refused", "host_key"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
