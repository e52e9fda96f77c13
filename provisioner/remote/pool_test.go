package remote_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func TestPool(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	ctx := context.Background()
	use := func(to remote.Target) *remote.Conn {
		t.Helper()
		conn, release, err := pool.Conn(ctx, to)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if _, err := conn.Run(ctx, "true", remote.Command{Text: "true"}); err != nil {
			t.Fatal(err)
		}
		release() // twice is harmless
		return conn
	}
	to := target(s)
	first := use(to)
	learned := to
	learned.HostKeys = nil
	if use(to) != first || use(learned) != first || s.Dials() != 1 {
		t.Fatal("the connection was not kept")
	}
	s.Cut()
	until(t, "end of the connection", func() bool {
		select {
		case <-first.Done():
			return true
		default:
			return false
		}
	})
	second := use(to)
	if second == first || s.Dials() != 2 {
		t.Fatal("a dead connection was kept")
	}
	more := to
	more.Keys = append(more.Keys, loom.NewSecret(sshtest.NewKey(t, "ed25519", "").PEM))
	if use(more) == second {
		t.Fatal("other keys, same connection")
	}
	until(t, "close of the old connection", func() bool {
		select {
		case <-second.Done():
			return true
		default:
			return false
		}
	})
	changed := more
	changed.HostKeys = map[string]string{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	if _, _, err := pool.Conn(ctx, changed); !errors.Is(err, remote.ErrHostKeyChanged) {
		t.Fatalf("another host key recorded: %v", err)
	}
	other := to
	other.Node = "node-2"
	use(other)
	if pool.Len() != 1 {
		t.Fatalf("%d kept", pool.Len())
	}
	pool.Forget(other)
	if pool.Len() != 0 {
		t.Fatalf("%d kept after Forget", pool.Len())
	}
	_ = pool.Close()
	if _, _, err := pool.Conn(ctx, to); !errors.Is(err, remote.ErrPoolClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestPoolIdle(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	pool.SetIdle(30 * time.Millisecond)
	conn, release, err := pool.Conn(context.Background(), target(s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Run(context.Background(), "sleep", remote.Command{Text: "sleep 0.1"}); err != nil {
		t.Fatalf("closed while in use: %v", err)
	}
	release()
	until(t, "end of the idle connection", func() bool { return pool.Len() == 0 })
	<-conn.Done()
}

// TestPoolIsBounded: a connection beyond the bound lasts as long as somebody uses it, and those
// that are kept stay.
func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	pool.SetMost(1)
	first, second := target(s), target(s)
	first.Node, second.Node = "node-1", "node-2"
	_, release, err := pool.Conn(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	release()
	conn, release, err := pool.Conn(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Run(t.Context(), "true", remote.Command{Text: "true"}); err != nil || pool.Len() != 2 {
		t.Fatalf("in use: %v, %d connections", err, pool.Len())
	}
	release()
	<-conn.Done()
	if alive, kept := pool.Alive(t.Context(), "node-1", time.Minute); !alive || !kept {
		t.Errorf("the first one is kept: %v, alive: %v", kept, alive)
	}
	if _, kept := pool.Alive(t.Context(), "node-2", time.Minute); kept {
		t.Error("the second one is kept")
	}
}

func TestPoolManyTasks(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			to := target(s)
			to.Node = loom.NodeID([]string{"a", "b", "c"}[i%3])
			conn, release, err := pool.Conn(context.Background(), to)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := conn.Run(context.Background(), "true", remote.Command{Text: "true"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if s.Dials() != 3 {
		t.Fatalf("%d dials for 3 nodes", s.Dials())
	}
}

func TestPoolRedialsAHangingConnection(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	pool.SetAlive(100 * time.Millisecond)
	first, release, err := pool.Conn(context.Background(), target(s))
	if err != nil {
		t.Fatal(err)
	}
	release()
	s.Freeze()
	second, release, err := pool.Conn(context.Background(), target(s))
	if err != nil || second == first {
		t.Fatalf("the hanging connection was used again: %v", err)
	}
	defer release()
	if _, err := second.Run(context.Background(), "true", remote.Command{Text: "true"}); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
}

func TestKeepaliveEndsAHangingCommand(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	var dialer remote.Dialer
	dialer.SetKeepalive(50 * time.Millisecond)
	conn, err := dialer.Dial(context.Background(), target(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Exec(context.Background(), remote.Command{Text: "echo go; sleep 100", Line: func(string, string) { s.Freeze() }})
	if !errors.Is(err, remote.ErrLost) {
		t.Fatalf("got %v", err)
	}
}

// BenchmarkTask measures a small task on a new and on a kept connection.
func BenchmarkTask(b *testing.B) {
	s := sshtest.Start(b, sshtest.Options{})
	ctx := context.Background()
	task := func(b *testing.B, conn *remote.Conn) {
		if _, err := conn.Run(ctx, "true", remote.Command{Text: "true", Root: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			conn, err := remote.Dial(ctx, target(s))
			if err != nil {
				b.Fatal(err)
			}
			task(b, conn)
			_ = conn.Close()
		}
	})
	b.Run("kept", func(b *testing.B) {
		pool := remote.NewPool()
		defer pool.Close()
		for b.Loop() {
			conn, release, err := pool.Conn(ctx, target(s))
			if err != nil {
				b.Fatal(err)
			}
			task(b, conn)
			release()
		}
	})
}
