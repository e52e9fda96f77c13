-- +goose Up
-- A cluster none of whose services is to run is stopped; unchecked is one that nothing checks.
ALTER TABLE cluster_health DROP CONSTRAINT cluster_health_status_check;
ALTER TABLE cluster_health ADD CONSTRAINT cluster_health_status_check CHECK (status IN ('healthy', 'degraded', 'failing', 'unknown', 'stopped', 'unchecked', 'off'));
