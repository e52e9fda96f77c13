package work

import (
	"time"

	"loom/app/loom"
)

// Metrics is told what happens in a process, for its metrics. Its methods are called
// in the middle of work: they must neither block nor fail.
type Metrics interface {
	// LeaseHeld tells whether the lease of a kind of process is held.
	LeaseHeld(kind string, held bool)
	// AttemptEnded tells of an attempt: its status, or “late” when its result no
	// longer counted. Plugin is the type that did the work, "" when none got to.
	AttemptEnded(tenant loom.TenantID, action loom.TaskAction, plugin, outcome string, took time.Duration)
	// Hop tells how long a task that was due waited until its attempt began, by the
	// clock of the database.
	Hop(wait time.Duration)
	// Snoozed tells of a delivery that found no free worker.
	Snoozed()
	// Committed tells of a transaction that recorded tasks; what is “start” or “end”.
	Committed(what string, tasks int, took time.Duration)
	// Slots says where to read how many slots are used and assigned, of how many.
	Slots(read func() (used, assigned, capacity int))
	// Checked tells of a look at a node: passed, failed, refused, unreachable, off or skipped.
	Checked(outcome string)
	// Watched tells how many nodes the process watches, of how many the look is late, and
	// whether it is in doubt.
	Watched(nodes, late int, doubt bool)
	// Decided tells of a decision about an incident.
	Decided(i loom.Incident)
	// Delivered tells of a try of a delivery of a hook.
	Delivered(status loom.DeliveryStatus)
}

// noopMetrics is a Watch that looks away.
type noopMetrics struct{}

func (noopMetrics) LeaseHeld(string, bool) {}

func (noopMetrics) AttemptEnded(loom.TenantID, loom.TaskAction, string, string, time.Duration) {}

func (noopMetrics) Hop(time.Duration) {}

func (noopMetrics) Decided(loom.Incident) {}

func (noopMetrics) Snoozed() {}

func (noopMetrics) Committed(string, int, time.Duration) {}

func (noopMetrics) Slots(func() (used, assigned, capacity int)) {}

func (noopMetrics) Checked(string) {}

func (noopMetrics) Watched(int, int, bool) {}

func (noopMetrics) Delivered(loom.DeliveryStatus) {}

// multiplePlugins stands for the automators of a machine that is prepared for more
// than one.
const multiplePlugins = "several"

// pluginOf names the plugin type that carries out a task.
func pluginOf(spec *loom.TaskSpec) string {
	switch {
	case spec.Service != nil:
		return spec.Service.Action.Type
	case spec.Action != loom.ActionBootstrap:
		return spec.Provider.Type
	case len(spec.Automators) == 1:
		return spec.Automators[0]
	}
	return multiplePlugins
}

// outcomeOf is how an attempt ended, in the words of its status.
func outcomeOf(r loom.TaskResult, counted bool) string {
	switch {
	case !counted:
		return "late"
	case r.Aborted:
		return string(loom.AttemptAborted)
	case r.Interrupted:
		return string(loom.AttemptInterrupted)
	case r.Status != 0:
		return string(loom.AttemptFailed)
	}
	return string(loom.AttemptComplete)
}
