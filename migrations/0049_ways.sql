-- Ways out of a failure: retries that change what failed, and requests that a hook
-- refused.

-- +goose Up

-- The layout when an operation began that mends a failed one: what that was to lead to
-- (loom.Snapshot); NULL for all others. What is in before of such an operation are the
-- definitions that its old tasks carry out, until it is undone.
ALTER TABLE operations ADD COLUMN start jsonb;
-- The request for an operation that waits for hooks, or that one of them refused;
-- without sensitive provider fields. NULL once it began.
ALTER TABLE operations ADD COLUMN request jsonb;
