package live

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// round reads what is new to the subscriptions and hands it to them: one query for
// all that stand at the common place, and one for those that came while the round
// before was under way. It stays as small as what is followed, however much happens.
func (h *Hub) round(ctx context.Context) error {
	h.mu.Lock()
	common := h.at
	groups := map[*store.EventPlace][]*Subscription{}
	for s := range h.subs {
		groups[s.at] = append(groups[s.at], s)
	}
	if len(groups) == 0 {
		h.at = nil // nobody needs to know what happens from here on
	}
	h.mu.Unlock()
	if len(groups) == 0 {
		return nil
	}
	// The common place is read first. Those behind it are read later, so they have
	// seen all that the first ones have, and go on from the same place.
	var reached *store.EventPlace
	read := func(from *store.EventPlace, group []*Subscription) error {
		wanted, followers := topicsOf(group)
		news, err := store.NewEventsAllTenants(ctx, h.db, *from, wanted, maxIDs)
		if err != nil {
			return err
		}
		if reached == nil {
			reached = &news.At
		}
		deliver(group, followers, news, reached)
		return nil
	}
	if err := read(common, groups[common]); err != nil {
		return err
	}
	h.mu.Lock()
	h.at = reached
	h.mu.Unlock()
	delete(groups, common)
	for from, group := range groups {
		if err := read(from, group); err != nil {
			return err
		}
	}
	return nil
}

// topicsOf returns the topics that a group follows, each once, with their followers.
func topicsOf(group []*Subscription) ([]store.EventTopic, map[store.EventTopic][]*Subscription) {
	var wanted []store.EventTopic
	followers := map[store.EventTopic][]*Subscription{}
	for _, s := range group {
		for topic := range s.topics {
			key := store.EventTopic{Tenant: s.tenant, Topic: topic}
			if followers[key] == nil {
				wanted = append(wanted, key)
			}
			followers[key] = append(followers[key], s)
		}
	}
	return wanted, followers
}

// deliver hands news to a group. A subscription takes its events and its new place
// in one step: its cursor is never ahead of its signals.
func deliver(group []*Subscription, followers map[store.EventTopic][]*Subscription, news store.EventNews, at *store.EventPlace) {
	of := map[*Subscription][]loom.Event{}
	for _, e := range news.Events {
		for _, s := range followers[store.EventTopic{Tenant: e.Tenant, Topic: e.Topic}] {
			of[s] = append(of[s], e)
		}
	}
	for _, s := range group {
		s.take(of[s], at, news.Lost)
	}
}
