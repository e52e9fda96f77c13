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

// CountStatements counts the statements that are sent through a database from now on;
// what was made of it before must not be used any more.
func CountStatements(t testing.TB, d *Database) *Statements {
	t.Helper()
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
	return s
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

// PrepareContext counts each run of what it prepares: on which connection it has to be
// prepared first is chance.
func (c *countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.postgresConn.PrepareContext(ctx, query)
	if prepared, ok := stmt.(postgresStmt); err == nil && ok {
		return &countedStmt{prepared, c.s}, nil
	}
	c.s.n.Add(1) // a COPY is sent once
	return stmt, err
}

// postgresStmt is what the prepared statements of the driver offer.
type postgresStmt interface {
	driver.Stmt
	driver.StmtQueryContext
	driver.StmtExecContext
}

type countedStmt struct {
	postgresStmt
	s *Statements
}

func (c *countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	c.s.n.Add(1)
	return c.postgresStmt.QueryContext(ctx, args)
}

func (c *countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	c.s.n.Add(1)
	return c.postgresStmt.ExecContext(ctx, args)
}
