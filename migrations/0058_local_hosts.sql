-- +goose Up

-- What a provisioner says of its host, for the machines it makes there: the most that one
-- may have, and what the host lacks.
ALTER TABLE processes ADD COLUMN local_host jsonb NOT NULL DEFAULT '{}';
