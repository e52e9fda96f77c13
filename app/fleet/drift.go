package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// summed reads what the files of those nodes are compared with whose files were summed.
func summed(ctx context.Context, tx *sqlx.Tx, seen []loom.HealthSeen) (map[loom.NodeID]map[string]store.ServiceFiles, error) {
	var nodes []loom.NodeID
	for i := range seen {
		if !seen[i].SummedAt.IsZero() {
			nodes = append(nodes, seen[i].Node)
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	return store.FilesOfNodes(ctx, tx, nodes)
}

// judgeDrift returns what is not as Loom left it on a node that was looked at, and the sums
// that files are compared with from now on, where they change. next is what else is known of
// the node now; its boot id is brought up to date.
func judgeDrift(before store.HeldHealth, next *store.HeldHealth, s *loom.HealthSeen, files map[string]store.ServiceFiles, at, now time.Time) (drift []loom.Drift, fresh []store.ServiceFiles) {
	if s.Changing {
		return next.Drift, nil
	}
	if s.SummedAt.IsZero() {
		drift = keptFiles(next.Drift, s)
	} else {
		drift, fresh = judgeFiles(next.Drift, s, files)
	}
	drift = append(drift, next.Machine.Drift()...)
	rebooted := s.BootID != "" && next.BootID != "" && next.BootID != s.BootID
	if rebooted {
		drift = append(drift, loom.Drift{Kind: loom.DriftReboot, Since: at})
	}
	for _, d := range next.Drift {
		if d.Kind == loom.DriftReboot && !rebooted && d.Since.After(next.ChangedAt) && now.Sub(d.Since) < loom.RebootShown {
			drift = append(drift, d)
		}
	}
	next.BootID = cmp.Or(s.BootID, next.BootID)
	return loom.DriftSince(drift, before.Drift, at), fresh
}

// keptFiles are the files that differed when they were last summed, of services that should
// still run. Where nothing is known of services now, that is all of them.
func keptFiles(before []loom.Drift, s *loom.HealthSeen) []loom.Drift {
	var kept []loom.Drift
	for _, d := range before {
		service, there := s.Services[d.Service]
		if d.Kind == loom.DriftFile && (len(s.Services) == 0 || there && service.Status != loom.HealthOff) {
			kept = append(kept, d)
		}
	}
	return kept
}

// judgeFiles compares the files of services.
func judgeFiles(before []loom.Drift, s *loom.HealthSeen, files map[string]store.ServiceFiles) (drift []loom.Drift, fresh []store.ServiceFiles) {
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		seen := s.Services[name].Files
		if len(seen) == 0 {
			continue
		}
		known := files[name]
		sums := known.Sums.After(seen, known.Configured)
		if known.Configured || !maps.Equal(sums, known.Sums) {
			fresh = append(fresh, store.ServiceFiles{Node: s.Node, Service: name, Sums: sums})
		}
		drift = append(drift, sums.Drift(name, seen, before)...)
	}
	return drift, fresh
}
