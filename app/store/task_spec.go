package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
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
	// Node has its id, incarnation and results; Describe adds the rest.
	Node      loom.Node
	Owner     loom.UserID
	OwnerKeys []string
	Provider  loom.Provider
	Config    map[string]any
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

	hardware, image map[string]map[string]string // by type
}

// SealedValue is a sealed value with the names it was sealed under.
type SealedValue struct {
	Entity string `json:"entity"`
	Field  string `json:"field"`
	Sealed []byte `json:"sealed"`
}

// specOwn is the part of a task's facts that is its own.
type specOwn struct {
	TaskID      int64        `db:"task_id"`
	OperationID int64        `db:"operation_id"`
	TaskNumber  int          `db:"task_number"`
	Action      string       `db:"action"`
	Service     string       `db:"service"`
	Attempt     int          `db:"attempt"`
	Old         bool         `db:"old"`
	Undo        bool         `db:"undo"`
	StartedAt   sql.NullTime `db:"started_at"`
	Node        string       `db:"node_id"`
	Incarnation int          `db:"incarnation"`
	Leaving     bool         `db:"leaving"`
	Results     []byte       `db:"results"`
	SealedNode  []byte       `db:"sealed_node"`
}

type specRow struct {
	specOwn
	Status string `db:"task_status"`
	// What a group has in common, with its first task; nil with the others.
	Common []byte `db:"common"`
}

// specCommon is what a group has in common, as the statement gives it.
type specCommon struct {
	Tenant      loom.TenantID                `json:"tenant"`
	Cluster     loom.ClusterID               `json:"cluster"`
	Operation   int                          `json:"operation"`
	Owner       loom.UserID                  `json:"owner"`
	SSHKeys     []string                     `json:"ssh_keys"`
	ResourceSet int                          `json:"resource_set"`
	Provider    loom.Provider                `json:"provider"`
	Config      map[string]any               `json:"config"`
	Service     *loom.Service                `json:"service"`
	Hardware    map[string]map[string]string `json:"hardware"`
	Image       map[string]map[string]string `json:"image"`
	Version     int64                        `json:"nodes_version"`
	Sealed      []SealedValue                `json:"sealed"`
	Now         time.Time                    `json:"now"`
}

// specGroup is what tasks have in common whose specs differ in their nodes only.
type specGroup struct {
	operation int64
	service   string
	old, undo bool
}

func (r *specOwn) group() specGroup { return specGroup{r.OperationID, r.Service, r.Old, r.Undo} }

// common decodes what the tasks of a group share, from the row of the first of them.
// Nobody changes it.
func (r *specRow) common() (*SpecFacts, error) {
	var c specCommon
	if err := decodeExact(r.Common, &c); err != nil {
		return nil, fmt.Errorf("read what task %d needs: %w", r.TaskID, err)
	}
	return &SpecFacts{
		Ref:   loom.TaskRef{Operation: loom.OperationRef{Cluster: c.Cluster, Number: c.Operation}, Number: r.TaskNumber},
		Owner: c.Owner, OwnerKeys: c.SSHKeys, ResourceSet: c.ResourceSet, NodesVersion: c.Version, Tenant: c.Tenant, Now: c.Now,
		Provider: c.Provider, Config: c.Config, Service: r.Service, ServiceCopy: c.Service, Undo: r.Undo,
		hardware: c.Hardware, image: c.Image, Sealed: c.Sealed,
	}, nil
}

// facts decodes what is the task's own, and adds what it has in common with others.
func (r *specOwn) facts(common *SpecFacts) (SpecFacts, error) {
	f := *common
	f.Row, f.Ref.Number = loom.TaskID(r.TaskID), r.TaskNumber
	f.Action, f.Attempt = loom.TaskAction(r.Action), r.Attempt
	f.Started = r.StartedAt.Time
	f.Node = loom.Node{ID: loom.NodeID(r.Node), Cluster: f.Ref.Operation.Cluster, Incarnation: r.Incarnation, Leaving: r.Leaving}
	if err := decodeExact(r.Results, &f.Node.Results); err != nil {
		return f, fmt.Errorf("read the results of node %s: %w", r.Node, err)
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

// Describe adds what is said of the task's node wherever its cluster is described.
func (f *SpecFacts) Describe(n loom.NodeProperties) {
	f.Node.Number, f.Node.Hostname, f.Node.Addresses, f.Node.SSHUser = n.Number, n.Hostname, n.Addresses, n.SSHUser
	f.Node.HardwareType, f.Node.ImageType, f.Node.Flavor, f.Node.Image = n.HardwareType, n.ImageType, n.Flavor, n.Image
	f.Node.Services, f.Node.Automators = n.Services, n.Automators
	f.Hardware, f.Image = f.hardware[n.HardwareType], f.image[n.ImageType]
}

// A function, because PostgreSQL plans it once per session then: planning a statement
// of this size takes longer than reading a few tasks.
const specFacts = `
SELECT task_id, operation_id, task_number, action, service, task_status, attempt, old, undo, started_at, node_id, incarnation, leaving,
	results, sealed_node, common FROM loom_spec($1)`

const specNodes = `
SELECT id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses,
	($3 OR NOT leaving) AND (ipaddresses <> '{}' OR NOT (leaving OR $4)) AS told
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2`

// NodeProperties reads what plugins and macros see of the nodes of a cluster. Told are
// those of its layout, and with leaving also those on their way out. A node without
// an address that is leaving or gone is of no use to anybody; with reachable that is
// said of every node. All are those that are not told as well.
func NodeProperties(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, leaving, reachable bool) (told, all map[loom.NodeID]loom.NodeProperties, err error) {
	var rows []struct {
		nodeRow
		Told bool `db:"told"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, specNodes, tenant, cluster, leaving, reachable); err != nil {
		return nil, nil, wrap(err, "read the nodes of cluster %s", cluster)
	}
	told = make(map[loom.NodeID]loom.NodeProperties, len(rows))
	all = told // most of the time
	for i := range rows {
		r := &rows[i]
		n := loom.Node{
			Number: r.Number, Hostname: r.Hostname, HardwareType: r.HardwareType, ImageType: r.ImageType, Flavor: r.Flavor,
			Image: r.Image, SSHUser: r.SSHUser, Services: r.Services, Automators: r.Automators,
		}
		if err := decodeExact(r.IPAddresses, &n.Addresses); err != nil {
			return nil, nil, fmt.Errorf("read the addresses of node %s: %w", r.ID, err)
		}
		if !r.Told && len(all) == len(told) {
			all = maps.Clone(told)
		}
		if r.Told {
			told[loom.NodeID(r.ID)] = n.Properties()
		}
		all[loom.NodeID(r.ID)] = n.Properties()
	}
	return told, all, nil
}

// SpecFactsAllTenants reads what the specs of tasks are built from, but for the
// nodes of their clusters.
func SpecFactsAllTenants(ctx context.Context, prepared *Prepared, tasks ...loom.TaskID) ([]SpecFacts, error) {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = int64(t)
	}
	var rows []specRow
	if err := prepared.spec.selectInto(ctx, nil, &rows, pq.Array(ids)); err != nil {
		return nil, wrap(err, "read what %d tasks need", len(tasks))
	}
	facts, groups := make([]SpecFacts, 0, len(rows)), map[specGroup]*SpecFacts{}
	for i := range rows {
		if rows[i].Common != nil {
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
		f.Status = loom.TaskStatus(rows[i].Status)
		facts = append(facts, f)
	}
	return facts, nil
}
