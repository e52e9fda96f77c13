package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// MaxRecorded is how many results one transaction records.
const MaxRecorded = 500

// Record records what a process saw, at most MaxRecorded nodes and each once, and returns what is known of
// them now, by node. A result is dropped if the node got another machine or its cluster a
// newer operation meanwhile, and all of them if the lease of the process is over.
func (f *Fleet) Record(ctx context.Context, process loom.ProcessID, seen []loom.HealthSeen) (map[loom.NodeID]loom.NodeHealth, error) {
	of := make(map[loom.NodeID]*loom.HealthSeen, len(seen))
	ids := make([]loom.NodeID, len(seen))
	for i := range seen {
		of[seen[i].Node], ids[i] = &seen[i], seen[i].Node
	}
	asked := time.Now()
	known := make(map[loom.NodeID]loom.NodeHealth, len(seen))
	err := store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		clear(known)
		live, err := store.ProcessLives(ctx, tx, process)
		if err != nil || !live {
			return err
		}
		held, now, err := store.LockHealth(ctx, tx, ids)
		if err != nil {
			return err
		}
		files, err := summed(ctx, tx, seen)
		if err != nil {
			return err
		}
		var changed []store.HeldHealth
		var baselines []store.ServiceFiles
		var n changes
		var i incidents
		for _, h := range held {
			s := of[h.Node]
			if !h.Ready || h.NowIncarnation != s.Incarnation || h.NowOperation != s.Operation || h.Busy && !s.Changing {
				continue
			}
			at := now.Add(min(0, s.At.Sub(asked)))
			next := judge(h, s, at, now)
			var fresh []store.ServiceFiles
			next.Drift, fresh = judgeDrift(h, &next, s, files[h.Node], at, now)
			for f := range fresh {
				fresh[f].SeenAt = now.Add(min(0, s.SummedAt.Sub(asked)))
			}
			baselines = append(baselines, fresh...)
			n.compare(h, next)
			i.add(h, next)
			known[h.Node] = next.NodeHealth
			changed = append(changed, next)
		}
		if err := store.UpdateHealth(ctx, tx, changed); err != nil {
			return err
		}
		if len(baselines) > 0 {
			if err := store.PutFiles(ctx, tx, baselines); err != nil {
				return err
			}
		}
		if err := i.record(ctx, tx, &n); err != nil {
			return err
		}
		return f.publish(ctx, tx, n)
	})
	return known, err
}

// judge returns what is known of a node after it was looked at, at that time by the clock of
// the database.
func judge(h store.HeldHealth, s *loom.HealthSeen, at, now time.Time) store.HeldHealth {
	next := h
	replaced := h.Incarnation != s.Incarnation
	if replaced {
		next.Services, next.SeenAt, next.CheckedAt, next.Load, next.Machine, next.Drift = nil, time.Time{}, time.Time{}, loom.NoLoad, loom.ListedMachine{}, nil
	}
	if s.Changing {
		next.Operation, next.Incarnation = s.Operation, s.Incarnation
		return become(next, now, loom.NodeSeen{Changing: true})
	}
	if replaced || h.Operation != s.Operation || h.Status == loom.HealthChanging {
		next.ChangedAt, next.BootID = now, ""
	}
	next.Incarnation, next.Operation = s.Incarnation, s.Operation
	next.SeenAt, next.CheckedAt = at, at
	switch {
	case !s.Unreachable:
		next.DownSince = time.Time{}
	case next.DownSince.IsZero() || replaced:
		next.DownSince = at
	}
	next.Refused = s.Refused
	if s.Interval > 0 {
		next.Interval = s.Interval
	}
	if len(s.Services) > 0 {
		next.Load = s.Load
		next.Services = services(next.Services, s, at, next.ChangedAt)
	}
	return become(next, now, loom.NodeSeen{Off: s.Off, SeenAt: at, Interval: next.Interval, Unreachable: s.Unreachable, DownSince: next.DownSince, Listed: next.Listed, Doubted: s.Doubted,
		Refused: s.Refused, Disk: next.Disk, Services: next.Services})
}

// services returns what is known of the services of a node after it was looked at.
func services(before map[string]loom.ServiceHealth, s *loom.HealthSeen, at, changed time.Time) map[string]loom.ServiceHealth {
	after := make(map[string]loom.ServiceHealth, len(s.Services))
	for name, r := range s.Services {
		h := before[name]
		switch {
		case r.Status != "":
			if h.Status != r.Status {
				h = loom.ServiceHealth{Status: r.Status, Since: at}
			}
		case r.Checked:
			check := r.Check // in a row are results at the interval that really holds
			check.Interval = max(check.WithDefaults().Interval, int(s.Interval.Seconds()))
			h = h.After(check, loom.CheckResult{At: at, Passed: r.Passed, Message: r.Message}, changed)
		case h.Status == "":
			h = loom.ServiceHealth{Status: loom.HealthUnknown, Since: at}
		}
		after[name] = h
	}
	return after
}

// changes are the clusters whose pages are out of date: in judged those with a node of another
// status, in shown all, in listed those whose row in a list is.
type changes struct {
	judged        map[loom.ClusterID]bool
	shown, listed map[loom.ClusterID]loom.TenantID
}

func (n *changes) begin() {
	if n.shown == nil {
		n.judged, n.shown, n.listed = map[loom.ClusterID]bool{}, map[loom.ClusterID]loom.TenantID{}, map[loom.ClusterID]loom.TenantID{}
	}
}

func (n *changes) compare(before, after store.HeldHealth) {
	n.begin()
	drifted := (len(before.Drift) > 0) != (len(after.Drift) > 0)
	services := !maps.EqualFunc(before.Services, after.Services, func(a, b loom.ServiceHealth) bool { return a.Status == b.Status })
	if before.Status != after.Status || services || drifted || before.Operation != after.Operation {
		n.judged[after.Cluster], n.shown[after.Cluster] = true, after.Tenant
	}
	if before.Wanted && after.CheckedAt.After(before.CheckedAt) || before.Message != after.Message || !slices.Equal(before.Drift, after.Drift) {
		n.shown[after.Cluster] = after.Tenant
	}
}

// publish judges clusters again and wakes their pages.
func (f *Fleet) publish(ctx context.Context, tx *sqlx.Tx, n changes) error {
	var events []loom.Event
	if len(n.judged) > 0 {
		held, err := store.LockClusterHealth(ctx, tx, slices.Sorted(maps.Keys(n.judged)))
		if err != nil {
			return err
		}
		statuses, notices := map[loom.ClusterID]loom.HealthStatus{}, map[loom.ClusterID]loom.HealthNotice{}
		for _, c := range held {
			if status := loom.JudgeCluster(c.Nodes); status != c.Status {
				statuses[c.Cluster], notices[c.Cluster] = status, loom.HealthNotice{From: c.Status, To: status}
				n.listed[c.Cluster] = c.Tenant
			}
		}
		if len(statuses) > 0 {
			if err := store.UpdateClusterHealth(ctx, tx, statuses); err != nil {
				return err
			}
			if err := store.InsertHealthNotices(ctx, tx, notices); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(n.listed)) {
		events = append(events, loom.Event{Tenant: n.listed[id], Topic: "clusters", IDs: []string{id.String()}})
	}
	for _, id := range slices.Sorted(maps.Keys(n.shown)) {
		events = append(events, loom.Event{Tenant: n.shown[id], Topic: "cluster:" + id.String()})
	}
	return store.InsertEvents(ctx, tx, events...)
}

// Judge makes unknown what nobody heard of for too long, forgets machines and maintenance that
// are gone, and asks the providers of machines that do not answer. It returns how many nodes
// became unknown.
func (f *Fleet) Judge(ctx context.Context) (int, error) {
	unknown, err := f.judgeStale(ctx)
	return unknown, errors.Join(err, f.askProviders(ctx))
}

func (f *Fleet) judgeStale(ctx context.Context) (int, error) {
	stale, err := store.StaleHealthAllTenants(ctx, f.db, MaxRecorded)
	if err != nil {
		return 0, err
	}
	err = store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		if err := store.DropMaintenanceAllTenants(ctx, tx); err != nil {
			return err
		}
		gone, err := store.DropHealthAllTenants(ctx, tx)
		if err != nil || len(gone) == 0 {
			return err
		}
		var n changes
		n.begin()
		for _, id := range gone {
			n.judged[id] = true
		}
		return f.publish(ctx, tx, n)
	})
	if err != nil || len(stale) == 0 {
		return 0, err
	}
	unknown := 0
	return unknown, store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		held, now, err := store.LockHealth(ctx, tx, stale)
		if err != nil {
			return err
		}
		var changed []store.HeldHealth
		var n changes
		for _, h := range held {
			next := become(h, now, loom.NodeSeen{SeenAt: h.SeenAt, Interval: h.Interval, Services: h.Services, Disk: h.Disk})
			if next.Status != loom.HealthUnknown {
				continue // somebody looked meanwhile
			}
			n.compare(h, next)
			changed = append(changed, next)
		}
		unknown = len(changed)
		if err := store.UpdateHealth(ctx, tx, changed); err != nil {
			return err
		}
		return f.publish(ctx, tx, n)
	})
}

// become gives a node the status that follows from what was seen.
func become(h store.HeldHealth, now time.Time, seen loom.NodeSeen) store.HeldHealth {
	status, message := loom.JudgeNode(seen, now)
	if status != h.Status {
		h.Since = now
	}
	h.Status, h.Message = status, message
	return h
}
