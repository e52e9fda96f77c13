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
	Group       int64          `db:"in_group"`
	nodeRow
}

// facts decodes a row. What rows of one group have in common is read and decoded
// once: it is in the first row of the group only, and the others share its value.
// Nobody changes it.
func (r *specRow) facts(shared map[int64]*SpecFacts) (SpecFacts, error) {
	f := SpecFacts{
		Row:    loom.TaskID(r.TaskID),
		Ref:    loom.TaskRef{Operation: loom.OperationRef{Cluster: loom.ClusterID(r.ClusterID), Number: r.Operation}, Number: r.TaskNumber},
		Tenant: loom.TenantID(r.TenantID), Action: loom.TaskAction(r.Action), Status: loom.TaskStatus(r.Status), Attempt: r.Attempt,
		Started: r.StartedAt.Time, Now: r.Now, Owner: loom.UserID(r.Owner), OwnerKeys: r.SSHKeys,
		Service: r.Service, ResourceSet: r.ResourceSet, NodesVersion: r.Version,
	}
	var err error
	if f.Node, err = r.node(); err != nil {
		return f, err
	}
	var ofNode []SealedValue
	for _, part := range []struct {
		name string
		data []byte
		into any
	}{
		{"provider", r.Provider, &f.Provider}, {"config", r.Config, &f.Config}, {"service", r.ServiceCopy, &f.ServiceCopy},
		{"hardware type", r.Hardware, &f.Hardware}, {"image type", r.Image, &f.Image},
		{"sealed values", r.Sealed, &f.Sealed}, {"sealed results", r.SealedNode, &ofNode},
	} {
		if len(part.data) == 0 {
			continue
		}
		if err := decodeExact(part.data, part.into); err != nil {
			return f, fmt.Errorf("read the %s of task %s: %w", part.name, f.Ref, err)
		}
	}
	if first := shared[r.Group]; first != nil {
		f.Provider, f.Config, f.ServiceCopy = first.Provider, first.Config, first.ServiceCopy
		f.Hardware, f.Image, f.Sealed = first.Hardware, first.Image, first.Sealed
	} else {
		first := f
		shared[r.Group] = &first
	}
	f.Sealed = append(f.Sealed[:len(f.Sealed):len(f.Sealed)], ofNode...)
	return f, nil
}

// Tasks of one service on nodes of one kind form a group: what they have in common
// is large, so that only the first of them carries it.
const specFacts = `
WITH found AS MATERIALIZED (
	SELECT t.id AS task,
		first_value(t.id) OVER (PARTITION BY t.operation_id, t.service, t.old, t.undo, n.hardwaretype, n.imagetype ORDER BY t.id) AS in_group
	FROM tasks t JOIN nodes n ON n.id = t.node_id
	WHERE t.id = ANY ($1)
)
SELECT t.id AS task_id, t.tenant_id, t.number AS task_number, t.action, t.service, t.status AS task_status, t.attempt, o.number AS operation_number,
	a.started_at, now() AS now, c.owner_id, coalesce(u.ssh_keys, '{}') AS ssh_keys, tn.resource_set, f.in_group,
	CASE WHEN t.id = f.in_group THEN c.provider END AS provider, CASE WHEN t.id = f.in_group THEN c.config END AS config,
	CASE WHEN t.id <> f.in_group THEN NULL WHEN t.old THEN o.before->'services'->t.service WHEN t.undo THEN coalesce(o.after, '{}')->'services'->t.service ELSE c.services->t.service END AS service_copy,
	CASE WHEN t.id = f.in_group THEN c.type_settings->'hardware'->n.hardwaretype END AS hardware_settings,
	CASE WHEN t.id = f.in_group THEN c.type_settings->'image'->n.imagetype END AS image_settings,
	n.id, n.cluster_id, n.number, n.incarnation, n.state, n.leaving, n.hostname, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser,
	n.services, n.automators, n.ipaddresses, n.results, n.service_states,
	coalesce((SELECT v.version FROM node_changes v WHERE v.cluster_id = c.id), 0) AS nodes_version,
	CASE WHEN t.id = f.in_group THEN (SELECT ` + sealedValues + `
	 FROM secrets s WHERE s.tenant_id = c.tenant_id AND s.entity IN ('provider:' || c.provider_name, 'cluster:' || loom_pad(c.id))) END AS sealed,
	(SELECT ` + sealedValues + ` FROM secrets s WHERE s.tenant_id = c.tenant_id AND s.entity = 'node:' || n.id::text) AS sealed_node
FROM found f
JOIN tasks t ON t.id = f.task
JOIN operations o ON o.id = t.operation_id
JOIN clusters c ON c.id = t.cluster_id
JOIN tenants tn ON tn.id = t.tenant_id
JOIN nodes n ON n.id = t.node_id
LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
LEFT JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt
ORDER BY t.id = f.in_group DESC`

const sealedValues = `jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', '')))`

const specNodes = `
SELECT id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND ($3 OR NOT leaving)`

// NodeProperties reads what plugins and macros see of the nodes of a cluster: those
// of its layout, and with leaving also those on their way out and gone.
func NodeProperties(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, leaving bool) (map[loom.NodeID]loom.NodeProperties, error) {
	var rows []nodeRow
	if err := sqlx.SelectContext(ctx, q, &rows, specNodes, tenant, cluster, leaving); err != nil {
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
// nodes of their clusters, with what PrepareSpecFacts gave.
func SpecFactsAllTenants(ctx context.Context, read *Prepared, tasks ...loom.TaskID) ([]SpecFacts, error) {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = int64(t)
	}
	var rows []specRow
	if err := read.selectInto(ctx, &rows, pq.Array(ids)); err != nil {
		return nil, wrap(err, "read what %d tasks need", len(tasks))
	}
	facts, shared := make([]SpecFacts, len(rows)), map[int64]*SpecFacts{}
	for i := range rows {
		var err error
		if facts[i], err = rows[i].facts(shared); err != nil {
			return nil, err
		}
	}
	return facts, nil
}
