-- Tokens that were made with others end with them.

-- +goose Up

ALTER TABLE tokens
    ADD COLUMN parent_id bigint REFERENCES tokens ON DELETE CASCADE; -- the token that made it
CREATE INDEX tokens_parent ON tokens (parent_id) WHERE parent_id IS NOT NULL;
