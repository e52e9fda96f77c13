package work

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
)

func TestLimiterKeepsCounts(t *testing.T) {
	t.Parallel()
	l := newLimiter(5)
	l.set(map[loom.TenantID]int{"a": 4, "b": 3})
	var now, most [2]atomic.Int32
	var all, mostAll atomic.Int32
	var wait sync.WaitGroup
	for i := range 400 {
		wait.Go(func() {
			tenant := loom.TenantID([]string{"a", "b"}[i%2])
			if !l.acquire(context.Background(), tenant, time.Minute, time.Minute) {
				t.Error("no slot within a minute")
				return
			}
			raise(&most[i%2], now[i%2].Add(1))
			raise(&mostAll, all.Add(1))
			all.Add(-1)
			now[i%2].Add(-1)
			l.release(tenant)
		})
	}
	wait.Wait()
	if most[0].Load() > 4 || most[1].Load() > 3 || mostAll.Load() > 5 {
		t.Errorf("at once: a %d of 4, b %d of 3, all %d of 5", most[0].Load(), most[1].Load(), mostAll.Load())
	}
	if l.load() != 0 {
		t.Errorf("%d slots were not given back", l.load())
	}
}

func raise(most *atomic.Int32, n int32) {
	for {
		m := most.Load()
		if n <= m || most.CompareAndSwap(m, n) {
			return
		}
	}
}

func TestLimiterFollowsItsLimits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l := newLimiter(10)
	if l.acquire(ctx, "a", time.Millisecond, time.Millisecond) {
		t.Fatal("a tenant without workers got a slot")
	}
	if !l.set(map[loom.TenantID]int{"a": 2}) || l.set(map[loom.TenantID]int{"a": 1}) {
		t.Error("set says whether a tenant came or went")
	}
	if !l.acquire(ctx, "a", 0, 0) && !l.acquire(ctx, "a", time.Second, time.Second) {
		t.Fatal("no slot")
	}
	got := make(chan bool)
	go func() { got <- l.acquire(ctx, "a", time.Minute, time.Minute) }()
	l.set(map[loom.TenantID]int{"a": 2})
	if !<-got {
		t.Error("a raised limit lets the next one in")
	}
	// Lowering takes nothing away; it acts at the next slot.
	l.set(map[loom.TenantID]int{"a": 1})
	l.release("a")
	if l.acquire(ctx, "a", time.Millisecond, time.Millisecond) {
		t.Error("a slot above the lowered limit")
	}
	go func() { got <- l.acquire(ctx, "a", time.Minute, time.Minute) }()
	l.close()
	if <-got || l.acquire(ctx, "b", time.Minute, time.Minute) {
		t.Error("a slot after closing")
	}
	l.release("a")
	if l.load() != 0 {
		t.Errorf("%d slots are still taken", l.load())
	}
}

func TestPendingKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	p, err := openPending(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := loom.TaskResult{Message: "made", Result: map[string]any{"providerid": "m1", "ssh-auth": map[string]any{"user": "root", "identityfile": "k"}}}
	secret := loom.TaskResult{Message: "made", Stdout: "out", Result: map[string]any{"providerid": "m2", "ssh-auth": map[string]any{"user": "root", "password": "s3cret"}}}
	for task, r := range map[loom.TaskID]loom.TaskResult{1: plain, 2: secret, 3: {Status: -1, Aborted: true}} {
		if err := p.save(attemptKey(task), r); err != nil {
			t.Fatal(err)
		}
	}
	left, err := p.unrecorded()
	if err != nil || len(left) != 3 {
		t.Fatalf("%d results, %v", len(left), err)
	}
	if r := left[0].Result; r.Status != 0 || r.Result["ssh-auth"] == nil {
		t.Errorf("a result without secrets is kept whole: %+v", r)
	}
	if r := left[1].Result; !r.Interrupted || r.Result["providerid"] != "m2" || len(r.Result) != 1 {
		t.Errorf("one with a password keeps the machine only: %+v", r)
	}
	if !left[2].Result.Aborted {
		t.Error("how an attempt was cut short is kept")
	}
	for task := range loom.TaskID(4) {
		if err := p.forget(attemptKey(task)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := p.unrecorded(); err != nil || len(left) != 0 {
		t.Errorf("%d results are left, %v", len(left), err)
	}
}

// TestLimiterMakesWay: who waits makes way as far as others could take the work,
// and else waits on.
func TestLimiterMakesWay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l := newLimiter(1)
	l.set(map[loom.TenantID]int{"a": 1})
	if len(l.waitingTenants()) != 0 || !l.acquire(ctx, "a", time.Minute, time.Minute) {
		t.Fatal("no slot though one is free")
	}
	wait := func(n int) chan bool {
		got := make(chan bool, n)
		for range n {
			go func() { got <- l.acquire(ctx, "a", time.Millisecond, time.Hour) }()
		}
		return got
	}
	// Nobody knows of others: all make way.
	for got, left := wait(3), 3; left > 0; left-- {
		if <-got {
			t.Error("a slot though none is free")
		}
	}
	// Nobody else has a free worker: all wait, and the tenant is crowded.
	l.spare(nil)
	got := wait(5)
	for len(l.waitingTenants()) == 0 {
		time.Sleep(time.Millisecond)
	}
	// One worker is free elsewhere: two make way, one in case it does not get through.
	l.spare(map[loom.TenantID]int{"a": 1})
	for range 2 {
		if <-got {
			t.Error("a slot though none is free")
		}
	}
	// The slot comes free again and again: the others get it.
	for range 3 {
		l.release("a")
		if !<-got {
			t.Error("made way though nobody else is free")
		}
	}
	l.release("a")
	// Without workers there is nothing to wait for; and nobody waits forever.
	l.set(map[loom.TenantID]int{})
	if <-wait(1) {
		t.Error("a slot without workers")
	}
	l.set(map[loom.TenantID]int{"a": 1})
	if !l.acquire(ctx, "a", time.Minute, time.Minute) || l.acquire(ctx, "a", time.Millisecond, 5*time.Millisecond) {
		t.Error("it waited longer than the longest time")
	}
}
