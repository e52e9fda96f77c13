package places

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"loom/app/loom"
)

// TestRoom: what requests hold has a size, and a tenant has three quarters of it. Who waits
// in vain is told to come back, who was answered makes room, and what is small needs none.
func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := NewRoom()
		var frees []func()
		hold := func(ctx context.Context, tenant loom.TenantID, bytes ...int64) error {
			ctx, free := room.With(ctx)
			frees = append(frees, free)
			For(ctx, tenant)
			for _, n := range bytes {
				if err := Hold(ctx, n); err != nil {
					return err
				}
			}
			return nil
		}
		if err := hold(t.Context(), "a", RoomEach/2, RoomEach, RoomEach/4); err != nil {
			t.Errorf("the largest of what is asked for counts: %v", err)
		}
		start := time.Now()
		err := hold(t.Context(), "a", 2*small)
		if !errors.Is(err, loom.Throttled) || loom.AsError(err).RetryAfter == 0 || time.Since(start) != roomWait {
			t.Errorf("more of a tenant: %v after %v", err, time.Since(start))
		}
		if err := hold(t.Context(), "a", small, small); err != nil {
			t.Errorf("a small one: %v", err)
		}
		if err := hold(t.Context(), "b", Room-RoomEach); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		if err := hold(t.Context(), "c", 2*small); !errors.Is(err, loom.Throttled) {
			t.Errorf("when all is taken: %v", err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := hold(gone, "c", 2*small); !errors.Is(err, context.Canceled) {
			t.Errorf("of a client who is gone: %v", err)
		}
		for _, free := range frees {
			free()
			free()
		}
		if err := hold(t.Context(), "c", 10*Room); err != nil || room.taken != RoomEach {
			t.Errorf("a large one alone: %v, taken %d", err, room.taken)
		}
		// Who holds some does not wait for more, which others would as well.
		start = time.Now()
		if err := hold(t.Context(), "d", 2*small, RoomEach); !errors.Is(err, loom.Throttled) || time.Since(start) != 0 {
			t.Errorf("more than there is: %v after %v", err, time.Since(start))
		}
		if err := Hold(t.Context(), Room); err != nil || Counted(t.Context()) {
			t.Errorf("what is no request: %v", err)
		}
		for _, free := range frees {
			free()
		}
		if room.taken != 0 || len(room.held) != 0 || len(room.waiting) != 0 {
			t.Errorf("%d are taken by %v once all were given back", room.taken, room.held)
		}
	})
}

// TestLargeOnesGetTheirTurn: small ones that come later do not pass a large one by.
func TestLargeOnesGetTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(10, 8, 8)
		p.take(t.Context(), loom.Account{Tenant: "a"}, 5)
		order := make(chan loom.TenantID, 2)
		for _, w := range []struct {
			tenant loom.TenantID
			places int64
		}{{"b", 8}, {"c", 1}} {
			go func() {
				if p.take(t.Context(), loom.Account{Tenant: w.tenant}, w.places) {
					order <- w.tenant
				}
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Errorf("%v passed by", <-order)
		}
		p.give(loom.Account{Tenant: "a"}, 5)
		synctest.Wait()
		if len(order) != 2 || p.taken != 9 {
			t.Errorf("%d have places, %d are taken", len(order), p.taken)
		}
	})
}
