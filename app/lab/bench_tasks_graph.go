package lab

import (
	"context"
	"math/rand/v2"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// graphLayers is the depth of the measured graph and graphBefore how many tasks
	// of the layer before each of its tasks waits for.
	graphLayers, graphBefore = 10, 3
	// graphGate is the distance of layers that are joined by a gate instead.
	graphGate = 3
)

// graphActions are what the layers do, one after the other: actions of the
// services that a node of the template "mock" has.
var graphActions = []struct {
	service string
	action  loom.TaskAction
}{
	{"mock-base", loom.ActionInstall}, {"mock-base", loom.ActionConfigure}, {"mock-base", loom.ActionStart},
	{"mock-app", loom.ActionInstall}, {"mock-app", loom.ActionConfigure}, {"mock-app", loom.ActionInitialize}, {"mock-app", loom.ActionStart},
}

// layeredPlan has layers of one task on each node. A task waits for the one before
// it on its node and for two of other nodes; every third layer waits for the whole
// layer before it, through a gate.
func layeredPlan(nodes []loom.NodeID, layers int) loom.Plan {
	random := rand.New(rand.NewPCG(1, 2))
	width := len(nodes)
	plan := loom.Plan{Action: loom.ClusterCreate}
	for layer := range layers {
		what := graphActions[layer%len(graphActions)]
		for i, node := range nodes {
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: layer*width + i + 1, Node: node, NodeNumber: 1000 + i,
				Service: what.service, Action: what.action, Level: layer + 1, Rank: layers - layer})
		}
	}
	for layer := 1; layer < layers; layer++ {
		before, here := (layer-1)*width, layer*width
		if layer%graphGate == 0 {
			plan.Gates = append(plan.Gates, loom.Gate{Service: graphActions[(layer-1)%len(graphActions)].service, Action: graphActions[(layer-1)%len(graphActions)].action})
			gate := len(plan.Tasks) + len(plan.Gates)
			for i := range width {
				plan.Edges = append(plan.Edges, loom.Edge{From: before + i + 1, To: gate}, loom.Edge{From: gate, To: here + i + 1})
			}
			continue
		}
		for i := range width {
			from := map[int]bool{i: true}
			for len(from) < min(graphBefore, width) {
				from[random.IntN(width)] = true
			}
			for n := range from {
				plan.Edges = append(plan.Edges, loom.Edge{From: before + n + 1, To: here + i + 1})
			}
		}
	}
	return closed(plan)
}

// chainsPlan has a chain of steps on each node and nothing between them.
func chainsPlan(nodes []loom.NodeID, steps int) loom.Plan {
	plan := loom.Plan{Action: loom.ClusterCreate}
	for step := range steps {
		for i, node := range nodes {
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: step*len(nodes) + i + 1, Node: node, NodeNumber: 1000 + i,
				Service: "mock-base", Action: loom.ActionInstall, Level: step + 1, Rank: steps - step})
			if step > 0 {
				plan.Edges = append(plan.Edges, loom.Edge{From: (step-1)*len(nodes) + i + 1, To: step*len(nodes) + i + 1})
			}
		}
	}
	return closed(plan)
}

// closed adds the gate that is the end of a plan.
func closed(plan loom.Plan) loom.Plan {
	plan.Gates = append(plan.Gates, loom.Gate{})
	followed := map[int]bool{}
	for _, e := range plan.Edges {
		followed[e.From] = true
	}
	for i := range plan.Tasks {
		if !followed[i+1] {
			plan.Edges = append(plan.Edges, loom.Edge{From: i + 1, To: plan.EndVertex()})
		}
	}
	return plan
}

// A cluster for a graph is a copy of one that was made by request, with as many
// copies of its first node as the graph is wide. delay is what each task takes.
const (
	graphCluster = `
INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields,
    services, type_settings, config)
SELECT c.tenant_id, c.owner_id, 'graph', 'active', c.template_name, c.template_version, c.template, c.provider_name, c.provider_fields,
    jsonb_set(c.services, '{mock-base,provisioner,actions,install,fields}', jsonb_build_object('delay_ms', $2::text)), c.type_settings, c.config
FROM clusters c WHERE c.id = $1 RETURNING id`
	graphNodes = `
INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators,
    ipaddresses, results, service_states)
SELECT gen_random_uuid(), $2, n.tenant_id, 999 + i, 'ready', 'graph-' || i, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser, n.services,
    n.automators, n.ipaddresses, n.results, '{}'
FROM (SELECT * FROM nodes WHERE cluster_id = $1 ORDER BY number LIMIT 1) n, generate_series(1, $3) i RETURNING id`
)

// graphCluster makes a cluster of nodes that are there, and gives their ids.
func (b *benchInstance) graphCluster(ctx context.Context, pattern loom.ClusterID, nodes, delay int) (loom.ClusterID, []loom.NodeID, error) {
	var id loom.ClusterID
	if err := b.System.DB.GetContext(ctx, &id, graphCluster, int64(pattern), delay); err != nil {
		return 0, nil, err
	}
	var ids []loom.NodeID
	err := b.System.DB.SelectContext(ctx, &ids, graphNodes, int64(pattern), int64(id), nodes)
	return id, ids, err
}

// begin stores a plan, which lets it run.
func (b *benchInstance) begin(ctx context.Context, cluster loom.ClusterID, plan loom.Plan) (loom.Operation, error) {
	return store.InTx(ctx, b.System.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		return store.InsertPlan(ctx, tx, store.NewOperation{Tenant: b.actor.Tenant, Cluster: cluster, Action: plan.Action, RequestedBy: loom.AdminUser}, plan)
	})
}
