package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Times and sizes of writing journals.
const (
	journalEvery = 200 * time.Millisecond
	journalChunk = 64 << 10    // bytes that are stored without waiting
	journalLook  = time.Second // between two looks whether somebody reads
	journalEnd   = 10 * time.Second
)

// OpenJournal begins to follow the journal of a service on a node that the actor may operate,
// or goes on with the one that he follows already. Read it with Journal, at least every
// 30 s. It is in the audit. NotFound, Invalid; Conflict where there is nothing to follow;
// Throttled for too many; Unavailable when no provisioner runs.
func (f *Fleet) OpenJournal(ctx context.Context, actor loom.Actor, j loom.Journal) (loom.JournalID, error) {
	if err := f.CheckJournal(ctx, actor, j); err != nil {
		return "", err
	}
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (loom.JournalID, error) {
		ofUser, ofNode, err := store.OpenJournals(ctx, tx, actor.Tenant, actor.User, j.Node)
		if err != nil {
			return "", err
		}
		if j.Follow {
			id, err := store.SameJournal(ctx, tx, actor.Tenant, actor.User, j)
			if err != nil || id != "" {
				return id, err
			}
		}
		if err := mayOpen(ctx, tx, actor.Tenant, ofUser, ofNode); err != nil {
			return "", err
		}
		id, err := store.InsertJournal(ctx, tx, actor.Tenant, actor.User, j)
		if err != nil {
			return "", err
		}
		return id, store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "read", Kind: "journal", Object: j.Cluster.String() + "/" + string(j.Node), Result: "ok",
			After: map[string]any{"service": j.Service, "lines": j.Lines, "follow": j.Follow}})
	})
}

// mayOpen reports whether a journal may be opened beside those that are open.
func mayOpen(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ofUser, ofNode int) error {
	var busy *loom.Error
	switch {
	case ofUser >= loom.JournalsOfUser:
		busy = loom.NewError(loom.Throttled, "You have %d journals open. One ends 30 s after you leave it.", ofUser)
	case ofNode >= loom.JournalsOfNode:
		busy = loom.NewError(loom.Throttled, "%d journals of this node are open. One ends 30 s after its reader leaves it.", ofNode)
	}
	if busy != nil {
		busy.RetryAfter = loom.JournalWanted
		return busy
	}
	anybody, err := store.AnyProvisioner(ctx, tx, tenant)
	if err == nil && !anybody {
		err = loom.NewError(loom.Unavailable, "No provisioner is running. Start one with “loom provisioner”, or ask whoever runs Loom to.")
	}
	return err
}

// CheckJournal reports whether the actor may operate a node, the service is there, and Loom
// knows where its journal is: nil, NotFound, Forbidden, Invalid or Conflict.
func (f *Fleet) CheckJournal(ctx context.Context, actor loom.Actor, j loom.Journal) error {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return err
	}
	if err := f.may(ctx, actor, loom.Operate, j.Cluster); err != nil {
		return err
	}
	if j.Lines < 0 || j.Lines > loom.MaxJournalLines {
		return loom.InvalidFields([]loom.FieldError{{Field: "lines", Message: "A number from 0 to 1000."}})
	}
	n, err := store.NodeByID(ctx, f.db, actor.Tenant, j.Cluster, j.Node)
	if errors.Is(err, loom.NotFound) {
		return loom.NewError(loom.NotFound, "Cluster %s has no node “%.40s”.", j.Cluster, j.Node)
	}
	if err != nil {
		return err
	}
	if !slices.Contains(n.Services, j.Service) {
		return loom.NewError(loom.NotFound, "Node %s has no service “%.60s”.", n.Hostname, j.Service)
	}
	if n.State != loom.NodeReady {
		return loom.NewError(loom.Conflict, "Node %s has no machine that is ready.", n.Hostname)
	}
	of, err := store.ChecksOfCluster(ctx, f.db, actor.Tenant, j.Cluster)
	if err != nil {
		return err
	}
	if service := of.Services[j.Service]; !service.HasJournal() {
		return loom.NewError(loom.Conflict, "The service %s does not say where its logs are. An administrator adds units or files under “Logs” of the service in the catalog; an upgrade brings them to this cluster.", j.Service)
	}
	return nil
}

// Journal reads lines of a journal of the actor's after one, at most limit, and says by that
// that he goes on reading. NotFound, also once he may not operate the cluster any longer.
func (f *Fleet) Journal(ctx context.Context, actor loom.Actor, id loom.JournalID, after, limit int) (loom.Journal, []loom.JournalLine, error) {
	// Before the lines: of a journal that has ended they are all there.
	j, err := store.JournalByID(ctx, f.db, actor.Tenant, actor.User, id)
	if err == nil {
		err = f.may(ctx, actor, loom.Operate, j.Cluster)
	}
	if errors.Is(err, loom.NotFound) {
		return j, nil, loom.NewError(loom.NotFound, "There is no such journal any longer.")
	}
	if err != nil {
		return j, nil, err
	}
	if !j.Ended {
		if err := store.WantJournal(ctx, f.db, actor.Tenant, id); err != nil {
			return j, nil, err
		}
	}
	lines, err := store.JournalLines(ctx, f.db, actor.Tenant, id, after, limit)
	return j, lines, err
}

// TrimJournals deletes journals 10 minutes after their end.
func (f *Fleet) TrimJournals(ctx context.Context) error {
	return store.TrimJournalsAllTenants(ctx, f.db, 10*time.Minute)
}

// Follower follows journals on machines; package provisioner has the real one.
type Follower interface {
	// Follow sends lines to the sink until ctx ends or the journal does, and returns why in
	// words for its reader, without secrets.
	Follow(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string
}

// ErrNotForUs says that a journal waits for another provisioner.
var ErrNotForUs = errors.New("this journal is for another provisioner")

// ended is why a journal ends, in words for its reader.
type ended string

// Error returns the words.
func (e ended) Error() string { return string(e) }

// Ends of journals.
const (
	timeIsUp ended = "A journal is followed for 10 minutes; open it again."
	isFull   ended = "A journal shows 1 MB; open it again."
	isUnread ended = loom.JournalUnread
)

// FollowJournal follows a journal for a provisioner until nobody reads it, it is too long, or
// ctx ends. ErrNotForUs leaves it where it is; one that is gone or over is no error.
func (f *Fleet) FollowJournal(ctx context.Context, process loom.ProcessID, id loom.JournalID, target func(context.Context, loom.Journal, loom.HealthNode) (*loom.JournalTarget, error), follower Follower) error {
	var taken, open bool
	var node loom.HealthNode
	j, err := store.InTx(ctx, f.db, func(tx *sqlx.Tx) (j loom.Journal, err error) {
		j, node, taken, open, err = store.TakeJournalAllTenants(ctx, tx, id, process)
		return j, err
	})
	switch {
	case err != nil, !open:
		return err
	case !taken:
		return ErrNotForUs
	}
	message, err := f.follow(ctx, process, j, node, target, follower)
	if ctx.Err() != nil || err != nil {
		message = loom.JournalLost
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalEnd)
	defer cancel()
	return errors.Join(err, store.Exec(ending, f.db, func(tx *sqlx.Tx) error { return store.EndJournal(ending, tx, j.Tenant, id, process, message) }))
}

func (f *Fleet) follow(ctx context.Context, process loom.ProcessID, j loom.Journal, node loom.HealthNode, target func(context.Context, loom.Journal, loom.HealthNode) (*loom.JournalTarget, error), follower Follower) (string, error) {
	t, err := target(ctx, j, node)
	if err != nil {
		return "", err
	}
	if t.Trouble != "" {
		return t.Trouble, nil
	}
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limit := time.AfterFunc(loom.JournalTime, func() { stop(timeIsUp) })
	defer limit.Stop()
	log := &journalLog{fleet: f, journal: j, process: process, stop: stop, full: make(chan struct{}, 1),
		meter: loom.JournalMeter{Past: j.Lines * (1 + len(t.Logs.Files))}}
	var storing sync.WaitGroup
	writing, last := context.WithCancel(context.WithoutCancel(ctx))
	storing.Go(func() { log.run(writing) })
	message := follower.Follow(following, t, log)
	last()
	storing.Wait()
	var why ended
	if errors.As(context.Cause(following), &why) {
		message = string(why)
	}
	return message, nil
}

// journalLog stores the lines of a journal in chunks. It is the sink of a Follower.
type journalLog struct {
	fleet   *Fleet
	journal loom.Journal
	process loom.ProcessID
	stop    context.CancelCauseFunc
	full    chan struct{} // a chunk is

	mu    sync.Mutex
	meter loom.JournalMeter
	over  bool // no line is taken any longer
	seq   int
	lines []loom.JournalLine
	bytes int
}

// Log takes a line, unless lines come too fast.
func (l *journalLog) Log(_, text string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.gap(now, now)
	take, full := l.meter.Take(text, now)
	if full {
		l.over = true
		l.stop(isFull)
		return
	}
	if !take {
		return
	}
	l.add(loom.JournalLine{Time: now, Text: text})
	if l.bytes += len(text); l.bytes >= journalChunk {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// Fact drops results: there is no task.
func (l *journalLog) Fact(map[string]any) error { return nil }

// gap adds a line for those that came too fast, if their second was over; l.mu is held.
func (l *journalLog) gap(over, now time.Time) {
	if n := l.meter.Skipped(over); n > 0 {
		l.add(loom.JournalLine{Time: now, Skipped: n})
	}
}

func (l *journalLog) add(line loom.JournalLine) {
	l.seq++
	line.Seq = l.seq
	l.lines = append(l.lines, line)
}

// run stores lines until ctx ends, and then the last ones.
func (l *journalLog) run(ctx context.Context) {
	tick := time.NewTicker(journalEvery)
	defer tick.Stop()
	looked := time.Now()
	for {
		last := false
		select {
		case <-tick.C:
		case <-l.full:
		case <-ctx.Done():
			last = true
		}
		now := time.Now()
		over := now
		if last {
			over = time.Time{}
		}
		l.mu.Lock()
		l.gap(over, now)
		lines := l.lines
		l.mu.Unlock()
		if len(lines) > 0 || now.Sub(looked) >= journalLook {
			looked = now
			l.store(lines)
		}
		if last {
			return
		}
	}
}

// store stores lines; those that could not be stored are stored with the next ones.
func (l *journalLog) store(lines []loom.JournalLine) {
	ctx, cancel := context.WithTimeout(context.Background(), journalEnd)
	defer cancel()
	open, err := store.InTx(ctx, l.fleet.db, func(tx *sqlx.Tx) (bool, error) {
		return store.AppendJournal(ctx, tx, l.journal.Tenant, l.journal.ID, l.process, lines)
	})
	switch {
	case err != nil:
		return
	case !open:
		l.stop(isUnread)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.bytes = l.lines[len(lines):], 0
	for _, line := range l.lines {
		l.bytes += len(line.Text)
	}
}
