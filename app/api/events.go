package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
)

// events is the stream of signals (rest-api.md 6.5): one per topic and second at
// most. Rights are checked at connect and every minute.
func (a *api) events(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	topics, err := live.ParseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return err
	}
	if err := a.maySee(r, actor, topics); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", mediaStream)
		return nil
	}
	sub, err := a.Hub.Subscribe(r.Context(), actor.Tenant, topics, httpx.Cursor(r))
	if err != nil {
		return err
	}
	defer sub.Close()
	stream, err := httpx.NewStream(w)
	if err != nil {
		return err
	}
	if sub.Reset && stream.Send("", "reset", struct{}{}) != nil {
		return nil
	}
	keepAlive, recheck := time.NewTicker(a.keepAlive), time.NewTicker(a.recheck)
	defer keepAlive.Stop()
	defer recheck.Stop()
	// While the pause lasts, ready is nil and signals collect.
	ready, pause := sub.Ready(), time.NewTimer(0)
	defer pause.Stop()
	for err == nil {
		select {
		case <-r.Context().Done():
			// The client is gone, which makes this a write into nothing, or the server
			// stops and cancels all requests.
			err = errors.Join(stream.End("shutdown"), errStreamEnded)
		case <-a.Stopping:
			err = errors.Join(stream.End("shutdown"), errStreamEnded)
		case <-keepAlive.C:
			err = stream.Comment()
		case <-recheck.C:
			if a.stillMay(r, actor, func(now loom.Actor) error { return a.maySee(r, now, topics) }) != nil {
				err = errors.Join(stream.End("forbidden"), errStreamEnded)
			}
		case <-pause.C:
			ready = sub.Ready()
		case <-ready:
			for _, s := range sub.Take() {
				err = errors.Join(err, stream.Send(s.Cursor, s.Topic, map[string][]string{"ids": s.IDs}))
			}
			ready = nil
			pause.Reset(a.pace)
		}
	}
	return nil // the client is gone, or was told to go
}

// errStreamEnded leaves a stream's loop; nobody sees it.
var errStreamEnded = errors.New("the stream has ended")

func (a *api) maySee(r *http.Request, actor loom.Actor, topics []string) error {
	for _, topic := range topics {
		if strings.HasPrefix(topic, "log:") { // for pages; programs follow the log itself
			return loom.NewError(loom.NotFound, "There is no topic “%.60s”; follow …/tasks/{t}/log instead.", topic)
		}
		if err := a.Clusters.MaySeeTopic(r.Context(), actor, topic); err != nil {
			return err
		}
	}
	return nil
}

// stillMay asks once more who the request acts as and whether he may go on:
// tokens are revoked, roles and owners change. A database that does not answer is
// no reason to end a stream.
func (a *api) stillMay(r *http.Request, before loom.Actor, check func(loom.Actor) error) error {
	now, err := a.identify(r)
	if err == nil && now.Account() != before.Account() {
		return loom.NewError(loom.Forbidden, "The request acts as someone else now.")
	}
	if err == nil {
		err = check(now)
	}
	if err == nil {
		return nil
	}
	switch loom.AsError(err).Kind {
	case loom.Internal, loom.Unavailable, loom.Throttled:
		return nil
	}
	return err
}
