package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// eventAge is how long events are kept: far longer than any page looks back.
	eventAge = time.Hour
	// partitionsAhead are the days of which partitions of task logs are made before
	// they begin.
	partitionsAhead = 2
	// logsAtOnce is how many operations are looked at before the next statement asks
	// which are left.
	logsAtOnce = 200
)

// TrimEvents deletes events that no page can still ask for.
func (o *Operations) TrimEvents(ctx context.Context) error {
	return store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		_, err := store.TrimEventsAllTenants(ctx, tx, eventAge)
		return err
	})
}

// PurgeSessions deletes sessions that are over, and with them old counts of failed
// sign-ins, and drafts of forms and uploads that nobody came back to. It tells the owners of API
// tokens that end soon, each once.
func (o *Operations) PurgeSessions(ctx context.Context) error {
	return store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		if _, err := store.PurgeSessionsAllTenants(ctx, tx); err != nil {
			return err
		}
		if err := store.PurgeSignInsAllTenants(ctx, tx); err != nil {
			return err
		}
		if err := store.PurgeIdentitiesAllTenants(ctx, tx); err != nil {
			return err
		}
		if err := store.WarnTokensAllTenants(ctx, tx, loom.TokenWarning); err != nil {
			return err
		}
		if err := store.TrimImportsAllTenants(ctx, tx, loom.ImportLife); err != nil {
			return err
		}
		if err := store.TrimRolloutsAllTenants(ctx, tx); err != nil {
			return err
		}
		return store.TrimDraftsAllTenants(ctx, tx, loom.DraftLife)
	})
}

// TrimLogs makes the partitions of task logs of the next days, drops those that are
// older than logs are kept, with deliveries of hooks of that age, and cuts the logs
// of tenants with too many. Trouble with one part does not keep the others.
func (o *Operations) TrimLogs(ctx context.Context) error {
	errs := []error{o.makePartitions(ctx)}
	if o.opts.LogAge > 0 {
		errs = append(errs, o.dropOldLogs(ctx))
	}
	errs = append(errs, o.countLogs(ctx))
	if o.opts.LogBytes > 0 {
		errs = append(errs, o.trimLargeLogs(ctx))
	}
	return errors.Join(errs...)
}

// makePartitions makes each partition in a transaction of its own: the locks are
// heavy, so they are held for a moment only.
func (o *Operations) makePartitions(ctx context.Context) error {
	var errs []error
	for day := range partitionsAhead + 1 {
		_, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (bool, error) { return store.EnsureLogPartitionAllTenants(ctx, tx, day) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *Operations) dropOldLogs(ctx context.Context) error {
	old, err := store.OldLogPartitionsAllTenants(ctx, o.db, o.opts.LogAge)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range old {
		errs = append(errs, store.Exec(ctx, o.db, func(tx *sqlx.Tx) error { return store.DropLogPartitionAllTenants(ctx, tx, name) }))
	}
	errs = append(errs, store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		if _, err := store.TrimLooseLogsAllTenants(ctx, tx, o.opts.LogAge); err != nil {
			return err
		}
		if err := store.TrimIncidentsAllTenants(ctx, tx, o.opts.LogAge); err != nil {
			return err
		}
		return store.TrimDeliveriesAllTenants(ctx, tx, o.opts.LogAge)
	}))
	return errors.Join(errs...)
}

// countLogs notes the sizes of logs of operations that ended since.
func (o *Operations) countLogs(ctx context.Context) error {
	return o.eachOperation(ctx, func() ([]loom.OperationID, error) {
		return store.UncountedLogsAllTenants(ctx, o.db, logsAtOnce)
	}, func(tx *sqlx.Tx, id loom.OperationID) error { return store.CountLogAllTenants(ctx, tx, id) })
}

// trimLargeLogs removes the oldest logs of tenants that have more than their share.
func (o *Operations) trimLargeLogs(ctx context.Context) error {
	why := fmt.Sprintf("a tenant keeps %d bytes of logs here, the newest ones", o.opts.LogBytes)
	return o.eachOperation(ctx, func() ([]loom.OperationID, error) {
		return store.OversizedLogsAllTenants(ctx, o.db, o.opts.LogBytes, logsAtOnce)
	}, func(tx *sqlx.Tx, id loom.OperationID) error {
		return store.TrimOperationLogsAllTenants(ctx, tx, id, why)
	})
}

// eachOperation does something to the operations that next finds, each in a
// transaction of its own, until it finds none. It ends at the first trouble.
func (o *Operations) eachOperation(ctx context.Context, next func() ([]loom.OperationID, error), do func(tx *sqlx.Tx, id loom.OperationID) error) error {
	for {
		ids, err := next()
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := store.Exec(ctx, o.db, func(tx *sqlx.Tx) error { return do(tx, id) }); err != nil {
				return err
			}
		}
	}
}
