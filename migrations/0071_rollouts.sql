-- +goose Up
-- Changes of many clusters, carried out in waves.
CREATE TABLE rollouts (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    number        int NOT NULL, -- of the tenant, from 1
    kind          text NOT NULL, -- the word of the change
    request       jsonb NOT NULL, -- the change, which clusters, which waves
    settings      jsonb NOT NULL,
    hash          text NOT NULL, -- over what would be done
    status        text NOT NULL CHECK (status IN ('ready', 'running', 'stopped', 'complete', 'aborted')),
    why           text NOT NULL DEFAULT '', -- why it stopped, or what it waits for
    until         timestamptz, -- when that ends by itself
    wave          int NOT NULL DEFAULT 0, -- the present one, 0 before the start
    waves         int NOT NULL,
    wave_ended_at timestamptz, -- when nothing of the present wave was left
    continued     boolean NOT NULL DEFAULT false, -- somebody lets the next wave begin
    failures      int NOT NULL DEFAULT 0, -- since the start, or since it was resumed
    unaffected    int NOT NULL, -- clusters that the change leaves as they are
    created_by    text NOT NULL,
    started_by    text NOT NULL DEFAULT '', -- operations act as this user
    created_at    timestamptz NOT NULL DEFAULT now(),
    started_at    timestamptz,
    ended_at      timestamptz,
    next_at       timestamptz, -- when a scheduler looks at it, NULL for never
    UNIQUE (tenant_id, number)
);
CREATE INDEX rollouts_list ON rollouts (tenant_id, created_at, id);
CREATE INDEX rollouts_due ON rollouts (next_at) WHERE next_at IS NOT NULL;

-- A cluster of a rollout, with what the fleet preview said of it.
CREATE TABLE rollout_clusters (
    rollout_id bigint NOT NULL REFERENCES rollouts ON DELETE CASCADE,
    tenant_id  text NOT NULL,
    cluster_id bigint NOT NULL REFERENCES clusters ON DELETE CASCADE,
    wave       int NOT NULL, -- in which its turn comes; 0: left out
    place      int NOT NULL,
    effect     text NOT NULL,
    nodes      int NOT NULL,
    replaced   int NOT NULL, -- nodes that get another machine
    tasks      jsonb NOT NULL, -- number of tasks by action
    digest     text NOT NULL, -- of what the plan does
    status     text NOT NULL CHECK (status IN ('waiting', 'running', 'done', 'failed', 'undone', 'skipped')),
    note       text NOT NULL DEFAULT '', -- why it was skipped or failed
    operation  int, -- number of the operation that the rollout began
    health     text NOT NULL DEFAULT '', -- when its first operation began
    tried_at   timestamptz, -- when its turn first came
    ended_at   timestamptz,
    PRIMARY KEY (rollout_id, cluster_id)
);
-- A cluster is in one rollout at a time.
CREATE UNIQUE INDEX rollout_clusters_open ON rollout_clusters (cluster_id) WHERE status IN ('waiting', 'running');
CREATE INDEX rollout_clusters_place ON rollout_clusters (rollout_id, place);
CREATE INDEX rollout_clusters_cluster ON rollout_clusters (cluster_id);
