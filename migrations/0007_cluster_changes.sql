-- What people do to clusters that are there: their configs over time, and the
-- wish to delete a cluster as soon as its operation has ended.

-- +goose Up

-- Every config a cluster has had. The newest revision is the one in clusters.
CREATE TABLE config_revisions (
    tenant_id  text NOT NULL,
    cluster_id bigint NOT NULL REFERENCES clusters,
    revision   int NOT NULL CHECK (revision > 0),
    config     jsonb NOT NULL,
    author     text NOT NULL,
    operation  int NOT NULL, -- number of the operation that brought it
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster_id, revision)
);

INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation, created_at)
SELECT tenant_id, id, 1, config, owner_id, 1, created_at FROM clusters;

-- Who wants the cluster deleted; '' nobody. Cleared when the delete begins.
ALTER TABLE clusters ADD COLUMN delete_wanted_by text NOT NULL DEFAULT '';
CREATE INDEX clusters_delete_wanted ON clusters (id) WHERE delete_wanted_by <> '';
