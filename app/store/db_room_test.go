package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/places"
	"loom/app/store"
	"loom/app/testkit"
)

// Requests of one tenant that wait inside their transactions leave connections for others;
// what is no request does not count, and a transaction within one takes no second place.
func TestTransactionsOfATenantLeaveConnections(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.SetMaxOpenConns(8)
	room, all := places.NewRoom(), &places.Transactions{}
	request := func(ctx context.Context, tenant loom.TenantID) context.Context {
		ctx, free := room.With(all.With(ctx))
		t.Cleanup(free)
		places.For(ctx, tenant)
		return ctx
	}
	begun, over, ended := make(chan bool), make(chan bool), make(chan error)
	hold := func(tenant loom.TenantID) {
		ctx := request(t.Context(), tenant)
		ended <- store.Exec(ctx, db.DB, func(*sqlx.Tx) error {
			return store.Exec(ctx, db.DB, func(*sqlx.Tx) error {
				begun <- true
				<-over
				return nil
			})
		})
	}
	for range 3 {
		go hold("a")
		<-begun
	}
	try := func(ctx context.Context) error { return store.Exec(ctx, db.DB, func(*sqlx.Tx) error { return nil }) }
	if err := try(request(t.Context(), "a")); err != nil {
		t.Errorf("a fourth of four: %v", err)
	}
	go func() {
		ctx := request(t.Context(), "a")
		ended <- store.Exec(ctx, db.DB, func(*sqlx.Tx) error { begun <- true; <-over; return nil })
	}()
	<-begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := try(request(gone, "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("a fifth of four: %v", err)
	}
	if err := try(request(t.Context(), "b")); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if err := try(t.Context()); err != nil {
		t.Errorf("a duty: %v", err)
	}
	close(over)
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := try(request(t.Context(), "a")); err != nil {
		t.Errorf("once all ended: %v", err)
	}
}
