// Package live tells open pages and log followers that something changed. One
// hub per web process reads new events once for all its streams; events carry no
// content, so followers fetch what they may see.
//
// It decides no permission: callers check topics before they subscribe and
// regularly after. What a newcomer gets wrong: ids of events are handed out before
// commit, so no id says what was seen. A place is the snapshot in which somebody
// read, and a cursor is its oldest open transaction: signals may repeat after a
// break, and never get lost.
package live

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// sweep repairs lost notices.
	sweep = 2 * time.Second
	// pace is the shortest time between the beginnings of two rounds: what happens
	// in between is read by one of them, coalesced by topic.
	pace = 100 * time.Millisecond
)

// Hub fans events out to subscriptions. Run it once per process.
type Hub struct {
	db  *sqlx.DB
	dsn string
	log *slog.Logger

	mu sync.Mutex
	// subs are all subscriptions; at is the place that all have reached, nil while
	// there are none and nothing is read.
	subs map[*Subscription]struct{}
	at   *store.EventPlace
	// logs are the followers of logs by the payload of notices, "" those of all.
	logs map[string]map[*logFollower]struct{}
}

// New makes a hub that reads from db and listens on a connection of its own.
func New(db *sqlx.DB, dsn string, log *slog.Logger) *Hub {
	return &Hub{db: db, dsn: dsn, log: log, subs: map[*Subscription]struct{}{}, logs: map[string]map[*logFollower]struct{}{}}
}

// Run reads and fans out until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	notices, err := store.Listen(ctx, h.dsn, store.EventChannel, store.LogChannel)
	if err != nil {
		return err
	}
	// Notices are taken while a round is under way: whoever does not take them
	// holds up the connection.
	due := make(chan struct{}, 1)
	due <- struct{}{}
	var rounds sync.WaitGroup
	defer rounds.Wait()
	rounds.Go(func() { h.rounds(ctx, due) })
	h.hear(ctx, notices, due)
	return nil
}

// hear turns notices into rounds that are due and followers of logs that wake,
// until ctx ends.
func (h *Hub) hear(ctx context.Context, notices <-chan store.Notice, due chan<- struct{}) {
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	readSoon := func() {
		select {
		case due <- struct{}{}:
		default:
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.wakeLogs("")
			readSoon()
		case n, ok := <-notices:
			switch {
			case !ok:
				return
			case n.Channel == "": // the connection was lost
				h.wakeLogs("")
				readSoon()
			case n.Channel != store.LogChannel:
				readSoon()
			default:
				h.wakeLogs(n.Payload)
			}
		}
	}
}

// rounds reads whenever it is due, at most once per pace, until ctx ends.
func (h *Hub) rounds(ctx context.Context, due <-chan struct{}) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
		}
		rest.Reset(pace)
		if err := h.round(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("cannot read events", "error", err.Error())
		}
	}
}

// ParseTopics splits a comma- or blank-separated list; more than ten are refused.
func ParseTopics(text string) ([]string, error) {
	topics := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if len(topics) == 0 {
		return nil, loom.NewError(loom.Invalid, "Name the topics to follow, such as “clusters”.")
	}
	if len(topics) > 10 {
		return nil, loom.NewError(loom.Invalid, "A stream follows at most 10 topics; this one names %d.", len(topics))
	}
	return topics, nil
}
