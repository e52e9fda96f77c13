package processes

import (
	"cmp"
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// NodeUseInput asks for the use of one node.
type NodeUseInput struct {
	Cluster loom.ClusterID
	Node    loom.NodeID
	// Until ends the picture, as for a node that is gone; the zero time and what is in
	// the future are now.
	Until time.Time
	// Zone is whose calendar counts; nil is UTC.
	Zone *time.Location
}

// NodeUse is for how long a node had a machine: from First until End, by Marks.
type NodeUse struct {
	First, End time.Time
	// GroupBy is hour, day, week or month: what suits the time that is shown.
	GroupBy string
	// Marks bound the intervals: one more than there are of Hours.
	Marks []time.Time
	Hours []float64
	Total float64
}

// leastNodeUse is the shortest time that is shown, so that a node that is new does not
// fill a picture by itself.
const leastNodeUse = 12 * time.Hour

// NodeUse sums up for how long a node of a cluster had a machine, over all its life; ok
// is false when it never had one. Others than administrators get the use of their own
// clusters only. Errors: Forbidden without the right to read.
func (f *Processes) NodeUse(ctx context.Context, actor loom.Actor, in NodeUseInput) (u NodeUse, ok bool, err error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return u, false, err
	}
	filter := store.UsageFilter{Tenant: actor.Tenant, User: store.SeenBy(actor), Cluster: in.Cluster, Node: in.Node}
	first, ok, now, err := store.FirstUseAllTenants(ctx, f.db, filter)
	if err != nil || !ok {
		return u, false, err
	}
	zone := cmp.Or(in.Zone, time.UTC)
	u.First, u.End = time.Unix(first, 0).In(zone), time.Unix(now, 0).In(zone)
	if !in.Until.IsZero() && in.Until.Before(u.End) {
		u.End = in.Until.In(zone).Truncate(time.Second)
	}
	if !u.First.Before(u.End) {
		return u, false, nil
	}
	u.GroupBy = nodeUseGroup(u.End.Sub(u.First))
	begin := u.First
	if earliest := u.End.Add(-leastNodeUse); earliest.Before(begin) {
		begin = earliest
	}
	if u.Marks, err = calendar(beginOf(begin, u.GroupBy), u.End, u.GroupBy); err != nil {
		return u, false, err
	}
	u.Hours = make([]float64, len(u.Marks)-1)
	_, err = f.used(ctx, filter, "", u.Marks, len(u.Hours), func(i int, _ string, hours float64) {
		u.Hours[i] = hours
		u.Total += hours
	})
	return u, err == nil, err
}

// nodeUseGroup is by what a life of that length is shown: at most some 60 bars, but for
// the months of one that is very long.
func nodeUseGroup(life time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case life <= 2*day:
		return "hour"
	case life <= 60*day:
		return "day"
	case life <= 365*day:
		return "week"
	}
	return "month"
}

// beginOf gives the beginning of the hour, day, week or month that a time is in, by the
// calendar of its zone.
func beginOf(at time.Time, group string) time.Time {
	year, month, day := at.Date()
	switch group {
	case "hour":
		// Counted from what the clock shows, as NextOf does.
		return at.Add(-time.Duration(at.Minute())*time.Minute - time.Duration(at.Second())*time.Second - time.Duration(at.Nanosecond()))
	case "week":
		return time.Date(year, month, day-(int(at.Weekday())+6)%7, 0, 0, 0, 0, at.Location())
	case "month":
		return time.Date(year, month, 1, 0, 0, 0, 0, at.Location())
	}
	return time.Date(year, month, day, 0, 0, 0, 0, at.Location())
}
