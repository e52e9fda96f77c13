package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/lib/pq"

	"loom/app/loom"
)

// TestDomainError: a database that is away, busy or ended our session is no fault of
// Loom's, and trying again helps; everything else stays what it is.
func TestDomainError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want loom.Kind
	}{
		{sql.ErrNoRows, loom.NotFound},
		{&pq.Error{Code: "53300"}, loom.Unavailable}, // too many clients
		{&pq.Error{Code: "57P01"}, loom.Unavailable}, // the server shuts down
		{&pq.Error{Code: "57014"}, loom.Unavailable}, // the statement was cancelled
		{&pq.Error{Code: "08006"}, loom.Unavailable},
		{&pq.Error{Code: "40P01"}, loom.Unavailable}, // deadlock
		{&pq.Error{Code: "40001"}, loom.Unavailable},
		{&pq.Error{Code: "55P03"}, loom.Unavailable}, // a lock was not to be had in time
		{&pq.Error{Code: "25P03"}, loom.Unavailable}, // it stood still for too long
		{driver.ErrBadConn, loom.Unavailable},
		{sql.ErrConnDone, loom.Unavailable},
		{io.ErrUnexpectedEOF, loom.Unavailable},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, loom.Unavailable},
		{context.DeadlineExceeded, loom.Unavailable},
		{context.Canceled, loom.Internal}, // whoever asked is gone
		{&pq.Error{Code: "42601"}, loom.Internal},
		{&pq.Error{Code: "25P02"}, loom.Internal}, // the transaction failed before
		{errors.New("anything"), loom.Internal},
	} {
		for _, err := range []error{c.err, fmt.Errorf("commit: %w", c.err)} {
			got := wrap(err, "read something")
			if kind := loom.AsError(got).Kind; kind != c.want {
				t.Errorf("%v is %s, want %s", err, kind, c.want)
			}
			if !errors.Is(got, c.err) {
				t.Errorf("%v hides its cause", got)
			}
		}
	}
}
