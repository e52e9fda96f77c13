-- +goose Up
-- What becomes of an incident: whether Loom repairs it by itself or asks somebody.
ALTER TABLE incidents
    ADD COLUMN decision   text NOT NULL DEFAULT '' CHECK (decision IN ('', 'asked', 'held', 'accepted', 'declined', 'begun')),
    ADD COLUMN reason     text NOT NULL DEFAULT '', -- why a repair is held
    ADD COLUMN decided_by text NOT NULL DEFAULT '', -- who accepted or declined; system where Loom began
    ADD COLUMN decided_at timestamptz,
    ADD COLUMN operation  int; -- number of the repair
-- The repairs of a tenant in a day.
CREATE INDEX incidents_repaired ON incidents (tenant_id, decided_at) WHERE operation IS NOT NULL;

-- What Loom may repair by itself, in place of what the template says.
ALTER TABLE clusters ADD COLUMN repair jsonb NOT NULL DEFAULT '{}';

-- Hooks may hear of the health of clusters, which no operation is about.
ALTER TABLE hooks DROP CONSTRAINT hooks_events_check;
ALTER TABLE hooks ADD CONSTRAINT hooks_events_check CHECK (events <@ '{start,success,failure,health}');
ALTER TABLE hook_deliveries DROP CONSTRAINT hook_deliveries_event_check;
ALTER TABLE hook_deliveries ADD CONSTRAINT hook_deliveries_event_check CHECK (event IN ('start', 'success', 'failure', 'health') AND (event = 'health') = (operation_id IS NULL));
ALTER TABLE hook_deliveries ALTER operation_id DROP NOT NULL;
ALTER TABLE hook_deliveries
    ADD COLUMN cluster_id bigint REFERENCES clusters; -- of a notice about health
-- The notices about the health of a cluster.
CREATE INDEX hook_deliveries_health ON hook_deliveries (hook_id, cluster_id) WHERE cluster_id IS NOT NULL;
