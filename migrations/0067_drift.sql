-- +goose Up
-- What differs from what Loom left there.
ALTER TABLE node_health
    ADD COLUMN boot_id text NOT NULL DEFAULT '', -- of the machine when it was last looked at; '' after an operation of its cluster
    ADD COLUMN machine jsonb, -- its size, image and addresses by its provider's lists: loom.ListedMachine; NULL: not listed yet
    ADD COLUMN drift jsonb NOT NULL DEFAULT '[]'; -- [loom.Drift]

-- What the watched files of a service on a node were when they were first seen after it was
-- last configured there. A row goes with its machine.
CREATE TABLE node_files (
    node_id uuid NOT NULL REFERENCES nodes ON DELETE CASCADE,
    service text NOT NULL,
    seen_at timestamptz NOT NULL,
    sums    jsonb NOT NULL, -- path -> SHA-256 in hexadecimal, '' for a file that was not there
    PRIMARY KEY (node_id, service)
);

ALTER TABLE incidents DROP CONSTRAINT incidents_kind_check;
ALTER TABLE incidents ADD CONSTRAINT incidents_kind_check CHECK (kind IN ('service', 'disk', 'signin', 'unreachable', 'stopped', 'gone', 'drift'));
