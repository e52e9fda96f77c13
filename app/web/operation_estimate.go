package web

import (
	"context"
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

// left says how long an operation that runs may still take, "" where that is not known.
func (s *Server) left(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, op loom.Operation) (string, error) {
	if op.Status != loom.OperationRunning || op.Started.IsZero() {
		return "", nil
	}
	key := [2]string{string(actor.Tenant), v.Provider.Type}
	typical, err := s.typical.Get(ctx, key, s.now, func(ctx context.Context) (lifecycle.Typical, error) {
		return s.Clusters.Typical(ctx, actor, v.Provider.Type)
	})
	if err != nil {
		return "", err
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
