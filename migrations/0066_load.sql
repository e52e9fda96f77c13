-- +goose Up
-- The load of a machine over 24 hours. A row goes with its machine.
CREATE TABLE node_load (
    node_id     uuid PRIMARY KEY REFERENCES nodes ON DELETE CASCADE,
    incarnation int NOT NULL, -- of the machine
    slot        bigint NOT NULL, -- of the newest point: 5 minutes each, counted from 1970
    points      bytea NOT NULL -- the newest last, at most 288 of 3 bytes: CPU, memory and disk in use, in percent; 255: not known
);
