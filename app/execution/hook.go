package execution

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// RecordDelivery records what came of a try of a delivery. An operation that waits for
// it goes on once all its hooks have agreed, and fails when one refuses. A
// delivery that is gone or has ended stays as it is.
func (o *Operations) RecordDelivery(ctx context.Context, id loom.DeliveryID, outcome loom.DeliveryOutcome) error {
	return store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		h, err := store.LockDeliveryAllTenants(ctx, tx, id)
		if errors.Is(err, loom.NotFound) {
			return nil // its hook was deleted
		}
		if err != nil || h.Status != loom.DeliveryWaiting {
			return err
		}
		if err := store.RecordDelivery(ctx, tx, &h, outcome); err != nil {
			return err
		}
		switch {
		case !h.Blocking || outcome.Status == loom.DeliveryWaiting || h.Operation.Status != loom.OperationNotSubmitted:
			return nil
		case outcome.Refusal != "":
			return store.FailOperation(ctx, tx, &h.Operation, outcome.Refusal, false)
		}
		_, err = store.BeginIfAgreed(ctx, tx, &h.Operation)
		return err
	})
}

// ReconcileHooks enqueues deliveries that got lost and lets operations begin whose
// hooks were deleted before they answered. It says how many things it touched.
func (o *Operations) ReconcileHooks(ctx context.Context) (int, error) {
	touched, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (int, error) { return store.ReviveDeliveriesAllTenants(ctx, tx) })
	if err != nil {
		return 0, err
	}
	agreed, err := store.AgreedOperationsAllTenants(ctx, o.db)
	if err != nil {
		return touched, err
	}
	var errs []error
	for _, id := range agreed {
		begun, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (bool, error) {
			op, err := store.LockOperationAllTenants(ctx, tx, id)
			if err != nil {
				return false, err
			}
			return store.BeginIfAgreed(ctx, tx, &op)
		})
		if begun {
			touched++
		}
		errs = append(errs, err)
	}
	return touched, errors.Join(errs...)
}
