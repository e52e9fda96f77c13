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
	// Bodies are what all requests of a process send, BodiesEach those of one tenant, BodiesOne
	// those of one user: the largest that there is.
	Bodies     = 96 << 20
	BodiesEach = 48 << 20
	BodiesOne  = 32 << 20
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
func NewRoom() *Places { return newPlaces(Room, RoomEach, RoomEach) }

// NewBodies returns the room for what requests send, apart from that for answers: who sends
// slowly keeps nobody from reading.
func NewBodies() *Places { return newPlaces(Bodies, BodiesEach, BodiesOne) }

// Share is what a request has of a room.
type Share struct {
	room  *Places
	mu    sync.Mutex
	who   loom.Account
	bytes int64
}

// Share returns what a request of a user may take of the room.
func (p *Places) Share(who loom.Account) *Share { return &Share{room: p, who: who} }

// Free returns the share back; more can be taken afterwards.
func (s *Share) Free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes > 0 {
		s.room.give(s.who, s.bytes)
		s.bytes = 0
	}
}

type shareKey struct{}

// With returns a request for which Hold takes room, and what gives it back once it is
// answered.
func (p *Places) With(ctx context.Context) (context.Context, func()) {
	s := p.Share(loom.Account{})
	return context.WithValue(ctx, shareKey{}, s), s.Free
}

// For says which tenant a request counts for.
func For(ctx context.Context, tenant loom.TenantID) {
	if s, ok := ctx.Value(shareKey{}).(*Share); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.bytes == 0 {
			s.who.Tenant = tenant
		}
	}
}

// Counted reports whether what is done for ctx needs room at all: a request does, a duty
// of the scheduler does not.
func Counted(ctx context.Context) bool {
	_, ok := ctx.Value(shareKey{}).(*Share)
	return ok
}

// Hold waits until a request may hold that many bytes, until it is answered. The
// largest of what is asked for counts, not the sum. Throttled when others take too long.
func Hold(ctx context.Context, bytes int64) error {
	s, ok := ctx.Value(shareKey{}).(*Share)
	if !ok {
		return nil
	}
	return s.Hold(ctx, bytes)
}

// Hold is Hold for a share that no context carries.
func (s *Share) Hold(ctx context.Context, bytes int64) error {
	if bytes <= small {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	more := min(bytes, s.room.one) - s.bytes
	if more <= 0 {
		return nil
	}
	waiting, stop := context.WithTimeout(ctx, roomWait)
	defer stop()
	if s.bytes > 0 {
		stop() // who holds some and waits for more would keep others waiting who do the same
	}
	if !s.room.take(waiting, s.who, more) {
		if gone := ctx.Err(); gone != nil {
			return gone
		}
		return &loom.Error{Kind: loom.Throttled, RetryAfter: roomRetry, Message: "Loom is reading and answering as much at this moment as it holds in memory at once. Ask again in a moment, for less where you can: a page of a list, or one entry of a catalog."}
	}
	s.bytes += more
	return nil
}
