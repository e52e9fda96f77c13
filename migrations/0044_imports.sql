-- What was uploaded for an import is kept sealed among the secrets of its tenant, as
-- an entity that begins with "import:"; what was not imported within its hour is deleted.

-- +goose Up

CREATE INDEX secrets_imports ON secrets (updated_at) WHERE entity >= 'import:' AND entity < 'import;';
