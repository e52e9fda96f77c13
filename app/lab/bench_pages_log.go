package lab

import (
	"context"
	"fmt"

	"loom/app/loom"
)

// logPage names the page of a log of so many lines.
func logPage(lines int) string { return fmt.Sprintf("a log of %d lines", lines) }

// fillLog writes to the first task of a cluster's first operation, which has ended, a log
// of so many lines, as if its plugin had written them, and gives its page.
func (b *benchInstance) fillLog(ctx context.Context, cluster loom.ClusterID, lines int) (page, error) {
	made, err := b.System.DB.ExecContext(ctx, `
		INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
		SELECT t.id, 1, n, t.operation_id, t.node_id, now(), 'stdout', 'info', 'line ' || n || ' of what a plugin says while it works'
		FROM tasks t, generate_series(1, $2::int) AS n WHERE t.cluster_id = $1 AND t.number = 1 AND NOT t.gate
		ON CONFLICT DO NOTHING`, int64(cluster), lines)
	if err != nil {
		return page{}, fmt.Errorf("write a log of %d lines: %w", lines, err)
	}
	if n, err := made.RowsAffected(); err != nil || n < int64(lines)/2 {
		return page{}, fmt.Errorf("write a log of %d lines: %d were written: %v", lines, n, err)
	}
	return page{logPage(lines), "/clusters/" + cluster.String() + "/operations/1/tasks/1"}, nil
}
