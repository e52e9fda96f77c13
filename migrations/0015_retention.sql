-- Retention: task logs in one partition per day, so that old ones go as whole
-- tables, and what is known of the size of each operation's logs.

-- +goose Up

ALTER TABLE task_logs RENAME TO task_logs_before;
ALTER INDEX task_logs_pkey RENAME TO task_logs_before_pkey;
ALTER INDEX task_logs_operation_order RENAME TO task_logs_before_operation_order;
ALTER INDEX task_logs_node_order RENAME TO task_logs_before_node_order;

-- An identity column cannot be had on a partitioned table before PostgreSQL 17.
CREATE SEQUENCE task_logs_line;

-- day is that on which the attempt began (UTC), not that of the line: so all lines
-- of an attempt lie in one partition and its numbers stay unique.
CREATE TABLE task_logs (
    task_id      bigint NOT NULL,
    attempt      int NOT NULL,
    seq          int NOT NULL,
    id           bigint NOT NULL DEFAULT nextval('task_logs_line'),
    operation_id bigint NOT NULL,
    node_id      uuid,
    at           timestamptz NOT NULL,
    stream       text NOT NULL,
    level        text NOT NULL DEFAULT 'info',
    text         text NOT NULL,
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    day          date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    PRIMARY KEY (task_id, attempt, seq, day)
) PARTITION BY RANGE (day);
ALTER SEQUENCE task_logs_line OWNED BY task_logs.id;
CREATE INDEX task_logs_operation_order ON task_logs (operation_id, xid, id);
CREATE INDEX task_logs_node_order ON task_logs (node_id, xid, id) WHERE node_id IS NOT NULL;

-- Takes what comes for a day that nobody made a partition for: a line is never
-- refused because a duty did not run.
CREATE TABLE task_logs_default PARTITION OF task_logs DEFAULT;

-- loom_log_partition makes the partition of a day and moves there what the default
-- one took for it; false where it is there already. It attaches the table rather
-- than creating it as a partition, which would lock out every reader and writer.
-- +goose StatementBegin
CREATE FUNCTION loom_log_partition(p_day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text := 'task_logs_p' || to_char(p_day, 'YYYYMMDD');
BEGIN
    IF to_regclass(v_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    LOCK TABLE ONLY task_logs IN SHARE UPDATE EXCLUSIVE MODE;
    -- Somebody else may have made it meanwhile.
    IF to_regclass(v_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    LOCK TABLE task_logs_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE task_logs INCLUDING DEFAULTS INCLUDING INDEXES)', v_name);
    EXECUTE format('WITH moved AS (DELETE FROM task_logs_default WHERE day = %L RETURNING *) INSERT INTO %I SELECT * FROM moved', p_day, v_name);
    EXECUTE format('ALTER TABLE task_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', v_name, p_day, p_day + 1);
    RETURN true;
END
$$;
-- +goose StatementEnd

-- loom_old_log_partitions lists the partitions of days before p_day, oldest first.
-- +goose StatementBegin
CREATE FUNCTION loom_old_log_partitions(p_day date) RETURNS TABLE (name text)
LANGUAGE sql STABLE AS $$
    SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'task_logs'::regclass AND c.relname ~ '^task_logs_p[0-9]{8}$'
      AND to_date(right(c.relname, 8), 'YYYYMMDD') < p_day
    ORDER BY 1
$$;
-- +goose StatementEnd

-- The days that there are lines of, today and the next two.
SELECT loom_log_partition(d.day) FROM (
    SELECT DISTINCT (coalesce(a.started_at, l.at) AT TIME ZONE 'UTC')::date AS day
    FROM (SELECT task_id, attempt, min(at) AS at FROM task_logs_before GROUP BY task_id, attempt) l
    LEFT JOIN attempts a ON a.task_id = l.task_id AND a.number = l.attempt
    UNION
    SELECT (now() AT TIME ZONE 'UTC')::date + n FROM generate_series(0, 2) AS n
    ORDER BY 1) AS d;

INSERT INTO task_logs (task_id, attempt, seq, id, operation_id, node_id, at, stream, level, text, xid, day)
SELECT l.task_id, l.attempt, l.seq, l.id, l.operation_id, l.node_id, l.at, l.stream, l.level, l.text, l.xid,
       (coalesce(a.started_at, min(l.at) OVER (PARTITION BY l.task_id, l.attempt)) AT TIME ZONE 'UTC')::date
FROM task_logs_before l LEFT JOIN attempts a ON a.task_id = l.task_id AND a.number = l.attempt;
SELECT setval('task_logs_line', greatest((SELECT coalesce(max(id), 0) FROM task_logs_before), 0) + 1, false);
DROP TABLE task_logs_before;

-- Bytes of the task logs of an operation that has ended; NULL where nobody counted
-- them yet. logs_trimmed_at: its logs gave way to newer ones of the tenant.
ALTER TABLE operations ADD COLUMN log_bytes bigint;
ALTER TABLE operations ADD COLUMN logs_trimmed_at timestamptz;
CREATE INDEX operations_uncounted ON operations (id) WHERE log_bytes IS NULL AND ended_at IS NOT NULL;
CREATE INDEX operations_logs ON operations (tenant_id, ended_at) WHERE log_bytes > 0;
