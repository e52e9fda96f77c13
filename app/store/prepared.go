package store

import (
	"context"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Prepared is a read that costs more to plan than to carry out: each connection of
// the pool plans it a few times and then keeps the plan. lib/pq plans anything else
// at every call.
type Prepared struct {
	db    *sqlx.DB
	query string

	mu   sync.Mutex
	stmt *sqlx.Stmt
}

// PrepareSpecFacts makes the read of SpecFactsAllTenants ready for a pool; nothing
// is sent before its first use.
func PrepareSpecFacts(db *sqlx.DB) *Prepared { return &Prepared{db: db, query: specFacts} }

// selectInto is sqlx.Select.
func (p *Prepared) selectInto(ctx context.Context, into any, args ...any) error {
	stmt, err := p.statement(ctx)
	if err != nil {
		return err
	}
	return stmt.SelectContext(ctx, into, args...)
}

func (p *Prepared) statement(ctx context.Context) (*sqlx.Stmt, error) {
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
