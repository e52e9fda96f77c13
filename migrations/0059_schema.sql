-- The tables of Loom are in migrations/0059_schema.sql, by subject; files with higher numbers add to
-- them. Functions, views and triggers are in migrations/functions, one file each; the schema has
-- only those functions that columns and indexes are computed with.
--
-- River brings its own tables, before ours. Of them only river_job is touched by our statements, and
-- contract tests hold us to its schema. Times are of the database's clock.
--
-- Locks are taken in the order tenants, processes, clusters, operations, gates, tasks, nodes, River jobs;
-- several rows of one kind in the order of their ids. Every locking step is a statement of its own, so
-- that it sees commits from while it waited. Starting and completing take the operation FOR
-- SHARE and so run side by side; pause, abort, failure and end take it FOR UPDATE.
--
-- No index of tasks and attempts names what changes while a task runs, not even in its predicate:
-- PostgreSQL would write every version of the row into every index. So running tasks are found through
-- the nodes that hold them, ready ones by their node (tasks_node). Pages of tasks, attempts and nodes are
-- filled to the half: the next version of a row finds room beside it.
--
-- Functions that move tasks are planned once per session and by index, whatever the sizes were then
-- (the SET lines of each): to plan each batch costs more than the batch, a join of a batch with few rows
-- of a partial index compares each with each, and to compile a plan takes longer than to run it. So
-- rows are found by their ids, and a status is compared only afterwards, written as status || '' or
-- state::text, which no index matches.

-- +goose Up

-- The installation -------------------------------------------------------------

-- Facts of the installation, such as which seeds were loaded and which functions are in place.
CREATE TABLE instance (
    key   text PRIMARY KEY,
    value text NOT NULL
);

-- Tenants and who may do what --------------------------------------------------

-- A tenant with its quotas and with what the superadmin lets it do with providers (docs/decisions/0055).
CREATE TABLE tenants (
    id                 text PRIMARY KEY,
    name               text NOT NULL, -- unique among tenants that are not deleted
    description        text NOT NULL DEFAULT '',
    workers            int NOT NULL DEFAULT 0 CHECK (workers >= 0), -- requested: how many tasks run at once
    max_clusters       int NOT NULL DEFAULT 2147483647 CHECK (max_clusters >= 0),
    max_nodes          int NOT NULL DEFAULT 2147483647 CHECK (max_nodes >= 0),
    settings           jsonb NOT NULL DEFAULT '{}',
    resource_set       int NOT NULL DEFAULT 0, -- number of the last sync of plugin resources
    private_networks   boolean NOT NULL DEFAULT false, -- providers and machines in private networks are reached
    instance_roles     boolean NOT NULL DEFAULT false, -- providers may use the role of the provisioner's host
    provider_types_off text[] NOT NULL DEFAULT '{static}', -- types that nothing new is made with
    created_at         timestamptz NOT NULL DEFAULT now(),
    deleted_at         timestamptz
);
-- The name of a deleted tenant may be used again.
CREATE UNIQUE INDEX tenants_name_key ON tenants (name) WHERE deleted_at IS NULL;

-- Numbers for users.access_epoch. One that was given out never comes again.
CREATE SEQUENCE access_epochs;

-- A person, or a program that signs in as one.
CREATE TABLE users (
    tenant_id        text NOT NULL REFERENCES tenants,
    id               text NOT NULL,
    role             text NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
    display_name     text NOT NULL DEFAULT '',
    email            text NOT NULL DEFAULT '',
    password_hash    text, -- argon2id; NULL: no sign-in by password
    -- Whether the password was generated and waits for a change: "asked" if the first start
    -- generated it, "required" if an administrator generated it for somebody else. NULL: it was chosen.
    password_change  text CHECK (password_change IN ('asked', 'required')),
    password_used_at timestamptz, -- first sign-in with the current password; then sign-in.txt no longer keeps it
    disabled         boolean NOT NULL DEFAULT false,
    ssh_keys         text[] NOT NULL DEFAULT '{}',
    profile          text, -- JSON as its owner wrote it; jsonb would write numbers in another way
    preferences      jsonb NOT NULL DEFAULT '{}', -- how pages look
    -- Another number each time the sessions or tokens of the user end, so that work begun with
    -- such a credential is not finished. Never the same again, also for a later user of the same id.
    access_epoch     bigint NOT NULL DEFAULT nextval('access_epochs'),
    created_at       timestamptz NOT NULL DEFAULT now(),
    last_seen_at     timestamptz,
    PRIMARY KEY (tenant_id, id)
);

-- A browser that is signed in.
CREATE TABLE sessions (
    id            bytea PRIMARY KEY, -- SHA-256 of the cookie
    tenant_id     text NOT NULL,
    user_id       text NOT NULL,
    data          jsonb NOT NULL DEFAULT '{}',
    address       text NOT NULL DEFAULT '',
    agent         text NOT NULL DEFAULT '',
    acting_tenant text, -- a superadmin acts as the administrator of this tenant
    acting_until  timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz NOT NULL,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
-- The sessions of a user: listed, and ended together.
CREATE INDEX sessions_user ON sessions (tenant_id, user_id);
-- Sessions that are over are deleted.
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- An API token.
CREATE TABLE tokens (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    text NOT NULL,
    user_id      text NOT NULL,
    parent_id    bigint REFERENCES tokens ON DELETE CASCADE, -- the token that made it, with which it is revoked
    name         text NOT NULL,
    prefix       text NOT NULL, -- the first characters of the secret, to recognize it
    hash         bytea NOT NULL UNIQUE, -- SHA-256 of the secret
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    warned_for   timestamptz, -- expiry of the last reminder to the owner; another expiry gets a new one
    revoked_at   timestamptz,
    last_used_at timestamptz,
    last_address text NOT NULL DEFAULT '',
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
-- The tokens of a user: listed, and revoked together.
CREATE INDEX tokens_user ON tokens (tenant_id, user_id);
-- Tokens that end with the one that made them.
CREATE INDEX tokens_parent ON tokens (parent_id) WHERE parent_id IS NOT NULL;

-- A secret that a token had before it was rotated. It works until ends_at, at most as long as its
-- token does.
CREATE TABLE token_old_secrets (
    hash      bytea PRIMARY KEY, -- SHA-256 of the secret
    tenant_id text NOT NULL,
    token_id  bigint NOT NULL REFERENCES tokens ON DELETE CASCADE,
    ends_at   timestamptz NOT NULL -- 24 h after the rotation
);
-- Old secrets go with their token.
CREATE INDEX token_old_secrets_token ON token_old_secrets (token_id);

-- Wrong passwords, by whom the next one has to wait for.
CREATE TABLE sign_in_failures (
    -- "address:", "name:" (both within ten minutes), "pair:" of name and address, "device:" for a
    -- known browser, "own:" for the current password at a change. Names are hashes.
    subject   text PRIMARY KEY,
    failures  int NOT NULL DEFAULT 0,
    since     timestamptz NOT NULL DEFAULT now(),
    last_at   timestamptz NOT NULL DEFAULT now()
);

-- An answer that is kept for 24 h for its Idempotency-Key.
CREATE TABLE idempotency_keys (
    tenant_id  text NOT NULL,
    user_id    text NOT NULL,
    key        text NOT NULL,
    path       text NOT NULL,
    body_hash  bytea NOT NULL,
    status     int NOT NULL DEFAULT 0, -- 0: still being worked on
    response   bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id, key)
);

-- One sealed field of a provider, a cluster, a node or a hook; a draft of a form, kept for a week
-- after it was last touched; an upload for an import, kept for an hour. Tenant, entity and field
-- are part of the seal.
CREATE TABLE secrets (
    tenant_id  text NOT NULL REFERENCES tenants,
    entity     text NOT NULL, -- such as "provider:<name>", "cluster:<id>", "node:<id>", "hook:<id>", "draft:…", "import:…"
    field      text NOT NULL,
    sealed     bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, entity, field)
);
-- Drafts that nobody touched for a week are deleted.
CREATE INDEX secrets_drafts ON secrets (updated_at) WHERE entity >= 'draft:' AND entity < 'draft;';
-- Uploads that were not imported within their hour are deleted.
CREATE INDEX secrets_imports ON secrets (updated_at) WHERE entity >= 'import:' AND entity < 'import;';

-- The catalog and plugin resources ---------------------------------------------

-- One version of a catalog entry of any of the eight kinds. The highest version is the current one.
CREATE TABLE catalog_versions (
    tenant_id  text NOT NULL REFERENCES tenants,
    kind       text NOT NULL,
    name       text NOT NULL,
    version    int NOT NULL CHECK (version > 0),
    body       jsonb NOT NULL,
    weight     bigint NOT NULL DEFAULT 0, -- what it takes in memory: the bytes of its JSON, and 64 more for each value
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, kind, name, version)
);

-- One version of a plugin resource. The bytes are in the bucket.
CREATE TABLE resources (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   text NOT NULL REFERENCES tenants,
    kind        text NOT NULL CHECK (kind IN ('automatortypes', 'providertypes')),
    plugin      text NOT NULL,
    type        text NOT NULL,
    name        text NOT NULL,
    version     int NOT NULL CHECK (version > 0),
    live        boolean NOT NULL DEFAULT false, -- in use now
    slated      boolean NOT NULL DEFAULT false, -- in use after the next sync
    size_bytes  bigint NOT NULL,
    sha256      text NOT NULL,
    format      text NOT NULL CHECK (format IN ('file', 'archive')),
    permissions text NOT NULL DEFAULT '',
    object      text NOT NULL, -- key in the bucket
    sealed      boolean NOT NULL DEFAULT false, -- the bytes in the bucket are sealed
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text NOT NULL DEFAULT '',
    UNIQUE (tenant_id, kind, plugin, type, name, version)
);
-- One version of a name at most is in use after the next sync.
CREATE UNIQUE INDEX resources_slated ON resources (tenant_id, kind, plugin, type, name) WHERE slated;

-- The highest version that a name of a plugin resource ever had: numbers are never used again.
CREATE TABLE resource_numbers (
    tenant_id text NOT NULL REFERENCES tenants,
    kind      text NOT NULL,
    plugin    text NOT NULL,
    type      text NOT NULL,
    name      text NOT NULL,
    highest   int NOT NULL,
    PRIMARY KEY (tenant_id, kind, plugin, type, name)
);

-- The newest set of plugin resources that a host of provisioners has fetched, for the page of a
-- sync.
CREATE TABLE resource_fetches (
    tenant_id  text NOT NULL REFERENCES tenants,
    host       text NOT NULL,
    set        int NOT NULL, -- tenants.resource_set of then
    fetched_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, host)
);

-- Clusters and their nodes -----------------------------------------------------

-- loom_pad writes a cluster id as people see it: at least 8 digits.
-- +goose StatementBegin
CREATE FUNCTION loom_pad(p_id bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lpad(p_id::text, greatest(8, length(p_id::text)), '0')
$$;
-- +goose StatementEnd

-- loom_keys gives the names in a JSON object, sorted.
-- +goose StatementBegin
CREATE FUNCTION loom_keys(p_object jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ARRAY(SELECT jsonb_object_keys(p_object) ORDER BY 1)
$$;
-- +goose StatementEnd

-- loom_pairs gives each letter, and each letter with the next one, of the texts that a cluster is
-- found by.
-- +goose StatementBegin
CREATE FUNCTION loom_pairs(p_name text, p_description text, p_id bigint) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_agg(v.part)
    FROM unnest(ARRAY[lower(p_name), lower(p_description), loom_pad(p_id)]) AS t,
         unnest(string_to_array(t, NULL), (string_to_array(t, NULL))[2:]) AS p (a, b),
         LATERAL (VALUES (a), (a || b)) AS v (part)
    WHERE v.part IS NOT NULL
$$;
-- +goose StatementEnd

-- A cluster with its copies of template and services, and its own fields of the provider; the
-- other fields are read from the provider when they are needed (loom_provider).
CREATE TABLE clusters (
    id               bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, -- a preview of a create reserves it
    tenant_id        text NOT NULL REFERENCES tenants,
    owner_id         text NOT NULL,
    name             text NOT NULL,
    description      text NOT NULL DEFAULT '',
    status           text NOT NULL CHECK (status IN ('pending', 'active', 'incomplete', 'inconsistent', 'terminated')),
    -- The status before it became pending: an operation that never began leaves it so. NULL: it
    -- has only ever been pending.
    settled_status   text,
    template_name    text NOT NULL,
    template_version int NOT NULL,
    template         jsonb NOT NULL, -- copy, resolved
    provider_name    text NOT NULL,
    provider_fields  jsonb NOT NULL DEFAULT '{}', -- given for this cluster, without sensitive ones
    -- Name -> copy of the service. A copy that came later names its operation, which takes it
    -- back if it never begins.
    services         jsonb NOT NULL,
    service_names    text[] NOT NULL GENERATED ALWAYS AS (loom_keys(services)) STORED, -- so that lists need not read whole copies
    type_settings    jsonb NOT NULL DEFAULT '{}', -- {"hardware": {type: entries}, "image": {type: entries}} for its provider
    config           jsonb NOT NULL DEFAULT '{}', -- that of its newest row in config_revisions
    labels           jsonb NOT NULL DEFAULT '{}',
    dns_suffix       text NOT NULL DEFAULT '',
    protected        boolean NOT NULL DEFAULT false,
    revision         int NOT NULL DEFAULT 1, -- another one with each change; a preview names the one it was computed from
    latest_operation int NOT NULL DEFAULT 0, -- number
    delete_wanted_by text NOT NULL DEFAULT '', -- who wants it deleted when its operation has ended; '' nobody; cleared when the delete begins
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz -- end of the lease; NULL: none
);
-- Lists of clusters in every order they are offered in: a page costs the same however many
-- clusters a tenant has.
CREATE INDEX clusters_tenant ON clusters (tenant_id, created_at DESC, id DESC);
CREATE INDEX clusters_owner ON clusters (tenant_id, owner_id, created_at DESC, id DESC);
CREATE INDEX clusters_by_template ON clusters (tenant_id, template_name, created_at DESC, id DESC);
CREATE INDEX clusters_by_name ON clusters (tenant_id, (name COLLATE "C"), id);
CREATE INDEX clusters_by_status ON clusters (tenant_id, (status COLLATE "C"), id);
CREATE INDEX clusters_by_expiry ON clusters (tenant_id, (coalesce(expires_at, 'infinity')), id);
-- How many clusters somebody has of a template: the form of a new one proposes the next name.
CREATE INDEX clusters_owner_template ON clusters (tenant_id, owner_id, template_name);
-- Quotas count what is not terminated; most clusters of an old tenant are.
CREATE INDEX clusters_live ON clusters (tenant_id) WHERE status <> 'terminated';
-- The duty of leases.
CREATE INDEX clusters_expiry ON clusters (expires_at) WHERE expires_at IS NOT NULL AND status <> 'terminated';
-- Clusters that wait for the end of their operation to be deleted.
CREATE INDEX clusters_delete_wanted ON clusters (id) WHERE delete_wanted_by <> '';
-- Lists narrowed by services and labels.
CREATE INDEX clusters_services ON clusters USING gin (service_names) WITH (gin_pending_list_limit = 256);
CREATE INDEX clusters_labels ON clusters USING gin (labels) WITH (gin_pending_list_limit = 256);
-- Searches for words of one or two letters, which have no trigram.
CREATE INDEX clusters_pairs ON clusters USING gin (loom_pairs(name, description, id)) WITH (gin_pending_list_limit = 256);
-- The function costs ten times what a row of the index does. A plan that knew of letters
-- that most clusters have would call it for each cluster; without figures it never does.
ALTER INDEX clusters_pairs ALTER COLUMN 1 SET STATISTICS 0;

-- A config that a cluster has or had. The newest is also in clusters.config.
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

-- What the duty of leases did about the end of a cluster's lease.
CREATE TABLE lease_ends (
    cluster_id  bigint PRIMARY KEY REFERENCES clusters,
    tenant_id   text NOT NULL REFERENCES tenants,
    expires_at  timestamptz NOT NULL, -- the end that this is about; the row is void when the cluster's is another one
    reminded    int, -- hours before the end of the last reminder, 0: of the end itself
    stopped_for timestamptz, -- the end at which stopping the services was begun
    tried_at    timestamptz, -- when an operation was begun, or refused, last
    next_at     timestamptz, -- not before this time again
    problem     text NOT NULL DEFAULT '' -- why nothing could begin then
);

-- A node of a cluster and the machine that it has.
CREATE TABLE nodes (
    id             uuid PRIMARY KEY,
    cluster_id     bigint NOT NULL REFERENCES clusters,
    tenant_id      text NOT NULL,
    number         int NOT NULL,
    incarnation    int NOT NULL DEFAULT 1, -- counts its machines; with the id it is the idempotency key
    state          text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'creating', 'ready', 'failed', 'deleting', 'deleted')),
    leaving        boolean NOT NULL DEFAULT false, -- on its way out, or gone: hidden from the other nodes
    hostname       text NOT NULL,
    hardwaretype   text NOT NULL,
    imagetype      text NOT NULL,
    flavor         text NOT NULL,
    image          text NOT NULL,
    sshuser        text NOT NULL,
    services       text[] NOT NULL, -- names, sorted
    automators     text[] NOT NULL, -- automator types that any action of the services uses, sorted
    ipaddresses    jsonb NOT NULL DEFAULT '{}', -- kind -> address
    results        jsonb NOT NULL DEFAULT '{}', -- facts that its tasks reported, merged; secrets among them are sealed in secrets
    service_states jsonb NOT NULL DEFAULT '{}', -- service -> state
    -- {service: {action: {"automator type/resource type/name": SHA-256}}} of the files that the
    -- install, configure and start of each service last ran. Empty: not known.
    service_files  jsonb NOT NULL DEFAULT '{}',
    task_id        bigint, -- the one task the node holds, from promotion to its end
    UNIQUE (cluster_id, number)
) WITH (fillfactor = 50); -- a row is written twice for each task of the node
-- The nodes of a tenant.
CREATE INDEX nodes_tenant ON nodes (tenant_id);
-- What a tenant uses of its quota of nodes is counted from the index alone. The state of a node
-- changes two or three times in its life.
CREATE INDEX nodes_in_use ON nodes (tenant_id, cluster_id) WHERE state <> 'deleted';

-- Words anywhere in names, ids and addresses are found by their trigrams. pg_trgm is
-- part of PostgreSQL and whoever owns a database may add it; where it is not installed
-- a search reads all nodes of a tenant. Nodes get an address once and else stay what
-- the index says of them.
-- +goose StatementBegin
DO $$
BEGIN
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
    EXCEPTION WHEN OTHERS THEN
        RAISE NOTICE 'Searches for words are slow with many nodes: the extension pg_trgm cannot be added (%).', SQLERRM;
        RETURN;
    END;
    CREATE INDEX clusters_words ON clusters USING gin (lower(name) gin_trgm_ops, lower(description) gin_trgm_ops, loom_pad(id) gin_trgm_ops)
        WITH (gin_pending_list_limit = 256);
    CREATE INDEX nodes_words ON nodes USING gin (hostname gin_trgm_ops, (ipaddresses::text) gin_trgm_ops)
        WITH (gin_pending_list_limit = 256);
END
$$;
-- +goose StatementEnd

-- What nodes are searched for by, beside the nodes: of words too short for trigrams each node of a
-- tenant is looked at, and its own row is ten times as wide, with its addresses as JSON. Triggers
-- keep it right. A node gets its name and addresses once or twice in its life; any other change
-- only has the two compared.
CREATE TABLE searched_nodes (
    tenant_id  text NOT NULL,
    node_id    uuid NOT NULL,
    cluster_id bigint NOT NULL,
    hostname   text NOT NULL,
    addresses  text NOT NULL, -- without their names, one a line
    PRIMARY KEY (tenant_id, node_id)
);

-- How often the host names or addresses of a cluster's nodes changed, so that a provisioner reads
-- the nodes of a big cluster once and not for each task. Not a column of clusters: that row is
-- locked before operations, this one last.
CREATE TABLE node_changes (
    cluster_id bigint PRIMARY KEY REFERENCES clusters,
    version    bigint NOT NULL
);

-- Operations, tasks and attempts -----------------------------------------------

-- A plan that was not applied yet.
CREATE TABLE previews (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES tenants,
    user_id    text NOT NULL,
    kind       text NOT NULL, -- the word of the request, such as create or expand
    cluster_id bigint NOT NULL, -- of a create: reserved, not yet a row
    revision   int NOT NULL DEFAULT 0, -- clusters.revision that it was computed from
    hash       text NOT NULL, -- over what would be done
    body       jsonb NOT NULL, -- what the plan is computed from
    operation  int NOT NULL DEFAULT 0, -- number of the operation that came of it
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    applied_at timestamptz
);
-- Previews that are over are deleted.
CREATE INDEX previews_expiry ON previews (expires_at);

-- One change of a cluster.
CREATE TABLE operations (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       text NOT NULL REFERENCES tenants,
    cluster_id      bigint NOT NULL REFERENCES clusters,
    number          int NOT NULL, -- of the cluster, from 1
    action          text NOT NULL,
    status          text NOT NULL CHECK (status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back',
                                                    'complete', 'failed', 'aborted', 'rolled_back')),
    message         text NOT NULL DEFAULT '',
    requested_by    text NOT NULL,
    -- The request of an operation that waits for hooks, or that one of them refused; without
    -- sensitive provider fields. NULL once it began.
    request         jsonb,
    on_failure      text NOT NULL DEFAULT 'keep' CHECK (on_failure IN ('keep', 'undo')),
    aborted         boolean NOT NULL DEFAULT false, -- failing because somebody aborted it
    concerns        int NOT NULL DEFAULT 0, -- number of the operation that this one retries or rolls back; 0 for others
    retries         boolean NOT NULL DEFAULT false, -- continues the remaining tasks of the one that it concerns
    -- The layout before the operation (loom.Snapshot): a refused one gives it back, an undo and a
    -- rollback lead to it. NULL for a create, which has none before.
    before          jsonb,
    -- The layout that the operation was to lead to, kept when it begins to undo its changes;
    -- NULL for all others.
    after           jsonb,
    -- The layout when an operation began that mends a failed one: what that was to lead to; NULL
    -- for all others. In before of such an operation are the definitions that its old tasks carry
    -- out, until it is undone.
    start           jsonb,
    end_gate        bigint, -- the row of tasks that is the plan's end
    levels          int NOT NULL DEFAULT 0, -- stages of the plan
    log_bytes       bigint, -- of its task logs, counted after its end; NULL: not counted yet
    logs_trimmed_at timestamptz, -- when its logs gave way to newer ones of the tenant
    created_at      timestamptz NOT NULL DEFAULT now(),
    started_at      timestamptz,
    ended_at        timestamptz,
    UNIQUE (cluster_id, number)
);
-- One operation at a time per cluster.
CREATE UNIQUE INDEX operations_one_at_a_time ON operations (cluster_id)
    WHERE status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back');
-- Operations under way: of a tenant, and for the reconciler of all.
CREATE INDEX operations_tenant_open ON operations (tenant_id)
    WHERE status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back');
CREATE INDEX operations_open ON operations (id)
    WHERE status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back');
-- The newest activity, of a tenant and of all.
CREATE INDEX operations_ended ON operations (tenant_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX operations_ended_all ON operations (ended_at, id) WHERE ended_at IS NOT NULL;
-- Logs that nobody counted yet, and those that may be trimmed.
CREATE INDEX operations_uncounted ON operations (id) WHERE log_bytes IS NULL AND ended_at IS NOT NULL;
CREATE INDEX operations_logs ON operations (tenant_id, ended_at) WHERE log_bytes > 0;
-- Those who asked for keys on the machines of a cluster (the view askers).
CREATE INDEX operations_authorize ON operations (cluster_id) WHERE action = 'cluster_authorize';

-- A task of a plan, or a gate between tasks. A gate has number 0, no node and no River job.
CREATE TABLE tasks (
    id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    operation_id bigint NOT NULL REFERENCES operations,
    tenant_id    text NOT NULL,
    cluster_id   bigint NOT NULL,
    gate         boolean NOT NULL DEFAULT false,
    number       int NOT NULL DEFAULT 0, -- of the operation, from 1
    node_id      uuid,
    service      text NOT NULL DEFAULT '', -- '' for actions of the machine
    action       text NOT NULL DEFAULT '',
    action_order smallint NOT NULL DEFAULT 0,
    old          boolean NOT NULL DEFAULT false, -- carries out its service as it was before the operation
    undo         boolean NOT NULL DEFAULT false, -- takes back what other tasks of the operation did
    level        int NOT NULL DEFAULT 0, -- 1 + the highest level of a predecessor, for pages
    rank         int NOT NULL DEFAULT 0, -- tasks of the longest path from here to the end; the highest goes first on a node
    critical     boolean NOT NULL DEFAULT false, -- on one longest path of the plan
    status       text NOT NULL CHECK (status IN ('blocked', 'ready', 'running', 'complete', 'skipped', 'failed', 'dropped')),
    in_backlog   boolean NOT NULL DEFAULT false, -- ready, and in backlog_lots instead of ready_tasks
    remaining    int NOT NULL DEFAULT 0 CHECK (remaining >= 0), -- open dependencies
    attempt      int NOT NULL DEFAULT 0, -- River's number of the newest attempt: the fence
    river_job_id bigint, -- may dangle: River deletes finished rows
    process_id   text NOT NULL DEFAULT '', -- which runs it, or ran it last
    code         int NOT NULL DEFAULT 0,
    message      text NOT NULL DEFAULT '',
    skipped_by   text NOT NULL DEFAULT '', -- who skipped it, and why
    skip_reason  text NOT NULL DEFAULT '',
    started_at   timestamptz,
    ended_at     timestamptz
) WITH (fillfactor = 50);
-- The tasks of an operation, in the order of their numbers.
CREATE INDEX tasks_operation ON tasks (operation_id, number);
-- What is a gate is read from here, not from each task.
CREATE INDEX tasks_gates ON tasks (operation_id, id) WHERE gate;
-- Usage of nodes counts from the completion of CREATE to that of DELETE. A DELETE that was
-- skipped ends it as well: nobody expects a machine behind that node.
CREATE INDEX tasks_lives ON tasks (tenant_id, cluster_id, node_id) WHERE action IN ('create', 'delete');
-- The tasks of a cluster that somebody skipped.
CREATE INDEX tasks_skipped ON tasks (cluster_id) WHERE skipped_by <> '' AND NOT gate;

-- Which task or gate waits for which.
CREATE TABLE task_edges (
    from_task bigint NOT NULL, -- ends first
    to_task   bigint NOT NULL,
    PRIMARY KEY (from_task, to_task)
);
-- What a task waits for.
CREATE INDEX task_edges_to ON task_edges (to_task);

-- Tasks that are ready, by node, but for those in the backlog; kept right by triggers on tasks.
-- A task that begins at once when the last one before it ends is never ready.
CREATE TABLE ready_tasks (
    node_id   uuid NOT NULL,
    task_id   bigint NOT NULL,
    tenant_id text NOT NULL,
    PRIMARY KEY (node_id, task_id)
);

-- Up to a hundred tasks of an operation that became ready together, beyond what River's queue of
-- their tenant needs to hold. They hold their nodes, have inert River jobs
-- and belong to an operation that runs. A row for many, so that what waits costs a batch something,
-- not a task. tasks.in_backlog says the same of each; the view backlog lists them one by one.
CREATE TABLE backlog_lots (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    text NOT NULL,
    operation_id bigint NOT NULL,
    priority     smallint NOT NULL, -- as River's
    since        timestamptz NOT NULL,
    tasks        bigint[] NOT NULL CHECK (cardinality(tasks) > 0) -- in the order of their ids
) WITH (autovacuum_vacuum_scale_factor = 0.5);
-- The order in which lots have their turn.
CREATE INDEX backlog_lots_order ON backlog_lots (tenant_id, priority, since, id);
-- What waits of an operation that is given up.
CREATE INDEX backlog_lots_operation ON backlog_lots (operation_id);

-- One try of a task. loom_start and its kin insert it with the task locked, and tasks are never
-- deleted alone: a foreign key cost as much as the insert.
CREATE TABLE attempts (
    task_id    bigint NOT NULL,
    number     int NOT NULL, -- River's attempt number
    process_id text NOT NULL,
    status     text NOT NULL CHECK (status IN ('running', 'complete', 'failed', 'interrupted', 'aborted')),
    code       int NOT NULL DEFAULT 0,
    message    text NOT NULL DEFAULT '',
    stdout     text NOT NULL DEFAULT '', -- its end, for failures only and for the legacy format
    stderr     text NOT NULL DEFAULT '', -- likewise
    facts      jsonb, -- facts about its node, without secrets; NULL: nothing
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    PRIMARY KEY (task_id, number)
) WITH (fillfactor = 50);

-- Ids of log lines. An identity column cannot be had on a partitioned table before PostgreSQL 17.
CREATE SEQUENCE task_logs_line;

-- The output of attempts, line by line, in one partition per day on which attempts began (UTC), so
-- that old lines go as whole tables.
CREATE TABLE task_logs (
    task_id      bigint NOT NULL,
    attempt      int NOT NULL,
    seq          int NOT NULL, -- numbered by the writer, per attempt, from 1
    id           bigint NOT NULL DEFAULT nextval('task_logs_line'),
    operation_id bigint NOT NULL,
    node_id      uuid,
    at           timestamptz NOT NULL,
    stream       text NOT NULL,
    level        text NOT NULL DEFAULT 'info',
    text         text NOT NULL,
    -- Ids are given out before commit, so a reader that continues behind the highest one it saw
    -- would miss a line that is committed late. Numbers of transactions tell which lines are
    -- settled: below the xmin of a snapshot nothing new appears. Lines of a whole operation or
    -- node are read in the order (xid, id) up to there.
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- Of the attempt's begin, not of the line: all lines of an attempt lie in one partition and
    -- its numbers stay unique.
    day          date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    PRIMARY KEY (task_id, attempt, seq, day)
) PARTITION BY RANGE (day);
ALTER SEQUENCE task_logs_line OWNED BY task_logs.id;
-- The lines of an operation and of a node, in an order that never changes.
CREATE INDEX task_logs_operation_order ON task_logs (operation_id, xid, id);
CREATE INDEX task_logs_node_order ON task_logs (node_id, xid, id) WHERE node_id IS NOT NULL;

-- Takes lines of days that have no partition: a line is never refused because a duty did not run.
CREATE TABLE task_logs_default PARTITION OF task_logs DEFAULT;

-- Today and the next two days; a duty makes those that follow (loom_log_partition).
-- +goose StatementBegin
DO $$
DECLARE
    v_day date;
BEGIN
    FOR n IN 0..2 LOOP
        v_day := (now() AT TIME ZONE 'UTC')::date + n;
        EXECUTE format('CREATE TABLE %I PARTITION OF task_logs FOR VALUES FROM (%L) TO (%L)', 'task_logs_p' || to_char(v_day, 'YYYYMMDD'), v_day, v_day + 1);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- Processes and workers --------------------------------------------------------

-- A live process of any kind, with its lease.
CREATE TABLE processes (
    id              text PRIMARY KEY,
    kind            text NOT NULL,
    host            text NOT NULL,
    port            int NOT NULL DEFAULT 0,
    version         text NOT NULL DEFAULT '',
    capacity        int NOT NULL DEFAULT 0, -- tasks at once
    only_tenant     text, -- a provisioner started for one tenant
    plugins         text[] NOT NULL DEFAULT '{}',
    plugin_versions jsonb NOT NULL DEFAULT '{}', -- plugin type -> release; types that are part of Loom are left out
    local_host      jsonb NOT NULL DEFAULT '{}', -- what a provisioner says of its host for local machines: the most that one may have, and what the host lacks
    draining        boolean NOT NULL DEFAULT false, -- what it says of itself with every renewal of its lease
    drain_asked     boolean NOT NULL DEFAULT false, -- what it was asked from outside, until it is asked otherwise
    last_error      text NOT NULL DEFAULT '', -- what last went wrong in it
    last_error_at   timestamptz,
    started_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL -- end of its lease, by the database's clock
);

-- A process whose row went: the reaper looks once whether something of it still runs. It would have
-- to read all nodes with a task to look each time.
CREATE TABLE departed_processes (
    id text PRIMARY KEY
);

-- Workers of a tenant in a provisioner.
CREATE TABLE worker_assignments (
    tenant_id  text NOT NULL REFERENCES tenants,
    process_id text NOT NULL REFERENCES processes ON DELETE CASCADE,
    workers    int NOT NULL CHECK (workers > 0),
    PRIMARY KEY (tenant_id, process_id)
);
-- The assignments of a process, which go with it.
CREATE INDEX worker_assignments_process ON worker_assignments (process_id);

-- A tenant whose tasks do not begin until somebody says so (docs/decisions/0047). Nearly always
-- empty: the functions that begin tasks look here once for each batch.
CREATE TABLE paused_tenants (
    tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    paused_by text NOT NULL,
    paused_at timestamptz NOT NULL DEFAULT now()
);

-- Providers and machines -------------------------------------------------------

-- Something that a provisioner shall ask of a provider. Its River job (probe_provider) names the
-- row and nothing else. Only the newest answer to a probe and the newest sweep of each provider
-- are kept, and the ten newest to drafts of a tenant.
CREATE TABLE provider_requests (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    provider_name text NOT NULL,
    -- probe: does it work; sweep: which machines are there; remove: an orphan; leftover: a machine
    -- that a delete left behind; verify: does one size or image exist; draft: does a provider work
    -- that is not saved yet.
    purpose       text NOT NULL CHECK (purpose IN ('probe', 'sweep', 'remove', 'leftover', 'verify', 'draft')),
    orphan_id     bigint, -- the machine of a removal
    leftover_id   bigint, -- the machine of a leftover
    offer_kind    text NOT NULL DEFAULT '', -- flavor or image, of a verification
    offer_id      text NOT NULL DEFAULT '', -- the provider's own, of a verification
    sealed        bytea, -- the provider of a draft, secrets included; NULL as soon as it ended
    requested_by  text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    process_id    text NOT NULL DEFAULT '', -- who carries it out
    started_at    timestamptz,
    ended_at      timestamptz,
    failure       text NOT NULL DEFAULT '', -- why a removal failed, '' when it did not
    refused       boolean NOT NULL DEFAULT false, -- a removal failed because a live node has the machine
    probe         jsonb -- the answer to a probe; while ended_at is NULL the steps so far
);
-- The newest request of each purpose for a provider.
CREATE INDEX provider_requests_of ON provider_requests (tenant_id, provider_name, purpose, id DESC);
-- Whether a leftover is being removed.
CREATE INDEX provider_requests_leftover ON provider_requests (leftover_id) WHERE leftover_id IS NOT NULL AND ended_at IS NULL;
-- Requests that wait for an answer.
CREATE INDEX provider_requests_open ON provider_requests (created_at) WHERE ended_at IS NULL;

-- A machine of this installation that no live node claims, as the hourly sweeps saw it.
CREATE TABLE orphans (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    provider_name text NOT NULL,
    machine_id    text NOT NULL, -- the provider's own
    name          text NOT NULL DEFAULT '',
    key           text NOT NULL DEFAULT '', -- idempotency key, as on the machine
    cluster_id    bigint NOT NULL,
    node_id       uuid NOT NULL,
    first_seen    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, provider_name, machine_id)
);

-- A machine that the delete of a cluster left behind. The row stays when the machine is gone:
-- usage of the node ends then. One per node and incarnation.
CREATE TABLE leftovers (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    cluster_id    bigint NOT NULL REFERENCES clusters,
    node_id       uuid NOT NULL REFERENCES nodes ON DELETE CASCADE,
    incarnation   int NOT NULL, -- of the node: its next machine is another one
    provider_name text NOT NULL,
    machine_id    text NOT NULL DEFAULT '', -- the provider's own, '' where none is known
    last_error    text NOT NULL DEFAULT '',
    tries         int NOT NULL DEFAULT 0,
    first_at      timestamptz NOT NULL DEFAULT now(),
    last_at       timestamptz NOT NULL DEFAULT now(),
    ended_at      timestamptz, -- NULL while the machine may be there
    ending        text NOT NULL DEFAULT '' CHECK (ending IN ('', 'removed', 'abandoned', 'settled')),
    CHECK ((ended_at IS NULL) = (ending = '')),
    UNIQUE (node_id, incarnation)
);
-- The leftovers of a cluster.
CREATE INDEX leftovers_cluster ON leftovers (cluster_id);
-- Those that are still tried.
CREATE INDEX leftovers_open ON leftovers (id) WHERE ended_at IS NULL;

-- Hooks ------------------------------------------------------------------------

-- An HTTP notice about operations. Its secret is sealed in secrets, as entity "hook:<id>".
CREATE TABLE hooks (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   text NOT NULL REFERENCES tenants,
    name        text NOT NULL,
    url         text NOT NULL,
    events      text[] NOT NULL CHECK (events <@ '{start,success,failure}'),
    actions     text[] NOT NULL DEFAULT '{}', -- empty: all
    templates   text[] NOT NULL DEFAULT '{}', -- empty: all
    blocking    boolean NOT NULL DEFAULT false, -- asked before an operation starts
    on_timeout  text NOT NULL DEFAULT 'refuse' CHECK (on_timeout IN ('go', 'refuse')), -- if it does not answer
    global      boolean NOT NULL DEFAULT false, -- about operations of all tenants
    legacy_body boolean NOT NULL DEFAULT false,
    enabled     boolean NOT NULL DEFAULT true,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CHECK (NOT global OR tenant_id = 'superadmin'),
    CHECK (NOT blocking OR 'start' = ANY (events))
);
-- The hooks of a tenant.
CREATE INDEX hooks_tenant ON hooks (tenant_id, id);
-- Asked by every operation of every tenant.
CREATE INDEX hooks_global ON hooks (id) WHERE global AND enabled;

-- One notice of a hook and what became of it. A waiting one has a River job.
CREATE TABLE hook_deliveries (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hook_id      bigint NOT NULL REFERENCES hooks ON DELETE CASCADE,
    tenant_id    text NOT NULL, -- of the hook, not of the operation
    operation_id bigint NOT NULL REFERENCES operations,
    event        text NOT NULL CHECK (event IN ('start', 'success', 'failure')),
    blocking     boolean NOT NULL DEFAULT false, -- the operation waits for the answer
    notice       jsonb NOT NULL, -- the facts of the moment of the event
    event_at     timestamptz NOT NULL DEFAULT now(),
    created_at   timestamptz NOT NULL DEFAULT now(), -- later than event_at when sent again by hand
    status       text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'delivered', 'refused', 'failed')),
    tries        int NOT NULL DEFAULT 0,
    code         int NOT NULL DEFAULT 0, -- HTTP status of the last try, 0: no answer
    duration_ms  int NOT NULL DEFAULT 0,
    error        text NOT NULL DEFAULT '',
    next_at      timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz
);
-- The deliveries of a hook, the newest first.
CREATE INDEX hook_deliveries_hook ON hook_deliveries (hook_id, id DESC);
-- What is still to be sent.
CREATE INDEX hook_deliveries_waiting ON hook_deliveries (next_at) WHERE status = 'waiting';
-- The deliveries about an operation.
CREATE INDEX hook_deliveries_operation ON hook_deliveries (operation_id);
-- Old deliveries are deleted.
CREATE INDEX hook_deliveries_age ON hook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- Events and the audit ---------------------------------------------------------

-- A hint that something changed. Kept an hour at least.
CREATE TABLE events (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text NOT NULL,
    topic      text NOT NULL,
    ids        text[] NOT NULL DEFAULT '{}', -- empty: look at everything
    created_at timestamptz NOT NULL DEFAULT now(),
    -- A reader keeps the snapshot in which it read. New to it next time is what that snapshot
    -- could not see: transactions that began later, and those that were still open.
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id()
);
-- Events in the order of their transactions.
CREATE INDEX events_order ON events (xid);
-- Old events are deleted.
CREATE INDEX events_age ON events (created_at);

-- How far events have been deleted: one row. A reader with an older cursor loads all again.
CREATE TABLE event_floor (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    gone    xid8 NOT NULL DEFAULT '0', -- the highest transaction that lost an event; raised by a trigger
    -- Below it every transaction was over when events were trimmed the last time. Only those are
    -- trimmed the next time, so a transaction that stays open for hours loses nothing.
    settled xid8 NOT NULL DEFAULT '0'
);
INSERT INTO event_floor DEFAULT VALUES;

-- Who did what, written in the transaction of the change. Retention deletes from the start.
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
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The audit is a hash chain. The scheduler links entries once their transactions are over.
    link       bigint, -- number in the chain, from 1, without gaps
    mac        bytea, -- HMAC-SHA256 over the mac before and the entry
    key_id     text, -- which sealing key the key of the mac was derived from
    CONSTRAINT audit_linked CHECK ((link IS NULL) = (mac IS NULL) AND (link IS NULL) = (key_id IS NULL))
);
-- What lists of the audit filter by; each goes on by id.
CREATE INDEX audit_tenant ON audit (tenant_id, id DESC);
CREATE INDEX audit_actor ON audit (tenant_id, actor, id DESC);
CREATE INDEX audit_object ON audit (tenant_id, kind, object, id DESC);
-- The newest activity, of a tenant and of all.
CREATE INDEX audit_time ON audit (tenant_id, created_at);
CREATE INDEX audit_time_all ON audit (created_at, id);
-- The chain, and what is not linked yet.
CREATE UNIQUE INDEX audit_link ON audit (link) WHERE link IS NOT NULL;
CREATE INDEX audit_unlinked ON audit (id) WHERE link IS NULL;

-- Where the chain of the audit begins and ends: one row.
CREATE TABLE audit_chain (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    start_link   bigint NOT NULL DEFAULT 0, -- the last entry that retention removed
    start_mac    bytea NOT NULL DEFAULT '',
    start_key_id text NOT NULL DEFAULT '',
    start_proof  bytea NOT NULL DEFAULT '', -- that whoever holds the keys moved the start
    newest_link  bigint NOT NULL DEFAULT 0, -- the last entry that was linked; tells when the end was cut off
    newest_mac   bytea NOT NULL DEFAULT '',
    -- Transactions with a number up to horizon_xid may still bring entries with an id up to
    -- horizon_id. Once all of them are over, no entry up to there can come, and the chain continues
    -- to it.
    horizon_id   bigint,
    horizon_xid  xid8
);
INSERT INTO audit_chain DEFAULT VALUES;

-- River's table ----------------------------------------------------------------

-- Nobody queries River jobs by args or metadata, and every state change of a job would write to
-- both of these indexes.
DROP INDEX IF EXISTS river_job_args_index;
DROP INDEX IF EXISTS river_job_metadata_index;
-- Nobody looks for the River jobs of tasks by their kind, but every version of their rows would be
-- noted there.
DROP INDEX IF EXISTS river_job_kind;
CREATE INDEX river_job_kind ON river_job (kind) WHERE kind <> 'run_task';
