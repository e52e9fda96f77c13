package web

import (
	"context"
	"sync"
	"time"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/ui"
)

// estimatesKept is how long what is usual is remembered, estimatesMost for how many
// tenants and types of provider.
const (
	estimatesKept = time.Minute
	estimatesMost = 500
)

// estimates remembers how long tasks usually take: a running page asks every second.
// The zero value is ready.
type estimates struct {
	mu      sync.Mutex
	known   map[[2]string]estimate
	reading together[[2]string, lifecycle.Typical]
}

type estimate struct {
	typical lifecycle.Typical
	read    time.Time
}

func (e *estimates) of(key [2]string, now time.Time) (lifecycle.Typical, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, ok := e.known[key]
	return found.typical, ok && now.Sub(found.read) < estimatesKept
}

func (e *estimates) keep(key [2]string, now time.Time, typical lifecycle.Typical) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil || len(e.known) >= estimatesMost {
		e.known = map[[2]string]estimate{}
	}
	e.known[key] = estimate{typical, now}
}

// left says how long an operation that runs may still take, "" where that is not known.
func (s *Server) left(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, op loom.Operation) (string, error) {
	if op.Status != loom.OperationRunning || op.Started.IsZero() {
		return "", nil
	}
	key := [2]string{string(actor.Tenant), v.Provider.Type}
	typical, ok := s.typical.of(key, s.now())
	if !ok {
		var err error
		typical, err = s.typical.reading.do(ctx, key, func(ctx context.Context) (lifecycle.Typical, error) {
			typical, err := s.Clusters.Typical(ctx, actor, v.Provider.Type)
			if err == nil {
				s.typical.keep(key, s.now(), typical)
			}
			return typical, err
		})
		if err != nil {
			return "", err
		}
	}
	groups, err := s.Clusters.TaskGroups(ctx, actor, op.Ref)
	if err != nil {
		return "", err
	}
	tries, err := nextTries(ctx, s.Clusters, actor, op)
	if err != nil {
		return "", err
	}
	pause := time.Duration(0)
	if len(tries) > 0 {
		pause = tries[len(tries)-1].At.Sub(s.now())
	}
	d, known := typical.Remaining(groups, s.now(), pause)
	switch {
	case !known:
		return "", nil
	case d < time.Second:
		return "nearly done", nil
	}
	return "about " + ui.Duration(roughly(d)) + " left", nil
}

// roughly leaves out what an estimate cannot know.
func roughly(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return d.Round(time.Second)
	case d < time.Minute:
		return d.Round(5 * time.Second)
	case d < 10*time.Minute:
		return d.Round(30 * time.Second)
	case d < time.Hour:
		return d.Round(time.Minute)
	}
	return d.Round(10 * time.Minute)
}
