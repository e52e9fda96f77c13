package clusters

import (
	"context"
	"fmt"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

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
// attempt, and says whether there are more. NotFound as for the task, Invalid for a
// text that is too long.
func (u *Clusters) FindLog(ctx context.Context, actor loom.Actor, ref loom.TaskRef, attempt int, in FindInput) ([]loom.LogLine, bool, error) {
	if err := u.see(ctx, actor, ref.Operation.Cluster); err != nil {
		return nil, false, err
	}
	m, err := in.match()
	if err != nil {
		return nil, false, err
	}
	task, err := store.TaskByRef(ctx, u.db, actor.Tenant, ref)
	if isNotFound(err) {
		return nil, false, noTask(ref)
	}
	if err != nil {
		return nil, false, err
	}
	if attempt <= 0 {
		attempt = task.Attempt
	}
	return store.FindLogLines(ctx, u.db, actor.Tenant, task, attempt, m)
}

// CountLogErrors counts the lines of errors of an attempt of a task that the actor has
// just read, at most most of them: those that went to stderr or have the level error.
func (u *Clusters) CountLogErrors(ctx context.Context, actor loom.Actor, task loom.Task, attempt, most int) (int, error) {
	if err := u.see(ctx, actor, task.Ref.Operation.Cluster); err != nil {
		return 0, err
	}
	return store.CountLogLines(ctx, u.db, actor.Tenant, task, attempt, store.LogMatch{Errors: true, Limit: most})
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
	m.Unsettled = over // nobody follows it any more
	var log store.OrderedLog
	if of.Node != "" {
		log, err = store.NodeLogBack(ctx, u.db, actor.Tenant, of.Operation.Cluster, of.Node, place, m)
	} else {
		log, err = store.OperationLogBack(ctx, u.db, actor.Tenant, of.Operation, place, m)
	}
	out := InterleavedLog{Lines: make([]InterleavedLine, len(log.Lines)), More: log.More, Over: over}
	for i, l := range log.Lines {
		out.Lines[i] = InterleavedLine{l.LogLine, logCursor(l.Place)}
	}
	return out, err
}
