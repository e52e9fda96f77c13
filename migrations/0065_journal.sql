-- +goose Up
-- Journals of services that somebody follows. Rows go 10 minutes after the end, and all of them when the database crashes.
CREATE UNLOGGED TABLE journals (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id    text NOT NULL,
    cluster_id   bigint NOT NULL REFERENCES clusters ON DELETE CASCADE,
    node_id      uuid NOT NULL REFERENCES nodes ON DELETE CASCADE,
    service      text NOT NULL,
    user_id      text NOT NULL, -- who reads it
    lines        int NOT NULL, -- of the past
    follow       boolean NOT NULL, -- false: the lines of the past and no more
    created_at   timestamptz NOT NULL DEFAULT now(),
    wanted_until timestamptz NOT NULL, -- the reader moves it on
    process_id   text, -- NULL until a provisioner takes it
    began_at     timestamptz, -- when the first lines were stored, or were found missing
    ended_at     timestamptz,
    message      text NOT NULL DEFAULT '' -- why it ended
);
CREATE INDEX journals_user ON journals (tenant_id, user_id);

-- Their lines, without secrets.
CREATE UNLOGGED TABLE journal_lines (
    journal_id uuid NOT NULL REFERENCES journals ON DELETE CASCADE,
    seq        int NOT NULL, -- from 1, in the order in which they came
    at         timestamptz NOT NULL, -- when it was read
    text       text NOT NULL,
    skipped    int NOT NULL DEFAULT 0, -- not 0: replaces this number of lines that came too fast
    PRIMARY KEY (journal_id, seq)
);
