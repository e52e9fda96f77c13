-- Lists of clusters in every order they are offered in: a page costs the same
-- however many clusters a tenant has.

-- +goose Up

CREATE INDEX clusters_by_name ON clusters (tenant_id, (name COLLATE "C"), id);
CREATE INDEX clusters_by_status ON clusters (tenant_id, (status COLLATE "C"), id);
CREATE INDEX clusters_by_expiry ON clusters (tenant_id, (coalesce(expires_at, 'infinity')), id);
