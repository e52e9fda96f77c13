-- Pages answer at once, however many clusters and nodes a tenant has.

-- +goose Up

-- What a tenant uses of its quota of nodes is counted from the index alone. The state of
-- a node changes two or three times in its life; what else happens to it stays out of the
-- indexes as before.
CREATE INDEX nodes_in_use ON nodes (tenant_id, cluster_id) WHERE state <> 'deleted';
-- How many clusters somebody has of a template: the form of a new one counts on.
CREATE INDEX clusters_owner_template ON clusters (tenant_id, owner_id, template_name);
