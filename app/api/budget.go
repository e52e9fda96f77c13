package api

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"loom/app/loom"
	"loom/app/places"
)

// What bodies weigh that are decoded at once: their bytes, and for each value what it takes
// in memory on top.
const (
	maxDecoding = 32 << 20
	// decodingWait is how long a body waits for others.
	decodingWait = 10 * time.Second
	// decodingRetry is when a client may come back whose body waited in vain.
	decodingRetry = 5 * time.Second
)

// decoding is what this process decodes at this moment.
var decoding = semaphore.NewWeighted(maxDecoding)

// share is what a request holds of a budget, from its body on until it is answered: what
// was decoded stays in memory as long.
type share struct {
	budget *semaphore.Weighted
	held   int64
}

type shareKey struct{}

// shared gives a request that readLimited counts, and what gives back its share.
func shared(ctx context.Context, budget *semaphore.Weighted) (context.Context, func()) {
	s := &share{budget: budget}
	return context.WithValue(ctx, shareKey{}, s), func() { budget.Release(s.held) }
}

// takeShare waits until a body may be decoded. Throttled when others take too long. A body
// that is read again counts once.
func takeShare(ctx context.Context, body []byte, wait time.Duration) error {
	s, ok := ctx.Value(shareKey{}).(*share)
	if !ok || s.held > 0 {
		return nil
	}
	weight := min(int64(len(body))+places.WeightOfValue*int64(loom.JSONValues(body)), maxDecoding)
	waiting, stop := context.WithTimeout(ctx, wait)
	defer stop()
	if err := s.budget.Acquire(waiting, weight); err != nil {
		if gone := ctx.Err(); gone != nil {
			return gone
		}
		return &loom.Error{Kind: loom.Throttled, RetryAfter: decodingRetry, Message: "Loom is reading as many large requests at this moment as it takes at once. Send this one again in a moment, or in smaller ones."}
	}
	s.held = weight
	return nil
}
