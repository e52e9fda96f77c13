package clusters

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

// LogInput picks lines of a task log. Attempt 0 means the newest. After and
// Before are sequence numbers, both exclusive, 0 for none. Tail takes that many
// of the last lines; else Limit (default 1000, at most 5000) of the first after
// After, or, with Before alone, of the last before it.
type LogInput struct {
	Attempt       int
	After, Before int
	Limit, Tail   int
}

// Limits of LogInput.
const (
	defaultLogLimit = 1000
	maxLogLimit     = 5000
)

// Log reads lines of a task's log, in order, and reports whether there are more in
// the direction that was read: after the last line, or, for Tail and Before, before
// the first. A task that has not begun has no lines.
func (u *Clusters) Log(ctx context.Context, actor loom.Actor, ref loom.TaskRef, in LogInput) ([]loom.LogLine, bool, error) {
	if err := u.see(ctx, actor, ref.Operation.Cluster); err != nil {
		return nil, false, err
	}
	if in.Attempt < 0 || in.After < 0 || in.Before < 0 || in.Limit < 0 || in.Tail < 0 || in.Limit > maxLogLimit || in.Tail > maxLogLimit {
		return nil, false, loom.InvalidFields([]loom.FieldError{{Field: "limit",
			Message: fmt.Sprintf("Numbers of a log are not negative, and at most %d lines are read at once.", maxLogLimit)}})
	}
	task, err := store.TaskByRef(ctx, u.q, actor.Tenant, ref)
	if isNotFound(err) {
		return nil, false, noTask(ref)
	}
	if err != nil {
		return nil, false, err
	}
	r := store.LogRange{Attempt: in.Attempt, After: in.After, Before: in.Before, Limit: in.Limit}
	if r.Attempt == 0 {
		r.Attempt = task.Attempt
	}
	if r.Limit == 0 {
		r.Limit = defaultLogLimit
	}
	if in.Tail > 0 {
		r.Limit, r.Newest = in.Tail, true
	} else if in.Before > 0 && in.After == 0 {
		r.Newest = true
	}
	return store.LogLines(ctx, u.q, actor.Tenant, task, r)
}

// LogSource names what a log of several tasks is of: an operation or, with Node, a
// node through all operations of its cluster.
type LogSource struct {
	Operation loom.OperationRef
	Node      loom.NodeID
	// Tasks are the numbers of the tasks whose lines are read, none for all.
	Tasks []int
}

// InterleavedInput picks lines of several tasks in the order in which they were
// stored. After is a cursor from before, "" for the beginning. Attempt and Levels
// filter. Limit is at most 5000, 0 for 1000.
type InterleavedInput struct {
	After   string
	Attempt int
	Levels  []string
	Limit   int
	// Whole takes also the newest lines, before which others may still appear: for
	// whoever reads once. Their cursors are of no use later.
	Whole bool
}

// InterleavedLine is a line with the cursor that goes on behind it.
type InterleavedLine struct {
	loom.LogLine
	Cursor string
}

// InterleavedLog is what was read. Every line of what lies between two cursors is in
// it: a line that is stored late is never skipped.
type InterleavedLog struct {
	Lines []InterleavedLine
	// More says that further lines can be read now, Waiting that some are stored
	// which cannot be read yet because others may still appear before them.
	More, Waiting bool
	// Over says that no more lines will come. It was true before the lines were read.
	Over bool
}

// Interleaved reads lines of all tasks of an operation or a node. NotFound as for
// the cluster; Invalid for a cursor of another kind.
func (u *Clusters) Interleaved(ctx context.Context, actor loom.Actor, of LogSource, in InterleavedInput) (InterleavedLog, error) {
	r := store.OrderedRange{Attempt: in.Attempt, Levels: in.Levels, Tasks: of.Tasks, Limit: in.Limit, Unsettled: in.Whole}
	if r.Limit == 0 {
		r.Limit = defaultLogLimit
	}
	place, ok := parseLogCursor(in.After)
	if !ok || in.Attempt < 0 || r.Limit < 0 || r.Limit > maxLogLimit {
		return InterleavedLog{}, noLogCursor()
	}
	r.After = place
	over, err := u.sourceOver(ctx, actor, of)
	if err != nil {
		return InterleavedLog{}, err
	}
	var log store.OrderedLog
	if of.Node != "" {
		log, err = store.NodeLog(ctx, u.q, actor.Tenant, of.Operation.Cluster, of.Node, r)
	} else {
		log, err = store.OperationLog(ctx, u.q, actor.Tenant, of.Operation, r)
	}
	out := InterleavedLog{Lines: make([]InterleavedLine, len(log.Lines)), More: log.More, Waiting: log.Waiting, Over: over}
	for i, l := range log.Lines {
		out.Lines[i] = InterleavedLine{l.LogLine, logCursor(l.Place)}
	}
	return out, err
}

// sourceOver checks that the actor may read the log, and reports whether it has ended:
// the operation has, or no operation works on the cluster of the node.
func (u *Clusters) sourceOver(ctx context.Context, actor loom.Actor, of LogSource) (bool, error) {
	id := of.Operation.Cluster
	if err := u.see(ctx, actor, id); err != nil {
		return false, err
	}
	if of.Node == "" {
		status, err := u.operationStatus(ctx, actor, of.Operation)
		return err == nil && status.Final(), err
	}
	none := loom.NewError(loom.NotFound, "Cluster %s has no node “%.40s”.", id, of.Node)
	if len(checkStorable("node", string(of.Node))) > 0 {
		return false, none
	}
	status, err := store.StatusAroundNode(ctx, u.q, actor.Tenant, id, of.Node)
	if isNotFound(err) {
		return false, none
	}
	return status != loom.ClusterPending, err
}

func logCursor(p store.LogPlace) string {
	text := strconv.FormatUint(p.Transaction, 36) + "." + strconv.FormatInt(p.Line, 36)
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

func parseLogCursor(cursor string) (p store.LogPlace, ok bool) {
	if cursor == "" {
		return p, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return p, false
	}
	transaction, line, ok := strings.Cut(string(text), ".")
	if !ok {
		return p, false
	}
	var lineErr error
	p.Transaction, err = strconv.ParseUint(transaction, 36, 64)
	p.Line, lineErr = strconv.ParseInt(line, 36, 64)
	return p, err == nil && lineErr == nil && p.Line >= 0
}

// maxFind is the longest text that a log is searched for, in characters.
const maxFind = 200

// FindInput says which lines of a log are looked for: those that hold a text without
// regard to case, and, with Errors, that went to stderr or have the level error. Limit
// is at most 5000, 0 for 1000.
type FindInput struct {
	Contains string
	Errors   bool
	Limit    int
}

func (in FindInput) match() (store.LogMatch, error) {
	m := store.LogMatch{Contains: in.Contains, Errors: in.Errors, Limit: in.Limit}
	if m.Limit == 0 {
		m.Limit = defaultLogLimit
	}
	errs := checkStorable("find", in.Contains)
	switch {
	case utf8.RuneCountInString(in.Contains) > maxFind:
		errs = append(errs, loom.FieldError{Field: "find", Message: fmt.Sprintf("A log is searched for at most %d characters.", maxFind)})
	case m.Limit < 0 || m.Limit > maxLogLimit:
		errs = append(errs, loom.FieldError{Field: "limit", Message: fmt.Sprintf("At most %d lines are read at once.", maxLogLimit)})
	}
	return m, loom.InvalidFields(errs)
}

// FindLog reads the first lines of the log of an attempt that match, 0 for the newest
// attempt, and reports whether there are more. NotFound as for the task, Invalid for a
// text that is too long.
func (u *Clusters) FindLog(ctx context.Context, actor loom.Actor, ref loom.TaskRef, attempt int, in FindInput) ([]loom.LogLine, bool, error) {
	if err := u.see(ctx, actor, ref.Operation.Cluster); err != nil {
		return nil, false, err
	}
	m, err := in.match()
	if err != nil {
		return nil, false, err
	}
	task, err := store.TaskByRef(ctx, u.q, actor.Tenant, ref)
	if isNotFound(err) {
		return nil, false, noTask(ref)
	}
	if err != nil {
		return nil, false, err
	}
	if attempt <= 0 {
		attempt = task.Attempt
	}
	return store.FindLogLines(ctx, u.q, actor.Tenant, task, attempt, m)
}

// CountLogErrors counts the lines of errors of an attempt of a task that the actor has
// just read, at most most of them: those that went to stderr or have the level error.
func (u *Clusters) CountLogErrors(ctx context.Context, actor loom.Actor, task loom.Task, attempt, most int) (int, error) {
	if err := u.see(ctx, actor, task.Ref.Operation.Cluster); err != nil {
		return 0, err
	}
	return store.CountLogLines(ctx, u.q, actor.Tenant, task, attempt, store.LogMatch{Errors: true, Limit: most})
}

// InterleavedBack reads the last matching lines of all tasks of an operation or a node
// before a cursor, "" being the end, in their order; More says that there are others
// before them. Cursors of the lines go on in both directions. Errors as Interleaved.
func (u *Clusters) InterleavedBack(ctx context.Context, actor loom.Actor, of LogSource, before string, in FindInput) (InterleavedLog, error) {
	place, ok := parseLogCursor(before)
	if !ok {
		return InterleavedLog{}, noLogCursor()
	}
	m, err := in.match()
	if err != nil {
		return InterleavedLog{}, err
	}
	over, err := u.sourceOver(ctx, actor, of)
	if err != nil {
		return InterleavedLog{}, err
	}
	m.Unsettled, m.Tasks = over, of.Tasks // nobody follows one that is over
	var log store.OrderedLog
	if of.Node != "" {
		log, err = store.NodeLogBack(ctx, u.q, actor.Tenant, of.Operation.Cluster, of.Node, place, m)
	} else {
		log, err = store.OperationLogBack(ctx, u.q, actor.Tenant, of.Operation, place, m)
	}
	out := InterleavedLog{Lines: make([]InterleavedLine, len(log.Lines)), More: log.More, Over: over}
	for i, l := range log.Lines {
		out.Lines[i] = InterleavedLine{l.LogLine, logCursor(l.Place)}
	}
	return out, err
}

// LogGap is what a reader who is too slow passes over.
type LogGap struct {
	// Lines is how many lines they are, 0 for none.
	Lines int
	// Cursor, of an interleaved log, and Seq, of the log of a task, are those of the
	// last of them.
	Cursor string
	Seq    int
}

// SkipLog passes over the lines of a task's log of those levels, none for all, behind
// line in.After, but for the newest in.Tail of them. NotFound as for Log.
func (u *Clusters) SkipLog(ctx context.Context, actor loom.Actor, ref loom.TaskRef, in LogInput, levels []string) (LogGap, error) {
	if err := u.see(ctx, actor, ref.Operation.Cluster); err != nil {
		return LogGap{}, err
	}
	task, err := store.TaskByRef(ctx, u.q, actor.Tenant, ref)
	if isNotFound(err) {
		return LogGap{}, noTask(ref)
	}
	if err != nil {
		return LogGap{}, err
	}
	last, lines, err := store.SkipTaskLog(ctx, u.q, actor.Tenant, task, store.LogRange{Attempt: in.Attempt, After: in.After}, levels, in.Tail)
	return LogGap{Lines: lines, Seq: last}, err
}

// SkipInterleaved passes over the lines of a log of several tasks behind in.After, but
// for the newest in.Limit of them. Nothing appears later among what it passes over.
// Errors as for Interleaved.
func (u *Clusters) SkipInterleaved(ctx context.Context, actor loom.Actor, of LogSource, in InterleavedInput) (LogGap, error) {
	place, ok := parseLogCursor(in.After)
	if !ok {
		return LogGap{}, noLogCursor()
	}
	if _, err := u.sourceOver(ctx, actor, of); err != nil {
		return LogGap{}, err
	}
	r := store.OrderedRange{After: place, Attempt: in.Attempt, Levels: in.Levels}
	var lines int
	var err error
	if of.Node != "" {
		place, lines, err = store.SkipNodeLog(ctx, u.q, actor.Tenant, of.Operation.Cluster, of.Node, r, in.Limit)
	} else {
		place, lines, err = store.SkipOperationLog(ctx, u.q, actor.Tenant, of.Operation, r, in.Limit)
	}
	return LogGap{Lines: lines, Cursor: logCursor(place)}, err
}

// KeepsCursor reports whether the line of a cursor of an interleaved log is still kept:
// without it nobody can tell what went with it. The cursor "" always is. Errors as for
// Interleaved.
func (u *Clusters) KeepsCursor(ctx context.Context, actor loom.Actor, of LogSource, cursor string) (bool, error) {
	place, ok := parseLogCursor(cursor)
	if !ok {
		return false, noLogCursor()
	}
	if cursor == "" || place.Line == 0 {
		return true, nil
	}
	before := logCursor(store.LogPlace{Transaction: place.Transaction, Line: place.Line - 1})
	log, err := u.Interleaved(ctx, actor, of, InterleavedInput{After: before, Limit: 1, Whole: true})
	return len(log.Lines) == 1 && log.Lines[0].Cursor == cursor, err
}

func noLogCursor() error {
	return invalid("after", "This is not the cursor of a line of such a log; start from the beginning.")
}
