package page

import (
	"context"
	"net/http"
	"time"

	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
)

const (
	// coalesce is the least time between two signals of a topic.
	coalesce = time.Second
	// recheck is how often the right to a topic is checked again: whoever loses it is told nothing
	// any longer within five seconds.
	recheck = 4 * time.Second
)

// events is the one stream of a page.
func (s *Shared) events(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	topics, err := live.ParseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return err
	}
	if err := s.mayFollow(r.Context(), actor, topics); err != nil {
		return err
	}
	sub, err := s.Hub.SubscribeAs(r.Context(), actor, topics, httpx.Cursor(r))
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := s.followLogs(r.Context(), actor, topics, sub); err != nil {
		return err
	}
	stream, err := httpx.NewStream(w, r)
	if e := loom.AsError(err); err != nil && e.Kind == loom.Throttled {
		httpx.WriteProblem(w, r, e) // for a script, which polls instead
		return nil
	}
	if err != nil {
		return err
	}
	stream.Signals(r.Context(), sub, httpx.SignalOptions{
		KeepAlive: httpx.KeepAlive, Recheck: recheck, Pace: coalesce,
		May: func() error { return s.stillMay(r, actor, topics) },
	})
	return nil // the client is gone, or was told to go
}

// followLogs adds the topics that are logs: they are signalled by task, not by
// events, since a busy log would fill the table of events.
func (s *Shared) followLogs(ctx context.Context, actor loom.Actor, topics []string, sub *live.Subscription) error {
	for _, topic := range topics {
		ref, _, ok := loom.ParseLogTopic(topic)
		if !ok {
			continue
		}
		task, err := s.Clusters.Task(ctx, actor, ref)
		if err != nil {
			return err
		}
		sub.AddLog(topic, task.Row)
	}
	return nil
}

// stillMay checks that the session lives and the topics may be followed.
func (s *Shared) stillMay(r *http.Request, actor loom.Actor, topics []string) error {
	now, _, err := s.Accounts.ActorBySession(r.Context(), s.Sessions.Cookie(r), httpx.Address(r))
	if err != nil {
		return err
	}
	if now.Account() != actor.Account() || actor.May(loom.See, actor.InTenant()) == nil && now.May(loom.See, now.InTenant()) != nil {
		return loom.NewError(loom.Forbidden, "The page shows what another user may see.")
	}
	return s.mayFollow(r.Context(), now, topics)
}

func (s *Shared) mayFollow(ctx context.Context, actor loom.Actor, topics []string) error {
	for _, topic := range topics {
		if err := s.Clusters.MaySeeTopic(ctx, actor, topic); err != nil {
			return err
		}
	}
	return nil
}
