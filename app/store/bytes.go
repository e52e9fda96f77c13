package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/places"
)

// maxPageBytes is how much of what is long a page holds, in bytes; its last row may go
// beyond.
const maxPageBytes = 1 << 20

// selectBytes reads rows until they hold that many bytes; full says that some may be left.
// Where a request reads them it holds as much room. Throttled.
func selectBytes[R any](ctx context.Context, q sqlx.QueryerContext, most int, size func(*R) int, query string, args ...any) (rows []R, full bool, err error) {
	if err := places.Hold(ctx, int64(most)); err != nil {
		return nil, false, err
	}
	read, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return nil, false, err
	}
	defer read.Close()
	for bytes := 0; bytes < most; {
		if !read.Next() {
			return rows, false, read.Err()
		}
		var r R
		if err := read.StructScan(&r); err != nil {
			return nil, false, err
		}
		bytes += size(&r)
		rows = append(rows, r)
	}
	return rows, read.Next(), read.Err()
}
