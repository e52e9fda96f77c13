package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// SpecFacts is all that the database knows for one attempt of a task. Sealed
// values are still sealed.
type SpecFacts struct {
	Row     loom.TaskID
	Ref     loom.TaskRef
	Tenant  loom.TenantID
	Action  loom.TaskAction
	Status  loom.TaskStatus
	Attempt int
	// Started is when the attempt began; Now is the database clock.
	Started, Now time.Time
	Node         loom.Node
	Owner        loom.UserID
	OwnerKeys    []string
	Provider     loom.Provider
	Config       map[string]any
	// Service is the name of the task's service, "" for a node action; ServiceCopy
	// is the cluster's copy of it, nil where it has none.
	Service     string
	ServiceCopy *loom.Service
	Hardware    map[string]string
	Image       map[string]string
	ResourceSet int
	// NodesVersion changes when host names or addresses of the cluster's nodes do:
	// what NodeProperties gives later is at least as new.
	NodesVersion int64
	// Sealed are the sealed values of the provider, of the cluster and of the node.
	Sealed []SealedValue
	// Undo says that the task takes back what others of its operation did.
	Undo bool
}

// SealedValue is a sealed value with the names it was sealed under.
type SealedValue struct {
	Entity string `json:"entity"`
	Field  string `json:"field"`
	Sealed []byte `json:"sealed"`
}

type specRow struct {
	TaskID      int64          `db:"task_id"`
	TenantID    string         `db:"tenant_id"`
	ClusterID   int64          `db:"cluster_id"`
	Operation   int            `db:"operation_number"`
	TaskNumber  int            `db:"task_number"`
	Action      string         `db:"action"`
	Service     string         `db:"service"`
	Status      string         `db:"task_status"`
	Attempt     int            `db:"attempt"`
	StartedAt   sql.NullTime   `db:"started_at"`
	Now         time.Time      `db:"now"`
	Owner       string         `db:"owner_id"`
	SSHKeys     pq.StringArray `db:"ssh_keys"`
	Provider    []byte         `db:"provider"`
	Config      []byte         `db:"config"`
	ServiceCopy []byte         `db:"service_copy"`
	Hardware    []byte         `db:"hardware_settings"`
	Image       []byte         `db:"image_settings"`
	ResourceSet int            `db:"resource_set"`
	Version     int64          `db:"nodes_version"`
	Sealed      []byte         `db:"sealed"`
	SealedNode  []byte         `db:"sealed_node"`
	First       bool           `db:"is_first"`
	OperationID int64          `db:"operation_id"`
	Old         bool           `db:"old"`
	Undo        bool           `db:"undo"`
	nodeRow
}

// specGroup is what tasks have in common whose specs differ in their nodes only.
type specGroup struct {
	operation           int64
	service             string
	old, undo           bool
	hardware, imageType string
}

func (r *specRow) group() specGroup {
	return specGroup{r.OperationID, r.Service, r.Old, r.Undo, r.HardwareType, r.ImageType}
}

// common decodes what the tasks of a group share, from the row of the first of them.
// Nobody changes it.
func (r *specRow) common() (*SpecFacts, error) {
	f := &SpecFacts{
		Ref:   loom.TaskRef{Operation: loom.OperationRef{Cluster: loom.ClusterID(r.ClusterID), Number: r.Operation}, Number: r.TaskNumber},
		Owner: loom.UserID(r.Owner), OwnerKeys: r.SSHKeys, ResourceSet: r.ResourceSet, NodesVersion: r.Version,
		Tenant: loom.TenantID(r.TenantID), Service: r.Service, Undo: r.Undo,
	}
	for _, part := range []struct {
		name string
		data []byte
		into any
	}{
		{"provider", r.Provider, &f.Provider}, {"config", r.Config, &f.Config}, {"service", r.ServiceCopy, &f.ServiceCopy},
		{"hardware type", r.Hardware, &f.Hardware}, {"image type", r.Image, &f.Image}, {"sealed values", r.Sealed, &f.Sealed},
	} {
		if len(part.data) == 0 {
			continue
		}
		if err := decodeExact(part.data, part.into); err != nil {
			return f, fmt.Errorf("read the %s of task %s: %w", part.name, f.Ref, err)
		}
	}
	return f, nil
}

// facts decodes what is the task's own, and adds what it has in common with others.
func (r *specRow) facts(common *SpecFacts) (SpecFacts, error) {
	f := *common
	f.Row, f.Ref.Number = loom.TaskID(r.TaskID), r.TaskNumber
	f.Action, f.Status, f.Attempt = loom.TaskAction(r.Action), loom.TaskStatus(r.Status), r.Attempt
	f.Started, f.Now = r.StartedAt.Time, r.Now
	var err error
	if f.Node, err = r.node(); err != nil {
		return f, err
	}
	if len(r.SealedNode) > 0 {
		var ofNode []SealedValue
		if err := decodeExact(r.SealedNode, &ofNode); err != nil {
			return f, fmt.Errorf("read the sealed results of task %s: %w", f.Ref, err)
		}
		f.Sealed = append(f.Sealed[:len(f.Sealed):len(f.Sealed)], ofNode...)
	}
	return f, nil
}

// Tasks of one service on nodes of one kind form a group: what they have in common
// is large, so that it is read for the first of them only. Found is what each has.
const specFacts = `
WITH found AS MATERIALIZED (
	SELECT t.id AS task_id, t.operation_id, t.tenant_id, t.number AS task_number, t.action, t.service, t.status AS task_status, t.attempt, t.old, t.undo,
		a.started_at, n.id, n.cluster_id, n.number, n.incarnation, n.state, n.leaving, n.hostname, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser,
		n.services, n.automators, n.ipaddresses, n.results, n.service_states,
		(SELECT ` + sealedValues + ` FROM secrets s WHERE s.tenant_id = t.tenant_id AND s.entity = 'node:' || t.node_id::text) AS sealed_node
	FROM tasks t JOIN nodes n ON n.id = t.node_id
	LEFT JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt
	WHERE t.id = ANY ($1)
), first AS MATERIALIZED (
	SELECT min(task_id) AS task_id FROM found GROUP BY operation_id, service, old, undo, hardwaretype, imagetype
), common AS MATERIALIZED (
	SELECT f.task_id, true AS is_first, o.number AS operation_number, c.owner_id, coalesce(u.ssh_keys, '{}') AS ssh_keys, tn.resource_set, c.provider, c.config,
		CASE WHEN f.old THEN o.before->'services'->f.service WHEN f.undo THEN coalesce(o.after, '{}')->'services'->f.service ELSE c.services->f.service END AS service_copy,
		c.type_settings->'hardware'->f.hardwaretype AS hardware_settings, c.type_settings->'image'->f.imagetype AS image_settings,
		coalesce((SELECT v.version FROM node_changes v WHERE v.cluster_id = c.id), 0) AS nodes_version,
		(SELECT ` + sealedValues + ` FROM secrets s
		 WHERE s.tenant_id = c.tenant_id AND s.entity IN ('provider:' || c.provider_name, 'cluster:' || loom_pad(c.id))) AS sealed
	FROM first
	JOIN found f USING (task_id)
	JOIN operations o ON o.id = f.operation_id
	JOIN clusters c ON c.id = f.cluster_id
	JOIN tenants tn ON tn.id = f.tenant_id
	LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
)
SELECT f.*, now() AS now, coalesce(is_first, false) AS is_first, coalesce(operation_number, 0) AS operation_number, coalesce(owner_id, '') AS owner_id, ssh_keys,
	coalesce(resource_set, 0) AS resource_set, provider, config, service_copy, hardware_settings, image_settings, coalesce(nodes_version, 0) AS nodes_version, sealed
FROM found f LEFT JOIN common USING (task_id)`

const sealedValues = `jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', '')))`

const specNodes = `
SELECT id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND ($3 OR NOT leaving) AND (ipaddresses <> '{}' OR NOT (leaving OR $4))`

// NodeProperties reads what plugins and macros see of the nodes of a cluster: those
// of its layout, and with leaving also those on their way out. A node without an
// address that is leaving or gone is of no use to anybody; with reachable that is said
// of every node.
func NodeProperties(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, leaving, reachable bool) (map[loom.NodeID]loom.NodeProperties, error) {
	var rows []nodeRow
	if err := sqlx.SelectContext(ctx, q, &rows, specNodes, tenant, cluster, leaving, reachable); err != nil {
		return nil, wrap(err, "read the nodes of cluster %s", cluster)
	}
	nodes := make(map[loom.NodeID]loom.NodeProperties, len(rows))
	for i := range rows {
		r := &rows[i]
		n := loom.Node{
			Number: r.Number, Hostname: r.Hostname, HardwareType: r.HardwareType, ImageType: r.ImageType, Flavor: r.Flavor,
			Image: r.Image, SSHUser: r.SSHUser, Services: r.Services, Automators: r.Automators,
		}
		if err := decodeExact(r.IPAddresses, &n.Addresses); err != nil {
			return nil, fmt.Errorf("read the addresses of node %s: %w", r.ID, err)
		}
		nodes[loom.NodeID(r.ID)] = n.Properties()
	}
	return nodes, nil
}

// SpecFactsAllTenants reads what the specs of tasks are built from, but for the
// nodes of their clusters.
func SpecFactsAllTenants(ctx context.Context, hot *Hot, tasks ...loom.TaskID) ([]SpecFacts, error) {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = int64(t)
	}
	var rows []specRow
	if err := hot.spec.selectInto(ctx, nil, &rows, pq.Array(ids)); err != nil {
		return nil, wrap(err, "read what %d tasks need", len(tasks))
	}
	facts, groups := make([]SpecFacts, 0, len(rows)), map[specGroup]*SpecFacts{}
	for i := range rows {
		if rows[i].First {
			common, err := rows[i].common()
			if err != nil {
				return nil, err
			}
			groups[rows[i].group()] = common
		}
	}
	for i := range rows {
		common := groups[rows[i].group()]
		if common == nil {
			continue // its cluster is gone
		}
		f, err := rows[i].facts(common)
		if err != nil {
			return nil, err
		}
		facts = append(facts, f)
	}
	return facts, nil
}
