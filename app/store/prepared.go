package store

import (
	"context"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Hot are the statements that each batch of tasks needs, ready for a pool; nothing is
// sent before their first use. Each connection plans one a few times and then keeps
// the plan; lib/pq sends, and PostgreSQL plans, anything else at every call.
type Hot struct{ spec, start, finish prepared }

// PrepareHot makes them for a pool.
func PrepareHot(db *sqlx.DB) *Hot {
	return &Hot{spec: prepared{db: db, query: specFacts}, start: prepared{db: db, query: startTasks}, finish: prepared{db: db, query: finishTasks}}
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
