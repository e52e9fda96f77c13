package live

import "loom/app/loom"

// logFollower is woken when lines of a task were stored: a subscription by a
// signal under topic, anybody else through wake.
type logFollower struct {
	wake  chan struct{}
	sub   *Subscription
	topic string
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
// until it is closed. Notices of lines are not kept: a subscription that goes on
// from a cursor is signalled at once, for what it may have missed.
func (s *Subscription) AddLog(topic string, task loom.TaskID) {
	end := s.hub.addLog(task, &logFollower{sub: s, topic: topic})
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
