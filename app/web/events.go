package web

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
	// recheck is how often the right to a topic is checked again.
	recheck = time.Minute
)

// events is the one stream of a page (rest-api.md 6.5).
func (s *Server) events(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	topics, err := live.ParseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return err
	}
	if err := s.mayFollow(r.Context(), actor, topics); err != nil {
		return err
	}
	sub, err := s.Hub.Subscribe(r.Context(), actor.Tenant, topics, httpx.Cursor(r))
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := s.followLogs(r.Context(), actor, topics, sub); err != nil {
		return err
	}
	stream, err := httpx.NewStream(w)
	if err != nil {
		return err
	}
	return s.follow(r, actor, topics, sub, stream)
}

// followLogs adds the topics that are logs: they are signalled by task, not by
// events, since a busy log would fill the table of events.
func (s *Server) followLogs(ctx context.Context, actor loom.Actor, topics []string, sub *live.Subscription) error {
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

// follow passes signals on until the client is gone or may not know any more.
// What it returns goes nowhere: the answer has begun.
func (s *Server) follow(r *http.Request, actor loom.Actor, topics []string, sub *live.Subscription, stream *httpx.Stream) error {
	if sub.Reset {
		if stream.Send("", "reset", struct{}{}) != nil {
			return nil
		}
	}
	keep, check := time.NewTicker(httpx.KeepAlive), time.NewTicker(recheck)
	defer keep.Stop()
	defer check.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-keep.C:
			if stream.Comment() != nil {
				return nil
			}
		case <-check.C:
			if s.stillMay(r, actor, topics) != nil {
				stream.End("forbidden") //nolint:errcheck // the stream ends either way
				return nil
			}
		case <-sub.Ready():
			for _, signal := range sub.Take() {
				if stream.Send(signal.Cursor, signal.Topic, map[string][]string{"ids": signal.IDs}) != nil {
					return nil
				}
			}
			pause(r.Context(), coalesce)
		}
	}
}

// stillMay checks that the session lives and the topics may be followed.
func (s *Server) stillMay(r *http.Request, actor loom.Actor, topics []string) error {
	if _, _, err := s.Accounts.ActorBySession(r.Context(), s.Sessions.Cookie(r), httpx.Address(r)); err != nil {
		return err
	}
	return s.mayFollow(r.Context(), actor, topics)
}

func (s *Server) mayFollow(ctx context.Context, actor loom.Actor, topics []string) error {
	for _, topic := range topics {
		if err := s.Clusters.MaySeeTopic(ctx, actor, topic); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
