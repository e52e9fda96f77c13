package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
)

// events is the stream of signals: one per topic and second at
// most. Rights are checked at connect and every few seconds.
func (a *api) events(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	topics, err := readTopics(r)
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
	sub, err := a.Hub.SubscribeAs(r.Context(), actor, topics, httpx.Cursor(r))
	if err != nil {
		return err
	}
	defer sub.Close()
	stream, err := httpx.NewStream(w, r)
	if err != nil {
		return err
	}
	stream.Signals(r.Context(), sub, httpx.SignalOptions{
		KeepAlive: a.keepAlive, Recheck: a.recheck, Pace: a.pace, Stopping: a.Stopping,
		May: func() error {
			return a.stillMay(r, actor, func(now loom.Actor) error { return a.maySee(r, now, topics) })
		},
	})
	return nil // the client is gone, or was told to go
}

// readTopics reads the topics of a stream; whether they may be followed is asked
// later. Invalid.
func readTopics(r *http.Request) ([]string, error) {
	const all = "Topics are clusters, cluster:{id}, op:{id}/{n}, rollouts, rollout:{n}, tenant, user:me and system, separated by commas."
	topics, err := live.ParseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "topics", Message: loom.AsError(err).Message + " " + all}})
	}
	for _, topic := range topics {
		kind, _, _ := strings.Cut(topic, ":")
		known := []string{"clusters", "rollouts", "tenant", "user:me", "system"}
		if !slices.Contains(known, topic) && !slices.Contains([]string{"cluster", "op", "log", "rollout"}, kind) {
			return nil, loom.InvalidFields([]loom.FieldError{{Field: "topics", Message: fmt.Sprintf("There is no topic “%.60s”. %s", topic, all)}})
		}
	}
	return topics, nil
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
	if err == nil && before.May(loom.See, before.InTenant()) == nil && now.May(loom.See, now.InTenant()) != nil {
		return loom.NewError(loom.Forbidden, "You are no administrator now.")
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
