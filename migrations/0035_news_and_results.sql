-- Owners of API tokens are told once when one of them ends soon; attempts keep what they
-- learned.

-- +goose Up

-- The end that the owner was told of; a token that is given another is told of again.
ALTER TABLE tokens ADD COLUMN warned_for timestamptz;

-- What the attempt told of its node, without secrets; null where that is nothing. The node
-- has what all its tasks told, merged.
ALTER TABLE attempts ADD COLUMN facts jsonb;
