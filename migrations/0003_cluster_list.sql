-- What the check of quotas leans on.

-- +goose Up

-- Quotas count what is not terminated; most clusters of an old tenant are.
CREATE INDEX clusters_live ON clusters (tenant_id) WHERE status <> 'terminated';
