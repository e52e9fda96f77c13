package clusters

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// LogGap is what a reader who is too slow passes over.
type LogGap struct {
	// Skipped is how many lines they are, 0 for none.
	Skipped int
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
	task, err := store.TaskByRef(ctx, u.db, actor.Tenant, ref)
	if isNotFound(err) {
		return LogGap{}, noTask(ref)
	}
	if err != nil {
		return LogGap{}, err
	}
	last, lines, err := store.SkipTaskLog(ctx, u.db, actor.Tenant, task, store.LogRange{Attempt: in.Attempt, After: in.After}, levels, in.Tail)
	return LogGap{Skipped: lines, Seq: last}, err
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
		place, lines, err = store.SkipNodeLog(ctx, u.db, actor.Tenant, of.Operation.Cluster, of.Node, r, in.Limit)
	} else {
		place, lines, err = store.SkipOperationLog(ctx, u.db, actor.Tenant, of.Operation, r, in.Limit)
	}
	return LogGap{Skipped: lines, Cursor: logCursor(place)}, err
}

// KeepsCursor says whether the line of a cursor of an interleaved log is still kept:
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
