-- +goose Up
-- Some services of a cluster are not to run, and the others do.
ALTER TABLE cluster_health DROP CONSTRAINT cluster_health_status_check;
ALTER TABLE cluster_health ADD CONSTRAINT cluster_health_status_check CHECK (status IN ('healthy', 'degraded', 'failing', 'unknown', 'partly_stopped', 'stopped', 'unchecked', 'off'));
