package store

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Prepared are the statements that each batch of tasks needs, ready for a pool; nothing is
// sent before their first use. Each connection plans one a few times and then keeps
// the plan; lib/pq sends, and PostgreSQL plans, anything else at every call.
type Prepared struct {
	spec, start, complete prepared
}

// Prepare makes them for a pool.
func Prepare(db *sqlx.DB) *Prepared {
	return &Prepared{spec: prepared{db: db, query: specFacts}, start: prepared{db: db, query: startTasks}, complete: prepared{db: db, query: completeTasks}}
}

// prepared is one of them.
type prepared struct {
	db    *sqlx.DB
	query string

	mu   sync.Mutex
	stmt *sqlx.Stmt
}

// selectInto is sqlx.Select, in a transaction or, with nil, alone.
func (p *prepared) selectInto(ctx context.Context, tx *sqlx.Tx, into any, args ...any) error {
	stmt, err := p.statement(ctx)
	if err != nil {
		return err
	}
	if tx != nil {
		stmt = tx.StmtxContext(ctx, stmt)
		defer stmt.Close()
	}
	return stmt.SelectContext(ctx, into, args...)
}

func (p *prepared) statement(ctx context.Context) (*sqlx.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stmt == nil {
		stmt, err := p.db.PreparexContext(ctx, p.query)
		if err != nil {
			return nil, err
		}
		p.stmt = stmt // closed with its connections
	}
	return p.stmt, nil
}

// mostKept bounds the statements of Kept: texts that differ from call to call would
// fill the memory of every connection.
const mostKept = 200

// Kept is a pool whose statements are planned once per connection and not at each
// call, which of short reads is most of the work. It is for statements whose text is
// always the same and whose plan does not hang on their arguments; what it cannot keep
// runs as it does on the pool.
type Kept struct {
	*sqlx.DB

	mu    sync.Mutex
	stmts map[string]*prepared
}

// Keep makes one of a pool; nothing is sent before its first use.
func Keep(db *sqlx.DB) *Kept { return &Kept{DB: db, stmts: map[string]*prepared{}} }

// statement gives the statement of a text, nil where it is not kept.
func (k *Kept) statement(ctx context.Context, query string) *sqlx.Stmt {
	k.mu.Lock()
	p := k.stmts[query]
	if p == nil && len(k.stmts) < mostKept {
		p = &prepared{db: k.DB, query: query}
		k.stmts[query] = p
	}
	k.mu.Unlock()
	if p == nil {
		return nil
	}
	stmt, err := p.statement(ctx)
	if err != nil {
		return nil // the pool says what is wrong
	}
	return stmt
}

// QueryContext, QueryxContext and QueryRowxContext are those of the pool.
func (k *Kept) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := k.statement(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return k.DB.QueryContext(ctx, query, args...)
}

func (k *Kept) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	if stmt := k.statement(ctx, query); stmt != nil {
		return stmt.QueryxContext(ctx, args...)
	}
	return k.DB.QueryxContext(ctx, query, args...)
}

func (k *Kept) QueryRowxContext(ctx context.Context, query string, args ...any) *sqlx.Row {
	if stmt := k.statement(ctx, query); stmt != nil {
		return stmt.QueryRowxContext(ctx, args...)
	}
	return k.DB.QueryRowxContext(ctx, query, args...)
}
