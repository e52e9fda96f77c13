-- What a person wants pages to look like, and lists narrowed by template or provider.

-- +goose Up

ALTER TABLE users ADD COLUMN preferences jsonb NOT NULL DEFAULT '{}';

CREATE INDEX clusters_by_template ON clusters (tenant_id, template_name, created_at DESC, id DESC);
