// Package live tells open pages and log followers that something changed. One
// hub per web process reads new event rows once for all its streams; events
// carry no content, so followers fetch what they may see.
//
// It decides no permission: callers check topics before they subscribe and
// regularly after. Ids of events are handed out before commit, so the hub looks
// back a few seconds instead of trusting the highest id; signals may repeat.
package live

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// lookBack covers the time between an event's id being taken and its commit.
	lookBack = 10 * time.Second
	// sweep repairs lost notices.
	sweep = 2 * time.Second
	// kept is how long events stay readable; an older cursor gives a reset.
	kept = time.Hour
	// batch bounds one read.
	batch = 5000
)

// Hub fans events out to subscriptions. Run it once per process.
type Hub struct {
	db  *sqlx.DB
	dsn string
	log *slog.Logger

	mu   sync.Mutex
	subs map[*Subscription]struct{}
	logs map[loom.TaskID]map[*logFollower]struct{}
}

// logFollower is woken when lines of a task were stored: a subscription by a
// signal under topic, anybody else through wake.
type logFollower struct {
	wake  chan struct{}
	sub   *Subscription
	topic string
}

// New makes a hub that reads from db and listens on a connection of its own.
func New(db *sqlx.DB, dsn string, log *slog.Logger) *Hub {
	return &Hub{db: db, dsn: dsn, log: log, subs: map[*Subscription]struct{}{}, logs: map[loom.TaskID]map[*logFollower]struct{}{}}
}

// Run reads and fans out until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	notices, err := store.Listen(ctx, h.dsn, store.EventChannel, store.LogChannel)
	if err != nil {
		return err
	}
	reader := newReader()
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	for {
		if err := h.read(ctx, reader); err != nil && ctx.Err() == nil {
			h.log.Warn("cannot read events", "error", err.Error())
		}
		if !h.wait(ctx, notices, tick.C) {
			return nil
		}
	}
}

// wait returns when events should be read, false when ctx ended.
func (h *Hub) wait(ctx context.Context, notices <-chan store.Notice, tick <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			h.wakeLogs(0)
			return true
		case n, ok := <-notices:
			if !ok {
				return false
			}
			if n.Channel != store.LogChannel {
				return true
			}
			if id, err := strconv.ParseInt(n.Payload, 10, 64); err == nil {
				h.wakeLogs(loom.TaskID(id))
			}
		}
	}
}

// reader remembers which events were passed on.
type reader struct {
	from int64 // everything up to here is older than lookBack, or was seen
	seen map[int64]time.Time
}

func newReader() *reader { return &reader{seen: map[int64]time.Time{}} }

func (h *Hub) read(ctx context.Context, r *reader) error {
	events, err := store.EventsSinceAllTenants(ctx, h.db, r.from, lookBack*2, batch)
	if err != nil {
		return err
	}
	fresh := events[:0]
	for _, e := range events {
		if _, ok := r.seen[e.ID]; ok {
			continue
		}
		r.seen[e.ID] = e.Time
		fresh = append(fresh, e)
	}
	// Forget what is too old to come up again, by the database's clock.
	if len(events) > 0 {
		newest := events[len(events)-1].Time
		for id, at := range r.seen {
			if newest.Sub(at) > lookBack {
				delete(r.seen, id)
				r.from = max(r.from, id)
			}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		for _, e := range fresh {
			s.offer(e)
		}
	}
	return nil
}

// Signal says that something under a topic changed. Cursor names it for
// reconnecting.
type Signal struct {
	Cursor string
	Topic  string
	IDs    []string
}

// Subscription is one stream's interest in topics of one tenant.
type Subscription struct {
	hub    *Hub
	tenant loom.TenantID
	topics map[string]bool

	mu      sync.Mutex
	pending map[string]*pending
	highest int64
	wake    chan struct{}
	ends    []func()
	// Reset says that the cursor was older than what is kept.
	Reset bool
}

type pending struct {
	ids   []string
	known map[string]bool
}

// Subscribe begins to follow topics of a tenant, from cursor on when it is not
// empty. Close the subscription when done.
func (h *Hub) Subscribe(ctx context.Context, tenant loom.TenantID, topics []string, cursor string) (*Subscription, error) {
	s := &Subscription{hub: h, tenant: tenant, topics: map[string]bool{}, pending: map[string]*pending{}, wake: make(chan struct{}, 1)}
	for _, t := range topics {
		s.topics[t] = true
	}
	h.mu.Lock()
	h.subs[s] = struct{}{}
	h.mu.Unlock()
	if cursor == "" {
		return s, nil
	}
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || after < 0 {
		s.Reset = true
		return s, nil
	}
	oldest, err := store.OldestEventAllTenants(ctx, h.db)
	if err != nil {
		s.Close()
		return nil, err
	}
	if oldest > after+1 {
		s.Reset = true
		return s, nil
	}
	missed, err := store.EventsSinceAllTenants(ctx, h.db, after, kept, batch)
	if err != nil {
		s.Close()
		return nil, err
	}
	if len(missed) == batch { // perhaps not all of them
		s.Reset = true
		return s, nil
	}
	for _, e := range missed {
		s.offer(e)
	}
	return s, nil
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.mu.Lock()
	ends := s.ends
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subs, s)
}

// maxIDs bounds the ids of one signal; past it the follower fetches everything.
const maxIDs = 200

func (s *Subscription) offer(e store.StoredEvent) {
	if e.Tenant != s.tenant || !s.topics[e.Topic] {
		return
	}
	s.add(e.Topic, e.IDs, e.ID)
}

// add makes a signal pending; id 0 leaves the cursor as it is.
func (s *Subscription) add(topic string, ids []string, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[topic]
	if p == nil {
		p = &pending{known: map[string]bool{}}
		s.pending[topic] = p
	}
	for _, id := range ids {
		if !p.known[id] && len(p.ids) < maxIDs {
			p.known[id] = true
			p.ids = append(p.ids, id)
		}
	}
	s.highest = max(s.highest, id)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Ready is signalled when Take has something to give.
func (s *Subscription) Ready() <-chan struct{} { return s.wake }

// Take gives what came since the last call, one signal per topic. Callers pace
// themselves: calling it once a second coalesces to that.
func (s *Subscription) Take() []Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Signal
	cursor := ""
	if s.highest > 0 {
		cursor = strconv.FormatInt(s.highest, 10)
	}
	for topic, p := range s.pending {
		ids := p.ids
		if ids == nil {
			ids = []string{}
		}
		out = append(out, Signal{Cursor: cursor, Topic: topic, IDs: ids})
	}
	clear(s.pending)
	return out
}

// FollowLog gives a channel that is signalled when lines of a task were stored,
// and a function that ends it. Signals may be more or later than lines; the
// follower reads by number.
func (h *Hub) FollowLog(task loom.TaskID) (<-chan struct{}, func()) {
	f := &logFollower{wake: make(chan struct{}, 1)}
	return f.wake, h.addLog(task, f)
}

// FollowLogs is FollowLog for the logs of all tasks: readers of many tasks' lines
// look for what is theirs.
func (h *Hub) FollowLogs() (<-chan struct{}, func()) { return h.FollowLog(0) }

// AddLog makes the subscription signal topic when lines of a task were stored,
// until it is closed.
func (s *Subscription) AddLog(topic string, task loom.TaskID) {
	end := s.hub.addLog(task, &logFollower{sub: s, topic: topic})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, end)
}

func (h *Hub) addLog(task loom.TaskID, f *logFollower) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.logs[task] == nil {
		h.logs[task] = map[*logFollower]struct{}{}
	}
	h.logs[task][f] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.logs[task], f)
		if len(h.logs[task]) == 0 {
			delete(h.logs, task)
		}
	}
}

// wakeLogs wakes the followers of a task, or of all for 0.
func (h *Hub) wakeLogs(task loom.TaskID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, followers := range h.logs {
		if task != 0 && id != task && id != 0 {
			continue
		}
		for f := range followers {
			if f.sub != nil {
				f.sub.add(f.topic, nil, 0)
				continue
			}
			select {
			case f.wake <- struct{}{}:
			default:
			}
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
