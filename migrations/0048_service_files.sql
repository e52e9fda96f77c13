-- Which files each service of a node was last set up with.

-- +goose Up

-- {service: {action: {"automator type/resource type/name": SHA-256}}}, of the actions that
-- put a service on a machine. Nodes that were set up before know nothing.
ALTER TABLE nodes ADD COLUMN service_files jsonb NOT NULL DEFAULT '{}';
