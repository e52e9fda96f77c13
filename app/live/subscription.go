package live

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"loom/app/loom"
	"loom/app/store"
)

// Signal says that something under a topic changed.
type Signal struct {
	// Cursor is what a client that got this far names when it comes back.
	Cursor string
	Topic  string
	// IDs are those of what changed; none mean that anything may have.
	IDs []string
	// Reset says that signals may have been lost: everything is to be loaded again.
	// Such a signal has no topic.
	Reset bool
}

// maxIDs bounds the ids of one signal; past it the signal names none.
const maxIDs = 200

// Subscription is one stream's interest in topics of one tenant. What waits in it
// is bounded by its topics, so a stream that does not take it holds nobody.
type Subscription struct {
	hub    *Hub
	tenant loom.TenantID
	topics map[string]bool
	// own is the topic of whoever follows, "" for nobody in particular.
	own string
	// unnamed says that the topic of all clusters names none.
	unnamed bool
	// resumed says that a cursor was given: something may have happened before.
	resumed bool

	mu      sync.Mutex
	pending map[string]*pending
	reset   bool
	// at is the place up to which events are pending or were taken. Only the hub
	// writes it once the subscription is known to it.
	at *store.EventPlace
	// taken is the cursor of what was taken.
	taken string
	wake  chan struct{}
	ends  []func()
}

// pending are the ids of a signal that waits, none when all names too many.
type pending struct {
	ids   []string
	known map[string]bool
	all   bool
}

// Subscribe begins to follow topics of a tenant, from cursor on when it is not
// empty. A cursor that cannot be understood, that is older than what is kept or of
// another server gives a reset. Close the subscription when done.
func (h *Hub) Subscribe(ctx context.Context, tenant loom.TenantID, topics []string, cursor string) (*Subscription, error) {
	return h.subscribe(ctx, &Subscription{tenant: tenant}, "", topics, cursor)
}

// SubscribeAs is Subscribe for a user, whose own topic is loom.TopicOwn. Only
// administrators are told which clusters changed: others would learn of those of others.
func (h *Hub) SubscribeAs(ctx context.Context, actor loom.Actor, topics []string, cursor string) (*Subscription, error) {
	return h.subscribe(ctx, &Subscription{tenant: actor.Tenant, unnamed: actor.May(loom.See, actor.InTenant()) != nil}, actor.User, topics, cursor)
}

func (h *Hub) subscribe(ctx context.Context, s *Subscription, user loom.UserID, topics []string, cursor string) (*Subscription, error) {
	s.hub, s.topics, s.resumed, s.pending, s.wake = h, map[string]bool{}, cursor != "", map[string]*pending{}, make(chan struct{}, 1)
	for _, t := range topics {
		if t == loom.TopicOwn && user != "" {
			s.own = loom.TopicOfUser + string(user)
			t = s.own
		}
		s.topics[t] = true
	}
	if err := h.join(ctx, s); err != nil {
		return nil, err
	}
	if cursor == "" {
		return s, nil
	}
	from, ok := parseCursor(cursor)
	if !ok {
		s.take(nil, nil, true)
		return s, nil
	}
	// The hub gives all that comes after the place at which s joined; what lies
	// between the cursor and now is read here, so that others need not wait for it.
	wanted, _ := topicsOf([]*Subscription{s})
	news, err := store.NewEventsAllTenants(ctx, h.db, from, wanted, maxIDs)
	if err != nil {
		s.Close()
		return nil, err
	}
	if !news.Lost {
		s.mu.Lock()
		s.taken = cursor // until what was missed is taken
		s.mu.Unlock()
	}
	s.take(news.Events, nil, news.Lost)
	return s, nil
}

// join makes s known to the hub, at the place that all have reached.
func (h *Hub) join(ctx context.Context, s *Subscription) error {
	if h.admit(s, nil) {
		return nil
	}
	now, err := store.EventPlaceAllTenants(ctx, h.db)
	if err != nil {
		return err
	}
	h.admit(s, &now)
	return nil
}

// admit lets s in at the common place, or at now where there is none.
func (h *Hub) admit(s *Subscription, now *store.EventPlace) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = now
	}
	if h.at == nil {
		return false
	}
	s.at, s.taken = h.at, formatCursor(h.at)
	h.subs[s] = struct{}{}
	return true
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

// take makes events pending and moves the place, nil for not at all.
func (s *Subscription) take(events []loom.Event, at *store.EventPlace, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		topic := e.Topic
		if topic == s.own {
			topic = loom.TopicOwn
		}
		ids := e.IDs
		if s.unnamed && topic == "clusters" {
			ids = nil
		}
		s.add(topic, ids)
	}
	if at != nil {
		s.at = at
	}
	if lost {
		s.reset = true
	}
	if lost || len(events) > 0 {
		s.signal()
	}
}

// add makes a signal pending; s.mu is held.
func (s *Subscription) add(topic string, ids []string) {
	p := s.pending[topic]
	if p == nil {
		p = &pending{known: map[string]bool{}}
		s.pending[topic] = p
	}
	for _, id := range ids {
		if !p.known[id] {
			p.known[id] = true
			p.ids = append(p.ids, id)
		}
	}
	if p.all = p.all || len(ids) == 0 || len(p.ids) > maxIDs; p.all {
		p.ids, p.known = nil, map[string]bool{}
	}
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Ready is signalled when Take has something to give.
func (s *Subscription) Ready() <-chan struct{} { return s.wake }

// Take returns what came since the last call, one signal per topic. Callers pace
// themselves: calling it once a second coalesces to that.
func (s *Subscription) Take() []Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.taken
	s.taken = formatCursor(s.at)
	var out []Signal
	if s.reset {
		clear(s.pending) // all is loaded again
		s.reset = false
		out = append(out, Signal{Reset: true})
	}
	for topic, p := range s.pending {
		ids := p.ids
		if ids == nil {
			ids = []string{}
		}
		out = append(out, Signal{Topic: topic, IDs: ids})
	}
	clear(s.pending)
	// Whoever got only some of them has to get the others again.
	for i := range out {
		out[i].Cursor = before
		if i == len(out)-1 {
			out[i].Cursor = s.taken
		}
	}
	return out
}

// Cursor is what a client that got all that was taken names when it comes back. It
// moves on also while nothing happens to the topics.
func (s *Subscription) Cursor() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 && !s.reset {
		s.taken = formatCursor(s.at)
	}
	return s.taken
}

// formatCursor names the oldest transaction whose events may still be missing.
func formatCursor(p *store.EventPlace) string {
	return strconv.FormatUint(p.Oldest(), 36) + "@" + p.Server
}

// parseCursor reads what formatCursor made.
func parseCursor(cursor string) (store.EventPlace, bool) {
	text, server, ok := strings.Cut(cursor, "@")
	// The database counts no further than 63 bits, and gives no number whose lower
	// half is 0.
	oldest, err := strconv.ParseUint(text, 36, 63)
	if !ok || err != nil || uint32(oldest) == 0 {
		return store.EventPlace{}, false
	}
	return store.EventPlaceAt(server, oldest), true
}

// Count returns how many streams of this process are open.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

// logFollower is woken when lines of a task were stored: a subscription by a
// signal under topic, anybody else through wake.
type logFollower struct {
	wake  chan struct{}
	sub   *Subscription
	topic string
}

// FollowLog returns a channel that is signalled when lines of a task were stored,
// and a function that ends it. Signals may be more or later than lines; the
// follower reads by number.
func (h *Hub) FollowLog(task loom.TaskID) (<-chan struct{}, func()) { return h.follow(logKey(task)) }

func (h *Hub) follow(key string) (<-chan struct{}, func()) {
	f := &logFollower{wake: make(chan struct{}, 1)}
	return f.wake, h.addLog(key, f)
}

// FollowLogs is FollowLog for all logs: readers of many tasks' lines look for what is theirs.
func (h *Hub) FollowLogs() (<-chan struct{}, func()) { return h.follow("") }

// FollowJournal is FollowLog for a journal.
func (h *Hub) FollowJournal(id loom.JournalID) (<-chan struct{}, func()) {
	return h.follow(store.JournalNotice + string(id))
}

// logKey is the payload of notices of the log of a task.
func logKey(task loom.TaskID) string { return strconv.FormatInt(int64(task), 10) }

// AddLog makes the subscription signal topic when lines of a task were stored,
// until it is closed. Notices of lines are not kept: a subscription that goes on
// from a cursor is signalled at once, for what it may have missed.
func (s *Subscription) AddLog(topic string, task loom.TaskID) {
	end := s.hub.addLog(logKey(task), &logFollower{sub: s, topic: topic})
	s.mu.Lock()
	s.ends = append(s.ends, end)
	s.mu.Unlock()
	if s.resumed {
		s.logged(topic)
	}
}

func (s *Subscription) logged(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(topic, nil)
	s.signal()
}

func (h *Hub) addLog(key string, f *logFollower) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.logs[key] == nil {
		h.logs[key] = map[*logFollower]struct{}{}
	}
	h.logs[key][f] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.logs[key], f)
		if len(h.logs[key]) == 0 {
			delete(h.logs, key)
		}
	}
}

// wakeLogs wakes the followers of a log by the payload of its notices, or all for "".
func (h *Hub) wakeLogs(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, followers := range h.logs {
		if key != "" && id != key && id != "" {
			continue
		}
		for f := range followers {
			if f.sub != nil {
				f.sub.logged(f.topic)
				continue
			}
			select {
			case f.wake <- struct{}{}:
			default:
			}
		}
	}
}
