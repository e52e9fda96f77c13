-- The audit as a hash chain (entities.md 21.5): the scheduler links entries once
-- their transactions are over. Entries are written without link and mac.

-- +goose Up

ALTER TABLE audit
    ADD COLUMN link   bigint, -- number in the chain, from 1, without gaps
    ADD COLUMN mac    bytea,  -- HMAC-SHA256 over the mac before and the entry
    ADD COLUMN key_id text;   -- which sealing key the key of the mac was derived from
ALTER TABLE audit ADD CONSTRAINT audit_linked CHECK ((link IS NULL) = (mac IS NULL) AND (link IS NULL) = (key_id IS NULL));
CREATE UNIQUE INDEX audit_link ON audit (link) WHERE link IS NOT NULL;
CREATE INDEX audit_unlinked ON audit (id) WHERE link IS NULL;

-- One row. The start is what retention left: the last entry it removed, with a
-- proof that whoever holds the keys moved it. The newest is what was linked last,
-- which also tells when the end was cut off.
--
-- The horizon: transactions with a number up to horizon_xid may still bring
-- entries with an id up to horizon_id. Once all of them are over, no entry up to
-- there can come any more, and the chain goes on to it.
CREATE TABLE audit_chain (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    start_link   bigint NOT NULL DEFAULT 0,
    start_mac    bytea NOT NULL DEFAULT '',
    start_key_id text NOT NULL DEFAULT '',
    start_proof  bytea NOT NULL DEFAULT '',
    newest_link  bigint NOT NULL DEFAULT 0,
    newest_mac   bytea NOT NULL DEFAULT '',
    horizon_id   bigint,
    horizon_xid  xid8
);
INSERT INTO audit_chain DEFAULT VALUES;

-- What lists of the audit filter by; each goes on by id.
CREATE INDEX audit_actor ON audit (tenant_id, actor, id DESC);
CREATE INDEX audit_object ON audit (tenant_id, kind, object, id DESC);
CREATE INDEX audit_time ON audit (tenant_id, created_at);
