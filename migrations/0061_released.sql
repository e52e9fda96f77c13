-- +goose Up
-- Since when a version is in use, or was when it last came into use: a task that failed before then ran another.
ALTER TABLE resources ADD COLUMN live_since timestamptz;
UPDATE resources SET live_since = created_at WHERE live;
