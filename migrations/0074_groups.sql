-- +goose Up
-- Groups of users, and roles that users and groups are given in a tenant, on the clusters of a
-- template or on one cluster.
ALTER TABLE users DROP CONSTRAINT users_role_check;
ALTER TABLE users ADD CONSTRAINT users_role_check CHECK (role IN ('user', 'admin', 'none')); -- none: what groups and bindings give

-- Users of a tenant who have roles together.
CREATE TABLE groups (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id   text NOT NULL REFERENCES tenants,
    name        text NOT NULL,
    description text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX groups_name ON groups (tenant_id, lower(name));

-- A user in a group.
CREATE TABLE group_members (
    tenant_id text NOT NULL,
    group_id  bigint NOT NULL,
    user_id   text NOT NULL,
    source    text NOT NULL DEFAULT 'hand', -- how the user became a member
    added_at  timestamptz NOT NULL DEFAULT now(),
    added_by  text NOT NULL,
    PRIMARY KEY (tenant_id, group_id, user_id, source),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX group_members_user ON group_members (tenant_id, user_id);

-- A role of a user or a group: in all of the tenant, unless it names a template or a cluster.
CREATE TABLE role_bindings (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES tenants,
    user_id    text,
    group_id   bigint,
    role       text NOT NULL CHECK (role IN ('reader', 'user', 'operator', 'publisher', 'admin')),
    template   text, -- name; the binding is deleted with the last version
    cluster_id bigint REFERENCES clusters ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    CHECK (num_nonnulls(user_id, group_id) = 1),
    CHECK (num_nonnulls(template, cluster_id) <= 1),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);
CREATE UNIQUE INDEX role_bindings_once ON role_bindings
    (tenant_id, (coalesce(user_id, '')), (coalesce(group_id, 0)), role, (coalesce(template, '')), (coalesce(cluster_id, 0)));
CREATE INDEX role_bindings_user ON role_bindings (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX role_bindings_group ON role_bindings (tenant_id, group_id) WHERE group_id IS NOT NULL;
CREATE INDEX role_bindings_template ON role_bindings (tenant_id, template) WHERE template IS NOT NULL;
CREATE INDEX role_bindings_cluster ON role_bindings (cluster_id) WHERE cluster_id IS NOT NULL;
