package places

import (
	"context"
	"sync"
	"time"

	"loom/app/loom"
)

// What requests hold in memory at once, in bytes of the text that they read or answer.
// What is made of it takes a few times as much.
const (
	// Room is for all requests of a process, RoomEach for those of one tenant.
	Room     = 64 << 20
	RoomEach = 48 << 20
	// WeightOfValue is what a value of JSON takes in memory on top of its text.
	WeightOfValue = 64
	// small needs no room: most of what is asked for, and quickly gone.
	small = 64 << 10
	// roomWait is how long a request waits for others.
	roomWait = 10 * time.Second
	// roomRetry is when a client may come back whose request waited in vain.
	roomRetry = 5 * time.Second
)

// NewRoom returns the room of a process.
func NewRoom() *Places { return newPlaces(Room, RoomEach) }

// hold is what a request has of a room.
type hold struct {
	room   *Places
	mu     sync.Mutex
	tenant loom.TenantID
	bytes  int64
}

type holdKey struct{}

// With gives a request for which Hold takes room, and what gives it back once it is
// answered.
func (p *Places) With(ctx context.Context) (context.Context, func()) {
	h := &hold{room: p}
	return context.WithValue(ctx, holdKey{}, h), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.bytes > 0 {
			p.give(h.tenant, h.bytes)
			h.bytes = 0
		}
	}
}

// For says which tenant a request counts for.
func For(ctx context.Context, tenant loom.TenantID) {
	if h, ok := ctx.Value(holdKey{}).(*hold); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.bytes == 0 {
			h.tenant = tenant
		}
	}
}

// Counted reports whether what is done for ctx needs room at all: a request does, a duty
// of the scheduler does not.
func Counted(ctx context.Context) bool {
	_, ok := ctx.Value(holdKey{}).(*hold)
	return ok
}

// Hold waits until a request may hold n bytes more, until it is answered. The
// largest of what is asked for counts, not the sum. Throttled when others take too long.
func Hold(ctx context.Context, bytes int64) error {
	h, ok := ctx.Value(holdKey{}).(*hold)
	if !ok || bytes <= small {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	more := min(bytes, h.room.each) - h.bytes
	if more <= 0 {
		return nil
	}
	waiting, stop := context.WithTimeout(ctx, roomWait)
	defer stop()
	if h.bytes > 0 {
		stop() // who holds some and waits for more would keep others waiting who do the same
	}
	if !h.room.take(waiting, h.tenant, more) {
		if gone := ctx.Err(); gone != nil {
			return gone
		}
		return &loom.Error{Kind: loom.Throttled, RetryAfter: roomRetry, Message: "Loom is reading and answering as much at this moment as it holds in memory at once. Ask again in a moment, for less where you can: a page of a list, or one entry of a catalog."}
	}
	h.bytes += more
	return nil
}
