package ui

import (
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
)

// Tone is the colour family of a state. It only ever supports a word.
type Tone string

// The tones.
const (
	ToneOK   Tone = "ok"
	ToneRun  Tone = "run"
	ToneWarn Tone = "warn"
	ToneBad  Tone = "bad"
	ToneHold Tone = "hold"
	ToneIdle Tone = "idle"
)

// State is how a status is shown: a word, an icon whose shape differs from that
// of other states, and a tone.
type State struct {
	Word string
	Icon string
	Tone Tone
	// Detail follows the word in the badge, such as "62 %".
	Detail string
	// At is when it was seen, for what is a look and not a record; Now is the present.
	At, Now time.Time
	// Fact is what the state is of, "node 4f…", where a page may show it only once.
	Fact string
}

// Of gives the state as that of something, which a page shows once.
func (s State) Of(kind, key string) State {
	s.Fact = kind + " " + key
	return s
}

// With gives the state with a detail behind its word.
func (s State) With(detail string) State {
	s.Detail = detail
	return s
}

// known gives the state of a status, and for one outside its closed set the
// status itself without a tone, so that it is seen rather than hidden.
func known[S ~string](states map[S]State, status S) State {
	if s, ok := states[status]; ok {
		return s
	}
	return State{Word: string(status), Icon: "circle", Tone: ToneIdle}
}

var clusterStates = map[loom.ClusterStatus]State{
	loom.ClusterPending:      {Word: "Pending", Icon: "ring", Tone: ToneRun},
	loom.ClusterActive:       {Word: "Active", Icon: "check-circle", Tone: ToneOK},
	loom.ClusterIncomplete:   {Word: "Incomplete", Icon: "error", Tone: ToneBad},
	loom.ClusterInconsistent: {Word: "Inconsistent", Icon: "alert", Tone: ToneWarn},
	loom.ClusterTerminated:   {Word: "Terminated", Icon: "square", Tone: ToneIdle},
}

// ClusterState shows a cluster status.
func ClusterState(s loom.ClusterStatus) State { return known(clusterStates, s) }

// ClusterBadge shows what is going on with a cluster: the action that runs, with how much of
// it is done; else that it failed or was refused; else its health; else its status.
func ClusterBadge(status loom.ClusterStatus, p loom.Progress, h loom.ClusterHealth, now time.Time) State {
	state := ClusterState(status)
	switch {
	case status == loom.ClusterTerminated:
		if p.Status == loom.OperationFailed && p.Started.IsZero() {
			state = RefusedState()
		}
	case p.Status != "" && !p.Status.Final():
		if state = (State{Word: p.Action.Doing(), Icon: "ring", Tone: ToneRun}); p.Status == loom.OperationPaused {
			state.Icon, state.Tone, state.Detail = "pause", ToneHold, "paused"
		} else if p.Total > 0 {
			state.Detail = strconv.Itoa(100*p.Done/p.Total) + " %"
		}
	case status == loom.ClusterIncomplete || status == loom.ClusterInconsistent:
		if p.Status == "" || p.Status == loom.OperationComplete {
			break
		}
		if state = (State{Word: Capital(p.Action.Verb()) + " failed", Icon: "error", Tone: ToneBad}); p.Started.IsZero() {
			state = RefusedState()
		} else if p.Status == loom.OperationAborted {
			state = State{Word: Capital(p.Action.Verb()) + " aborted", Icon: "ban", Tone: ToneWarn}
		}
	case status == loom.ClusterActive && h.Status != loom.HealthOff && p.AwaitsLook(h.CheckedAt, now):
		state = CheckingState()
	case status == loom.ClusterActive && h.Status == loom.HealthStopped: // its services, as somebody wanted
		state = StoppedState()
	case status == loom.ClusterActive && h.Status != "" && h.Status != loom.HealthOff:
		if state = HealthState(h.Status, h.CheckedAt, now); len(h.Maintenance) > 0 {
			state.Tone = ToneIdle
		}
	case status == loom.ClusterActive:
		state.Tone = ToneIdle // nobody has looked yet
	}
	return state
}

// CheckingState is that of what an operation has just changed, until somebody looks.
func CheckingState() State { return State{Word: "Checking…", Icon: "ring", Tone: ToneIdle} }

// StoppedState is that of a cluster or node whose services were all stopped.
func StoppedState() State { return State{Word: "Stopped", Icon: "square", Tone: ToneIdle} }

// Capital makes the first letter a capital.
func Capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

var operationStates = map[loom.OperationStatus]State{
	loom.OperationNotSubmitted: {Word: "Waiting", Icon: "circle", Tone: ToneIdle},
	loom.OperationRunning:      {Word: "Running", Icon: "ring", Tone: ToneRun},
	loom.OperationPaused:       {Word: "Paused", Icon: "pause", Tone: ToneHold},
	loom.OperationFailing:      {Word: "Failing", Icon: "error", Tone: ToneBad},
	loom.OperationRollingBack:  {Word: "Rolling back", Icon: "back", Tone: ToneHold},
	loom.OperationComplete:     {Word: "Complete", Icon: "check-circle", Tone: ToneOK},
	loom.OperationFailed:       {Word: "Failed", Icon: "error", Tone: ToneBad},
	loom.OperationAborted:      {Word: "Aborted", Icon: "ban", Tone: ToneIdle},
	loom.OperationRolledBack:   {Word: "Rolled back", Icon: "ban", Tone: ToneIdle},
}

// OperationState shows an operation status; aborted tells a failing operation
// that someone aborted from one that fails by itself.
func OperationState(s loom.OperationStatus, aborted bool) State {
	state := known(operationStates, s)
	if s == loom.OperationFailing && aborted {
		state.Word = "Aborting"
	}
	return state
}

// RefusedState shows an operation that a hook refused.
func RefusedState() State { return State{Word: "Refused", Icon: "ban", Tone: ToneIdle} }

var taskStates = map[loom.TaskStatus]State{
	loom.TaskBlocked:  {Word: "Waiting", Icon: "circle", Tone: ToneIdle},
	loom.TaskReady:    {Word: "Waiting", Icon: "circle", Tone: ToneIdle},
	loom.TaskRunning:  {Word: "Running", Icon: "ring", Tone: ToneRun},
	loom.TaskComplete: {Word: "Complete", Icon: "check-circle", Tone: ToneOK},
	loom.TaskSkipped:  {Word: "Skipped", Icon: "ban", Tone: ToneIdle},
	loom.TaskFailed:   {Word: "Failed", Icon: "error", Tone: ToneBad},
	loom.TaskDropped:  {Word: "Dropped", Icon: "ban", Tone: ToneIdle},
}

// TaskState shows a task status.
func TaskState(s loom.TaskStatus) State { return known(taskStates, s) }

// RetryState shows a task that failed and waits to be tried again.
func RetryState() State { return State{Word: "Retrying", Icon: "rotate", Tone: ToneWarn} }

// TaskStateOf shows how a task stands, of one that is tried again that it is.
func TaskStateOf(t *loom.Task) State {
	if t.Again {
		return RetryState()
	}
	return TaskState(t.Status)
}

var attemptStates = map[loom.AttemptStatus]State{
	loom.AttemptRunning:     {Word: "Running", Icon: "ring", Tone: ToneRun},
	loom.AttemptComplete:    {Word: "Complete", Icon: "check-circle", Tone: ToneOK},
	loom.AttemptFailed:      {Word: "Failed", Icon: "error", Tone: ToneBad},
	loom.AttemptInterrupted: {Word: "Interrupted", Icon: "back", Tone: ToneHold},
	loom.AttemptAborted:     {Word: "Aborted", Icon: "ban", Tone: ToneIdle},
}

// AttemptState shows the outcome of one try of a task.
func AttemptState(s loom.AttemptStatus) State { return known(attemptStates, s) }

var healthStates = map[loom.HealthStatus]State{
	loom.HealthPassing:     {Word: "Passing", Icon: "check-circle", Tone: ToneOK},
	loom.HealthHealthy:     {Word: "Healthy", Icon: "check-circle", Tone: ToneOK},
	loom.HealthDegraded:    {Word: "Degraded", Icon: "alert", Tone: ToneWarn},
	loom.HealthFailing:     {Word: "Failing", Icon: "error", Tone: ToneBad},
	loom.HealthUnreachable: {Word: "Unreachable", Icon: "error", Tone: ToneBad},
	loom.HealthStopped:     {Word: "Machine stopped", Icon: "square", Tone: ToneBad},
	loom.HealthGone:        {Word: "Gone", Icon: "ban", Tone: ToneBad},
	loom.HealthChanging:    {Word: "Changing", Icon: "ring", Tone: ToneRun},
	loom.HealthUnknown:     {Word: "Unknown", Icon: "circle", Tone: ToneWarn},
	loom.HealthPartly:      {Word: "Partly stopped", Icon: "square", Tone: ToneHold},
	loom.HealthUnchecked:   {Word: "Not checked", Icon: "circle", Tone: ToneIdle},
	loom.HealthOff:         {Word: "Checks off", Icon: "circle", Tone: ToneIdle},
}

// HealthState shows what checks saw, at a time.
func HealthState(s loom.HealthStatus, at, now time.Time) State {
	state := known(healthStates, s)
	if !at.IsZero() {
		state.At, state.Now = at, now
	}
	return state
}

var nodeStates = map[loom.NodeState]State{
	loom.NodePlanned:  {Word: "Planned", Icon: "circle", Tone: ToneIdle},
	loom.NodeCreating: {Word: "Creating", Icon: "ring", Tone: ToneRun},
	loom.NodeReady:    {Word: "Ready", Icon: "check-circle", Tone: ToneOK},
	loom.NodeFailed:   {Word: "Failed", Icon: "error", Tone: ToneBad},
	loom.NodeDeleting: {Word: "Deleting", Icon: "ring", Tone: ToneHold},
	loom.NodeDeleted:  {Word: "Deleted", Icon: "square", Tone: ToneIdle},
}

// NodeState shows the state of a node.
func NodeState(s loom.NodeState) State { return known(nodeStates, s) }

var serviceStates = map[loom.ServiceState]State{
	loom.ServiceAbsent:    {Word: "Absent", Icon: "circle", Tone: ToneIdle},
	loom.ServiceInstalled: {Word: "Installed", Icon: "box", Tone: ToneRun},
	loom.ServiceStarted:   {Word: "Started", Icon: "circle", Tone: ToneIdle},
	loom.ServiceStopped:   {Word: "Stopped", Icon: "square", Tone: ToneIdle},
	loom.ServiceFailed:    {Word: "Failed", Icon: "error", Tone: ToneBad},
}

// ServiceState shows the state of a service on a node.
func ServiceState(s loom.ServiceState) State { return known(serviceStates, s) }

var resourceStates = map[loom.ResourceStatus]State{
	loom.ResourceInactive: {Word: "Inactive", Icon: "circle", Tone: ToneIdle},
	loom.ResourceStaged:   {Word: "Staged", Icon: "arrow-up", Tone: ToneRun},
	loom.ResourceActive:   {Word: "In use", Icon: "check", Tone: ToneOK},
	loom.ResourceRecalled: {Word: "Withdrawn", Icon: "arrow-down", Tone: ToneWarn},
}

// ResourceState shows the status of a plugin resource version.
func ResourceState(s loom.ResourceStatus) State { return known(resourceStates, s) }
