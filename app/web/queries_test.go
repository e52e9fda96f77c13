package web_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/clusters"
	"loom/app/fleet"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/web"
	"loom/views/route"
)

// counter is a connector that counts statements.
type counter struct {
	driver.Connector
	n atomic.Int64
}

func (c *counter) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return &countedConn{conn, c}, err
}

// countedConn passes on what lib/pq can do, and counts it.
type countedConn struct {
	driver.Conn
	c *counter
}

func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.c.n.Add(1)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.c.n.Add(1)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *countedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c *countedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// counted makes the pages on a database whose statements about clusters are counted.
func (w *clusterWorld) counted() *counter {
	w.t.Helper()
	connector, err := pq.NewConnector(w.db.DSN)
	w.must(err)
	c := &counter{Connector: connector}
	db := sqlx.NewDb(sql.OpenDB(c), "postgres")
	w.t.Cleanup(func() { db.Close() }) //nolint:errcheck // of a test
	ring, err := secret.ParseKeys(secret.GenerateKey())
	w.must(err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	pages := web.New(web.Deps{
		Accounts: w.accounts, Catalog: w.catalog, Clusters: clusters.New(db, ring, clusters.Options{MaxMachines: 500}), Operations: w.ops, Fleet: fleet.New(db), Hub: w.hub,
		Sessions: httpx.NewSessions(w.accounts, false), Log: log, Version: "test",
	})
	w.handler = httpx.Chain(log, false, http.NewCrossOriginProtection(), web.ErrorPage("test"), pages)
	return c
}

// Pages of a cluster and its operations make as many queries for many nodes and tasks
// as for few.
func TestPagesMakeFewQueries(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 500 WHERE id = $1`, w.tenant.ID)
	small, large := w.create("small", 2), w.create("large", 30)
	for _, op := range []loom.OperationRef{small, large} {
		w.runSome(op, 2, 2)
	}
	c := w.counted()
	pages := map[string]func(loom.OperationRef) string{
		"timeline": route.OperationTimeline, "table": route.OperationTasks, "graph": route.OperationGraph,
		"log": route.OperationLog, "panel": route.OperationPanel,
		"task":     func(op loom.OperationRef) string { return route.Task(loom.TaskRef{Operation: op, Number: 3}) },
		"cluster":  func(op loom.OperationRef) string { return route.Cluster(op.Cluster) },
		"nodes":    func(op loom.OperationRef) string { return route.ClusterNodes(op.Cluster) },
		"services": func(op loom.OperationRef) string { return route.ClusterTab(op.Cluster, "services") },
		"config":   func(op loom.OperationRef) string { return route.ClusterTab(op.Cluster, "config") },
	}
	for name, at := range pages {
		counts := map[loom.OperationRef]int64{}
		for _, op := range []loom.OperationRef{small, large} {
			w.get("ana", at(op)).is(200) // what is remembered is read once
			before := c.n.Load()
			w.get("ana", at(op)).is(200)
			counts[op] = c.n.Load() - before
		}
		if counts[large] > counts[small]+8 || counts[large] > 40 {
			t.Errorf("%s: %d queries for many tasks, %d for few", name, counts[large], counts[small])
		}
	}
}
