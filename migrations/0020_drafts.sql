-- Drafts of forms are kept sealed among the secrets of their tenant, as entities
-- that begin with "draft:"; what nobody touched for a week is deleted.

-- +goose Up

CREATE INDEX secrets_drafts ON secrets (updated_at) WHERE entity >= 'draft:' AND entity < 'draft;';
