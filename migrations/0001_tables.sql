-- The tables of Loom. River's own tables are there already (migrations.Up runs
-- River's migrations first). Times are timestamptz by the database clock.

-- +goose Up

-- Facts of the installation, such as which seeds were loaded.
CREATE TABLE instance (
    key   text PRIMARY KEY,
    value text NOT NULL
);

-- Who: tenants, users, sessions, tokens ------------------------------------

CREATE TABLE tenants (
    id           text PRIMARY KEY,
    name         text NOT NULL,
    description  text NOT NULL DEFAULT '',
    workers      int NOT NULL DEFAULT 0 CHECK (workers >= 0),
    max_clusters int NOT NULL DEFAULT 2147483647 CHECK (max_clusters >= 0),
    max_nodes    int NOT NULL DEFAULT 2147483647 CHECK (max_nodes >= 0),
    settings     jsonb NOT NULL DEFAULT '{}',
    resource_set int NOT NULL DEFAULT 0, -- number of the last sync of plugin resources
    created_at   timestamptz NOT NULL DEFAULT now(),
    deleted_at   timestamptz
);
CREATE UNIQUE INDEX tenants_name_key ON tenants (name) WHERE deleted_at IS NULL;

CREATE TABLE users (
    tenant_id     text NOT NULL REFERENCES tenants,
    id            text NOT NULL,
    role          text NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
    display_name  text NOT NULL DEFAULT '',
    email         text NOT NULL DEFAULT '',
    password_hash text, -- argon2id; NULL: no sign-in by password
    disabled      boolean NOT NULL DEFAULT false,
    ssh_keys      text[] NOT NULL DEFAULT '{}',
    profile       jsonb,
    created_at    timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE sessions (
    id           bytea PRIMARY KEY, -- SHA-256 of the cookie
    tenant_id    text NOT NULL,
    user_id      text NOT NULL,
    data         jsonb NOT NULL DEFAULT '{}',
    address      text NOT NULL DEFAULT '',
    agent        text NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX sessions_user ON sessions (tenant_id, user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE tokens (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    text NOT NULL,
    user_id      text NOT NULL,
    name         text NOT NULL,
    prefix       text NOT NULL,
    hash         bytea NOT NULL UNIQUE, -- SHA-256 of the secret
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    last_address text NOT NULL DEFAULT '',
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX tokens_user ON tokens (tenant_id, user_id);

-- Failed sign-ins, by "user:<tenant>/<user>" and "address:<ip>".
CREATE TABLE sign_in_failures (
    subject   text PRIMARY KEY,
    failures  int NOT NULL DEFAULT 0,
    since     timestamptz NOT NULL DEFAULT now(),
    last_at   timestamptz NOT NULL DEFAULT now()
);

-- Sealed values: entity is "provider:<name>" or "cluster:<id>". tenant_id,
-- entity and field are the additional data of the seal.
CREATE TABLE secrets (
    tenant_id  text NOT NULL REFERENCES tenants,
    entity     text NOT NULL,
    field      text NOT NULL,
    sealed     bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, entity, field)
);

-- Answers kept for an Idempotency-Key, 24 h. status 0: still being worked on.
CREATE TABLE idempotency_keys (
    tenant_id  text NOT NULL,
    user_id    text NOT NULL,
    key        text NOT NULL,
    path       text NOT NULL,
    body_hash  bytea NOT NULL,
    status     int NOT NULL DEFAULT 0,
    response   bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id, key)
);

-- What: the catalog and plugin resources -------------------------------------

CREATE TABLE catalog_versions (
    tenant_id  text NOT NULL REFERENCES tenants,
    kind       text NOT NULL,
    name       text NOT NULL,
    version    int NOT NULL CHECK (version > 0),
    body       jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, kind, name, version)
);

CREATE TABLE resources (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   text NOT NULL REFERENCES tenants,
    kind        text NOT NULL CHECK (kind IN ('automatortypes', 'providertypes')),
    plugin      text NOT NULL,
    type        text NOT NULL,
    name        text NOT NULL,
    version     int NOT NULL CHECK (version > 0),
    live        boolean NOT NULL DEFAULT false,
    slated      boolean NOT NULL DEFAULT false,
    size_bytes  bigint NOT NULL,
    sha256      text NOT NULL,
    format      text NOT NULL CHECK (format IN ('file', 'archive')),
    permissions text NOT NULL DEFAULT '',
    object      text NOT NULL, -- key in the bucket
    sealed      boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text NOT NULL DEFAULT '',
    UNIQUE (tenant_id, kind, plugin, type, name, version)
);
CREATE UNIQUE INDEX resources_slated ON resources (tenant_id, kind, plugin, type, name) WHERE slated;

-- The highest version ever used of each resource name: numbers are never reused.
CREATE TABLE resource_numbers (
    tenant_id text NOT NULL REFERENCES tenants,
    kind      text NOT NULL,
    plugin    text NOT NULL,
    type      text NOT NULL,
    name      text NOT NULL,
    highest   int NOT NULL,
    PRIMARY KEY (tenant_id, kind, plugin, type, name)
);

-- Clusters and what happens to them ------------------------------------------

CREATE TABLE clusters (
    id               bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    tenant_id        text NOT NULL REFERENCES tenants,
    owner_id         text NOT NULL,
    name             text NOT NULL,
    description      text NOT NULL DEFAULT '',
    status           text NOT NULL CHECK (status IN ('pending', 'active', 'incomplete', 'inconsistent', 'terminated')),
    template_name    text NOT NULL,
    template_version int NOT NULL,
    template         jsonb NOT NULL, -- resolved copy
    provider_name    text NOT NULL,
    provider         jsonb NOT NULL, -- copy, without sensitive fields
    services         jsonb NOT NULL, -- name -> copy of the service
    type_settings    jsonb NOT NULL DEFAULT '{}', -- {"hardware": {type: entries}, "image": {type: entries}} of this provider
    config           jsonb NOT NULL DEFAULT '{}',
    labels           jsonb NOT NULL DEFAULT '{}',
    dns_suffix       text NOT NULL DEFAULT '',
    protected        boolean NOT NULL DEFAULT false,
    revision         int NOT NULL DEFAULT 1,
    latest_operation int NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz
);
CREATE INDEX clusters_tenant ON clusters (tenant_id, created_at DESC, id DESC);
CREATE INDEX clusters_owner ON clusters (tenant_id, owner_id, created_at DESC, id DESC);
CREATE INDEX clusters_expiry ON clusters (expires_at) WHERE expires_at IS NOT NULL AND status <> 'terminated';

CREATE TABLE nodes (
    id             uuid PRIMARY KEY,
    cluster_id     bigint NOT NULL REFERENCES clusters,
    tenant_id      text NOT NULL,
    number         int NOT NULL,
    incarnation    int NOT NULL DEFAULT 1,
    state          text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'creating', 'ready', 'failed', 'deleting', 'deleted')),
    hostname       text NOT NULL,
    hardwaretype   text NOT NULL,
    imagetype      text NOT NULL,
    flavor         text NOT NULL,
    image          text NOT NULL,
    sshuser        text NOT NULL,
    services       text[] NOT NULL,
    automators     text[] NOT NULL,
    ipaddresses    jsonb NOT NULL DEFAULT '{}',
    results        jsonb NOT NULL DEFAULT '{}', -- merged facts of task results
    service_states jsonb NOT NULL DEFAULT '{}', -- service name -> state
    task_id        bigint, -- the one task the node holds, from promotion to its end
    UNIQUE (cluster_id, number)
) WITH (fillfactor = 80);
CREATE INDEX nodes_tenant ON nodes (tenant_id);

CREATE TABLE operations (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    text NOT NULL REFERENCES tenants,
    cluster_id   bigint NOT NULL REFERENCES clusters,
    number       int NOT NULL,
    action       text NOT NULL,
    status       text NOT NULL CHECK (status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back',
                                                 'complete', 'failed', 'aborted', 'rolled_back')),
    message      text NOT NULL DEFAULT '',
    requested_by text NOT NULL,
    on_failure   text NOT NULL DEFAULT 'keep' CHECK (on_failure IN ('keep', 'undo')),
    aborted      boolean NOT NULL DEFAULT false,
    end_gate     bigint, -- the task row that is the plan's end
    levels       int NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    ended_at     timestamptz,
    UNIQUE (cluster_id, number)
);
-- One operation at a time per cluster.
CREATE UNIQUE INDEX operations_one_at_a_time ON operations (cluster_id)
    WHERE status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back');
CREATE INDEX operations_tenant_open ON operations (tenant_id)
    WHERE status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back');

-- Tasks and gates. A gate has gate = true, number 0, no node and no River job.
CREATE TABLE tasks (
    id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    operation_id bigint NOT NULL REFERENCES operations,
    tenant_id    text NOT NULL,
    cluster_id   bigint NOT NULL,
    gate         boolean NOT NULL DEFAULT false,
    number       int NOT NULL DEFAULT 0,
    node_id      uuid,
    service      text NOT NULL DEFAULT '',
    action       text NOT NULL DEFAULT '',
    action_order smallint NOT NULL DEFAULT 0,
    level        int NOT NULL DEFAULT 0,
    rank         int NOT NULL DEFAULT 0,
    critical     boolean NOT NULL DEFAULT false,
    status       text NOT NULL CHECK (status IN ('blocked', 'ready', 'running', 'complete', 'skipped', 'failed', 'dropped')),
    remaining    int NOT NULL DEFAULT 0 CHECK (remaining >= 0), -- open dependencies
    attempt      int NOT NULL DEFAULT 0, -- River's number of the newest attempt: the fence
    river_job_id bigint, -- may dangle: River deletes finished rows
    process_id   text NOT NULL DEFAULT '',
    code         int NOT NULL DEFAULT 0,
    message      text NOT NULL DEFAULT '',
    skipped_by   text NOT NULL DEFAULT '',
    skip_reason  text NOT NULL DEFAULT '',
    started_at   timestamptz,
    ended_at     timestamptz
) WITH (fillfactor = 80);
CREATE INDEX tasks_operation ON tasks (operation_id, number);
CREATE INDEX tasks_node_ready ON tasks (node_id) WHERE status = 'ready';
CREATE INDEX tasks_running ON tasks (process_id) WHERE status = 'running';

CREATE TABLE task_edges (
    from_task bigint NOT NULL,
    to_task   bigint NOT NULL,
    PRIMARY KEY (from_task, to_task)
);
CREATE INDEX task_edges_to ON task_edges (to_task);

CREATE TABLE attempts (
    task_id    bigint NOT NULL REFERENCES tasks,
    number     int NOT NULL, -- River's attempt number
    process_id text NOT NULL,
    status     text NOT NULL CHECK (status IN ('running', 'complete', 'failed', 'interrupted', 'aborted')),
    code       int NOT NULL DEFAULT 0,
    message    text NOT NULL DEFAULT '',
    stdout     text NOT NULL DEFAULT '', -- tail, failures only, for the wire format
    stderr     text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    PRIMARY KEY (task_id, number)
);
CREATE INDEX attempts_running ON attempts (process_id) WHERE status = 'running';

-- seq is numbered by the writer, per attempt, from 1; id gives the order of
-- storing for interleaved logs.
CREATE TABLE task_logs (
    task_id      bigint NOT NULL,
    attempt      int NOT NULL,
    seq          int NOT NULL,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    operation_id bigint NOT NULL,
    node_id      uuid,
    at           timestamptz NOT NULL,
    stream       text NOT NULL,
    level        text NOT NULL DEFAULT 'info',
    text         text NOT NULL,
    PRIMARY KEY (task_id, attempt, seq)
);
CREATE INDEX task_logs_operation ON task_logs (operation_id, id);

CREATE TABLE previews (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES tenants,
    user_id    text NOT NULL,
    kind       text NOT NULL,
    cluster_id bigint NOT NULL, -- reserved, not yet a row, for a create
    revision   int NOT NULL DEFAULT 0,
    hash       text NOT NULL,
    body       jsonb NOT NULL, -- what the plan is computed from
    operation  int NOT NULL DEFAULT 0, -- number of the operation that came of it
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    applied_at timestamptz
);
CREATE INDEX previews_expiry ON previews (expires_at);

-- Processes, workers -----------------------------------------------------------

CREATE TABLE processes (
    id         text PRIMARY KEY,
    kind       text NOT NULL,
    host       text NOT NULL,
    port       int NOT NULL DEFAULT 0,
    version    text NOT NULL DEFAULT '',
    capacity   int NOT NULL DEFAULT 0,
    only_tenant text, -- a provisioner started for one tenant
    plugins    text[] NOT NULL DEFAULT '{}',
    draining   boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

CREATE TABLE worker_assignments (
    tenant_id  text NOT NULL REFERENCES tenants,
    process_id text NOT NULL REFERENCES processes ON DELETE CASCADE,
    workers    int NOT NULL CHECK (workers > 0),
    PRIMARY KEY (tenant_id, process_id)
);
CREATE INDEX worker_assignments_process ON worker_assignments (process_id);

-- Signals and records -----------------------------------------------------------

CREATE TABLE events (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text NOT NULL,
    topic      text NOT NULL,
    ids        text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX events_age ON events (created_at);

CREATE TABLE audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text NOT NULL,
    actor      text NOT NULL,
    via        text NOT NULL,
    address    text NOT NULL DEFAULT '',
    request_id text NOT NULL DEFAULT '',
    verb       text NOT NULL,
    kind       text NOT NULL,
    object     text NOT NULL,
    result     text NOT NULL CHECK (result IN ('ok', 'refused', 'failed')),
    before     jsonb,
    after      jsonb,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_tenant ON audit (tenant_id, id DESC);
