package account_test

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// TestUnknownNamesCostAsMuch: a sign-in with a name or tenant that is not there computes
// a hash as one with a wrong password does, so that its time tells nothing. A hash takes
// 64 MiB, which shows without a clock.
func TestUnknownNamesCostAsMuch(t *testing.T) { //nolint:paralleltest // others must not allocate meanwhile
	b := setup(t)
	const hash = 64 << 20
	for i, in := range []account.SignInInput{
		{Tenant: "demo", User: "user"}, {Tenant: "demo", User: "nobody-here"}, {Tenant: "nowhere", User: "user"},
	} {
		in.Password, in.Address = loom.NewSecret("a wrong password"), fmt.Sprintf("192.0.2.%d", i)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err := b.SignIn(b.ctx, in)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("%s/%s: %v", in.Tenant, in.User, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used < hash || used >= 2*hash {
			t.Errorf("%s/%s used %d MiB, and one hash takes 64", in.Tenant, in.User, used>>20)
		}
	}
}

// TestSignInsTakeLittleMemory: however many come at once, few hashes are in memory, and what
// they leave does not pile up.
func TestSignInsTakeLittleMemory(t *testing.T) { //nolint:paralleltest // as above
	b := setup(t)
	const hash, most = 64 << 20, 6
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := heap()
	var coming sync.WaitGroup
	for i := range 30 {
		coming.Go(func() {
			_, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: fmt.Sprint("u", i), Password: loom.NewSecret("a wrong password"), Address: fmt.Sprintf("192.0.2.%d", i)})
			if !errors.Is(err, loom.Unauthenticated) {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { coming.Wait(); close(done) }()
	peak := uint64(0)
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		peak = max(peak, heap())
		select {
		case <-done:
			if peak > before+most*hash {
				t.Errorf("30 sign-ins at once took %d MiB", (peak-before)>>20)
			}
			t.Logf("%d MiB", (peak-before)>>20)
			return
		default:
		}
	}
}
