package planner

import (
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
)

// FinishesBatch reports whether an operation with a task that failed for good still
// carries out what does not wait for that task before it fails itself. So it is where
// batch follows batch: the nodes that are in a batch with the failed one
// are taken down already, and serve again once their tasks are done. The next batch
// waits for all of this one, so it is never begun. Notifies says that the task only
// configures a follower of the changed services: its batches are halves.
func FinishesBatch(action loom.ClusterAction, notifies bool) bool {
	switch action {
	case loom.ClusterUpgrade, loom.ClusterResize, loom.ClusterUpdate:
		return true
	// One machine that does not answer keeps nobody off the others.
	case loom.ClusterAuthorize, loom.RepairRestart, loom.RepairConfigure, loom.RepairReboot:
		return true
	case loom.AddServices, loom.RemoveServices, loom.ClusterExpand, loom.ClusterShrink, loom.ClusterRepair, loom.Rollback:
		return notifies
	case loom.ClusterCreate, loom.ClusterDelete, loom.ClusterConfigure, loom.ClusterConfigureWithRestart,
		loom.StartServices, loom.StopServices, loom.RestartServices:
	}
	return false
}

// batches cuts the nodes that roll into batches and holds them against the
// healthy minimum.
func (d *delta) batches(change Change) ([][]*nodeDelta, error) {
	size := change.Batch
	if size == 0 {
		size = 1
	}
	if size < 0 {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "batch", Message: fmt.Sprintf("The batch is %d; it is at least 1 node.", size)}})
	}
	if m := change.MinHealthy; m != nil && *m < 0 {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "minHealthy", Message: fmt.Sprintf("The healthy minimum is %d; it is 0 or more.", *m)}})
	}
	var rolling []*nodeDelta
	for i := range d.changed {
		if d.changed[i].roll != keeps {
			rolling = append(rolling, &d.changed[i])
		}
	}
	var batches [][]*nodeDelta
	var errs []loom.FieldError
	refused := map[int]bool{}
	for batch := range slices.Chunk(rolling, size) {
		batches = append(batches, batch)
		errs = append(errs, d.checkHealthy(batch, len(batches), size, change.MinHealthy, refused)...)
	}
	if len(errs) == 0 {
		return batches, nil
	}
	messages := make([]string, len(errs))
	for i, e := range errs {
		messages[i] = e.Message
	}
	return nil, &loom.Error{Kind: loom.Invalid, Message: strings.Join(messages, " "), Fields: errs}
}

// checkHealthy names the services of which a batch would leave too few nodes up, each
// once: its first batch. Services that neither start nor stop are never up.
func (d *delta) checkHealthy(batch []*nodeDelta, number, size int, minimum *int, refused map[int]bool) []loom.FieldError {
	down := map[int]int{}
	for _, n := range batch {
		services := n.upgraded
		if n.roll == replaces {
			services = n.before
		}
		for _, s := range services {
			if d.old.services[s].Defines(loom.ActionStart) || d.old.services[s].Defines(loom.ActionStop) {
				down[s]++
			}
		}
	}
	var errs []loom.FieldError
	for s := range d.names {
		if down[s] == 0 || refused[s] {
			continue
		}
		have := d.up[s]
		need := max(have-size, 0)
		if have >= 2 {
			need = max(need, 1)
		}
		if minimum != nil {
			need = *minimum
		}
		if up := have - down[s]; up < need {
			refused[s] = true
			errs = append(errs, loom.FieldError{Field: "minHealthy", Message: fmt.Sprintf(
				"Batch %d takes down %d of the %d nodes with “%s” and leaves %d up; at least %d must be. Use a smaller batch than %d, or a lower minimum.",
				number, down[s], have, d.names[s], up, need, size)})
		}
	}
	return errs
}
