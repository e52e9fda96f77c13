package testkit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Statements counts the statements that a database was sent, those of transactions
// included, their begin and end not.
type Statements struct{ n atomic.Int64 }

// Count is how many there were so far.
func (s *Statements) Count() int { return int(s.n.Load()) }

// NewCountedDatabase is NewDatabase with a count of the statements sent through it.
func NewCountedDatabase(t testing.TB) (*Database, *Statements) {
	t.Helper()
	d := NewDatabase(t)
	to, err := pq.NewConnector(d.DSN)
	if err != nil {
		t.Fatalf("connect to the test database: %v", err)
	}
	s := &Statements{}
	db := sqlx.NewDb(sql.OpenDB(countedConnector{to, s}), "postgres")
	db.SetMaxOpenConns(maxConns)
	if err := d.DB.Close(); err != nil {
		t.Fatal(err)
	}
	d.DB = db
	return d, s
}

type countedConnector struct {
	driver.Connector
	s *Statements
}

func (c countedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countedConn{conn.(postgresConn), c.s}, nil
}

// postgresConn is what the connections of the driver offer.
type postgresConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

type countedConn struct {
	postgresConn
	s *Statements
}

func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.s.n.Add(1)
	return c.postgresConn.QueryContext(ctx, query, args)
}

func (c *countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.s.n.Add(1)
	return c.postgresConn.ExecContext(ctx, query, args)
}

func (c *countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.s.n.Add(1)
	return c.postgresConn.PrepareContext(ctx, query)
}
