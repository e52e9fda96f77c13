package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// AttemptFacts are what an attempt told of its node, without what is secret.
type AttemptFacts struct {
	Key   AttemptKey
	Facts map[string]any
}

const keepAttemptFacts = `
UPDATE attempts a SET facts = x.facts FROM unnest($1::bigint[], $2::int[], $3::jsonb[]) AS x (task, number, facts)
WHERE a.task_id = x.task AND a.number = x.number`

// KeepAttemptFactsAllTenants notes what attempts told, beside their results. The caller
// knows that they hold their tasks.
func KeepAttemptFactsAllTenants(ctx context.Context, tx *sqlx.Tx, told []AttemptFacts) error {
	if len(told) == 0 {
		return nil
	}
	keys, texts := make([]AttemptKey, len(told)), make([]string, len(told))
	for i, t := range told {
		text, err := json.Marshal(t.Facts)
		if err != nil {
			return fmt.Errorf("marshal what task %d told: %w", t.Key.Task, err)
		}
		keys[i], texts[i] = t.Key, string(text)
	}
	tasks, numbers := splitKeys(keys)
	_, err := tx.ExecContext(ctx, keepAttemptFacts, pq.Array(tasks), pq.Array(numbers), pq.Array(texts))
	return wrap(err, "keep what attempts told")
}
