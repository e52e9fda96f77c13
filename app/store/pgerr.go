package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/lib/pq"

	"loom/app/loom"
)

// constraintErrors turns a broken constraint into what a person should hear. No
// other file looks at SQLSTATE codes or constraint names.
var constraintErrors = map[string]*loom.Error{
	"tenants_name_key":         loom.NewError(loom.Conflict, "A tenant of that name exists already."),
	"users_pkey":               loom.NewError(loom.Conflict, "A user of that name exists already in this tenant."),
	"groups_name":              loom.NewError(loom.Conflict, "A group of that name exists already. Choose another name."),
	"identity_providers_name":  loom.NewError(loom.Conflict, "An identity provider of that name exists already. Choose another name."),
	"identity_users_pkey":      loom.NewError(loom.Conflict, "This identity is connected with a user of the tenant already."),
	"identity_users_user":      loom.NewError(loom.Conflict, "This user is connected with another identity of the provider already."),
	"role_bindings_once":       loom.NewError(loom.Conflict, "This role is given already."),
	"operations_one_at_a_time": loom.NewError(loom.Conflict, "Another operation of this cluster is still running."),
	"rollout_clusters_open":    loom.NewError(loom.Conflict, "Another rollout took one of the clusters at the same moment. Try again."),
	"clusters_pkey":            loom.NewError(loom.Conflict, "This preview was applied already."),
	"catalog_versions_pkey":    loom.NewError(loom.Conflict, "Somebody saved this entry at the same moment; load it again."),
}

// domainError gives the domain error of a database error, or err itself.
func domainError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return &loom.Error{Kind: loom.NotFound, Message: "There is no such thing.", Err: err}
	}
	if away(err) {
		return &loom.Error{Kind: loom.Unavailable, Message: "The database cannot answer right now; try again in a moment.", Err: err}
	}
	var pqErr *pq.Error
	if !errors.As(err, &pqErr) {
		return err
	}
	if known, ok := constraintErrors[pqErr.Constraint]; ok {
		e := *known
		e.Err = err
		return &e
	}
	if pqErr.Code == "22021" { // a NUL or broken UTF-8
		return &loom.Error{Kind: loom.Invalid, Message: "A text holds characters that cannot be stored.", Err: err}
	}
	return err
}

// IsDeadlock reports whether the database ended a transaction that waited for another one in a
// circle. Done again it goes through.
func IsDeadlock(err error) bool {
	var pqErr *pq.Error
	return errors.As(err, &pqErr) && pqErr.Code == "40P01"
}

// away reports whether the database did not do what it was asked for reasons that pass:
// it cannot be reached, has no room, did not answer in time, or ended our session.
func away(err error) bool {
	var pqErr *pq.Error
	if errors.As(err, &pqErr) {
		switch pqErr.Code.Class() {
		case "08", "53", "57", "40": // connection, resources, shutdown; deadlocks
			return true
		}
		// A lock that was not to be had in time; a session that stood still for too long.
		return pqErr.Code == "55P03" || pqErr.Code == "25P03"
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return true
	}
	for _, lost := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}
