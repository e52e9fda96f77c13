package clusters

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// LogSource names what a log of several tasks is of: an operation or, with Node, a
// node through all operations of its cluster.
type LogSource struct {
	Operation loom.OperationRef
	Node      loom.NodeID
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
	r := store.OrderedRange{Attempt: in.Attempt, Levels: in.Levels, Limit: in.Limit, Unsettled: in.Whole}
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
		log, err = store.NodeLog(ctx, u.db, actor.Tenant, of.Operation.Cluster, of.Node, r)
	} else {
		log, err = store.OperationLog(ctx, u.db, actor.Tenant, of.Operation, r)
	}
	out := InterleavedLog{Lines: make([]InterleavedLine, len(log.Lines)), More: log.More, Waiting: log.Waiting, Over: over}
	for i, l := range log.Lines {
		out.Lines[i] = InterleavedLine{l.LogLine, logCursor(l.Place)}
	}
	return out, err
}

// sourceOver checks that the actor may read the log, and says whether it has ended:
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
	status, err := store.StatusAroundNode(ctx, u.db, actor.Tenant, id, of.Node)
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
