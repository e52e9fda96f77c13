-- +goose Up
-- The oldest previews of a user go when there are too many.
CREATE INDEX previews_user ON previews (tenant_id, user_id, created_at);
