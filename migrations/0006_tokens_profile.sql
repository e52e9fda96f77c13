-- +goose Up

-- What was replaced when a token was rotated: each old secret works until
-- ends_at, as long as its token does.
CREATE TABLE token_old_secrets (
    hash      bytea PRIMARY KEY, -- SHA-256 of the secret
    tenant_id text NOT NULL,
    token_id  bigint NOT NULL REFERENCES tokens ON DELETE CASCADE,
    ends_at   timestamptz NOT NULL
);
CREATE INDEX token_old_secrets_token ON token_old_secrets (token_id);

-- A profile is JSON as its owner wrote it: jsonb would write numbers anew.
-- Nothing read or wrote the column before.
ALTER TABLE users ALTER COLUMN profile TYPE text;
