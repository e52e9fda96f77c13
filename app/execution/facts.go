package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// taskFacts are the results of a task, divided: the open ones go to the node, the
// hidden ones are sealed. Names are the keys of both.
type taskFacts struct {
	task   loom.TaskID
	open   map[string]any
	hidden map[string]any
}

// splitResults divides the results of a task. Those that Loom itself tells of a node are
// nobody else's.
func splitResults(task loom.TaskID, results map[string]any) taskFacts {
	l := taskFacts{task: task}
	if len(results) > 0 {
		l.open, l.hidden = loom.SplitFacts(store.Facts(results))
	}
	return l
}

// sealHidden seals what tasks learned in secret, and forgets what was sealed
// before under the same names: a result replaces an earlier one as a whole.
func (o *Operations) sealHidden(ctx context.Context, tx *sqlx.Tx, all ...taskFacts) error {
	var tasks []loom.TaskID
	var names []string
	var secret []taskFacts
	for _, l := range all {
		for _, name := range slices.Sorted(maps.Keys(l.open)) {
			if _, hidden := l.hidden[name]; !hidden {
				tasks, names = append(tasks, l.task), append(names, name)
			}
		}
		if len(l.hidden) > 0 {
			secret = append(secret, l)
		}
	}
	if err := store.ForgetNodeSecretsAllTenants(ctx, tx, tasks, names); err != nil || len(secret) == 0 {
		return err
	}
	ids := make([]loom.TaskID, len(secret))
	for i, l := range secret {
		ids[i] = l.task
	}
	nodes, err := store.NodesOfTasksAllTenants(ctx, tx, ids)
	if err != nil {
		return err
	}
	slices.SortFunc(secret, func(a, b taskFacts) int { return cmp.Compare(nodes[a.task].Node, nodes[b.task].Node) })
	for _, l := range secret {
		n, ok := nodes[l.task]
		if !ok {
			return fmt.Errorf("task %d has no node to keep secrets for", l.task)
		}
		if err := o.sealFacts(ctx, tx, n.Tenant, n.Node, l.hidden); err != nil {
			return err
		}
	}
	return nil
}

// recordFiles keeps which files the accepted tasks of a batch have run.
func recordFiles(ctx context.Context, tx *sqlx.Tx, accepted []loom.TaskID, files map[loom.TaskID]map[string]int) error {
	var tasks []loom.TaskID
	var versions []map[string]int
	for _, id := range accepted {
		if ran, there := files[id]; there {
			tasks, versions = append(tasks, id), append(versions, ran)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	return store.KeepFilesAllTenants(ctx, tx, tasks, versions)
}

func (o *Operations) sealFacts(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, node loom.NodeID, hidden map[string]any) error {
	entity := store.NodeSecrets(node)
	sealed := make(map[string][]byte, len(hidden))
	for name, value := range hidden {
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("marshal a secret result of node %s: %w", node, err)
		}
		if sealed[name], err = o.ring.Seal(tenant, entity, name, loom.NewSecret(string(text))); err != nil {
			return err
		}
	}
	return store.PutSecrets(ctx, tx, tenant, entity, "system", sealed)
}

// sealBatch is how many nodes are looked at in one transaction.
const sealBatch = 100

// SealNodes seals secrets that results of tasks left on nodes in clear, before
// they were sealed at once, and says on how many nodes there were some. It is
// done when a scheduler starts, and twice does no harm.
func (o *Operations) SealNodes(ctx context.Context) (int, error) {
	sealed, after := 0, loom.NodeID("")
	for {
		nodes, err := store.NodeFactsAllTenants(ctx, o.db, after, sealBatch)
		if err != nil || len(nodes) == 0 {
			return sealed, err
		}
		for _, n := range nodes {
			after = n.Node
			if _, hidden := loom.SplitFacts(n.Results); len(hidden) == 0 {
				continue
			}
			if err := store.Exec(ctx, o.db, func(tx *sqlx.Tx) error { return o.sealNode(ctx, tx, n.Tenant, n.Node) }); err != nil {
				return sealed, err
			}
			sealed++
		}
	}
}

func (o *Operations) sealNode(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, node loom.NodeID) error {
	results, err := store.LockNodeFacts(ctx, tx, tenant, node)
	if err != nil {
		return err
	}
	open, hidden := loom.SplitFacts(results)
	if len(hidden) == 0 {
		return nil
	}
	if err := store.ReplaceNodeFacts(ctx, tx, tenant, node, open); err != nil {
		return err
	}
	return o.sealFacts(ctx, tx, tenant, node, hidden)
}
