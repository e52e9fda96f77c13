package testkit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// RefuseCommits makes a database undo every transaction at its end and say that it failed:
// what is allowed gets that far and changes nothing. What was made of the database before
// must not be used any more.
func RefuseCommits(t testing.TB, d *Database) {
	t.Helper()
	to, err := pq.NewConnector(d.DSN)
	if err != nil {
		t.Fatalf("connect to the test database: %v", err)
	}
	db := sqlx.NewDb(sql.OpenDB(refusingConnector{to}), "postgres")
	db.SetMaxOpenConns(maxConns)
	if err := d.DB.Close(); err != nil {
		t.Fatal(err)
	}
	d.DB = db
}

type refusingConnector struct{ driver.Connector }

func (c refusingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return refusingConn{conn.(postgresConn)}, nil
}

type refusingConn struct{ postgresConn }

func (c refusingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.postgresConn.BeginTx(ctx, opts)
	return refusingTx{tx}, err
}

type refusingTx struct{ driver.Tx }

func (tx refusingTx) Commit() error {
	return errors.Join(errors.New("this database keeps nothing"), tx.Tx.Rollback())
}
