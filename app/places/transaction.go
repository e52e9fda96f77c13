package places

import (
	"context"
	"sync"
	"time"

	"loom/app/loom"
)

// transactionWait is how long a request waits for the transactions of others.
const transactionWait = 10 * time.Second

// Transactions bounds how many database transactions the requests of a process have open
// at once, so that a tenant whose transactions wait for each other leaves connections for
// others, for reading and for what is no request. The zero value is ready.
type Transactions struct {
	once   sync.Once
	places *Places
}

type transactionsKey struct{}

// transactions are those of one request, which counts once.
type transactions struct {
	of   *Transactions
	mu   sync.Mutex
	open int
}

// With returns a request whose transactions are counted.
func (t *Transactions) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, transactionsKey{}, &transactions{of: t})
}

// Begin waits until a request may open a transaction on a pool of that many connections,
// and returns what is to be called at its end. A tenant has half of the connections at
// most, all requests three quarters. Throttled when others take too long.
func Begin(ctx context.Context, connections int) (end func(), err error) {
	r, ok := ctx.Value(transactionsKey{}).(*transactions)
	if !ok || connections < 4 {
		return func() {}, nil
	}
	r.of.once.Do(func() { r.of.places = NewFor(connections*3/4, connections/2) })
	r.mu.Lock()
	defer r.mu.Unlock()
	tenant := tenantOf(ctx)
	if r.open == 0 {
		waiting, stop := context.WithTimeout(ctx, transactionWait)
		defer stop()
		if !r.of.places.Take(waiting, tenant) {
			if gone := ctx.Err(); gone != nil {
				return nil, gone
			}
			return nil, &loom.Error{Kind: loom.Throttled, RetryAfter: roomRetry, Message: "Other requests of your tenant keep the database busy. Ask again in a moment."}
		}
	}
	r.open++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.open--; r.open == 0 {
			r.of.places.Give(tenant)
		}
	}, nil
}

func tenantOf(ctx context.Context) loom.TenantID {
	s, ok := ctx.Value(shareKey{}).(*Share)
	if !ok {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who.Tenant
}
