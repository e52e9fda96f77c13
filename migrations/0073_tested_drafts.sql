-- +goose Up
-- What a tested form said, as a keyed digest: saving the same makes the test that of the provider.
ALTER TABLE provider_requests ADD COLUMN digest bytea; -- of a draft; NULL for others
