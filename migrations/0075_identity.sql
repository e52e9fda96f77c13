-- +goose Up
-- Identity providers that people sign in with, the rules that make them members of groups, and who
-- signed in.

-- A service that people of a tenant sign in with; those of the tenant of superadmins are for all tenants.
CREATE TABLE identity_providers (
    id            text PRIMARY KEY, -- generated; part of the addresses that the provider knows
    tenant_id     text NOT NULL REFERENCES tenants,
    name          text NOT NULL,
    issuer        text NOT NULL,
    client_id     text NOT NULL,
    user_claim    text NOT NULL,
    subject_claim text NOT NULL CHECK (subject_claim IN ('sub', 'oid')),
    max_age_days  int NOT NULL CHECK (max_age_days > 0), -- how long tokens of its users work after a sign-in
    enabled       boolean NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX identity_providers_name ON identity_providers (tenant_id, lower(name));

-- A rule of a provider: for whose claims all conditions hold is a member of the group.
CREATE TABLE identity_rules (
    provider_id text NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
    place       int NOT NULL, -- from 0
    conditions  jsonb NOT NULL,
    tenant_id   text NOT NULL,
    group_id    bigint NOT NULL,
    PRIMARY KEY (provider_id, place),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups
);
CREATE INDEX identity_rules_group ON identity_rules (tenant_id, group_id);

-- A person as a provider knows them.
CREATE TABLE identities (
    provider_id text NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
    subject     text NOT NULL,
    claims      jsonb NOT NULL, -- of the last sign-in
    seen_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (provider_id, subject)
);

-- The user of a tenant who signs in with an identity.
CREATE TABLE identity_users (
    provider_id text NOT NULL,
    subject     text NOT NULL,
    tenant_id   text NOT NULL,
    user_id     text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (provider_id, subject, tenant_id),
    FOREIGN KEY (provider_id, subject) REFERENCES identities ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE UNIQUE INDEX identity_users_user ON identity_users (tenant_id, user_id, provider_id);

-- Tokens and answers of providers that work once.
CREATE TABLE used_tokens (
    provider_id text NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
    token       text NOT NULL,
    ends_at     timestamptz NOT NULL,
    PRIMARY KEY (provider_id, token)
);

ALTER TABLE sessions ADD COLUMN provider_id text REFERENCES identity_providers ON DELETE CASCADE; -- the identity provider by which it began
ALTER TABLE sessions ADD COLUMN provider_session text; -- the provider's name for the sign-in
ALTER TABLE sessions ADD COLUMN id_token bytea; -- sealed; the provider knows the sign-in by it
CREATE INDEX sessions_provider ON sessions (provider_id) WHERE provider_id IS NOT NULL;
