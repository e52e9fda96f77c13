package processes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// removeLeftover tries once more to remove a machine that the delete of its cluster
// left behind. When none is left, the cluster is terminated.
func (f *Processes) removeLeftover(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, asker Asker) error {
	l, err := store.LeftoverAllTenants(ctx, f.db, r.Leftover)
	if errors.Is(err, loom.NotFound) { // somebody else was done with it
		return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
			_, err := store.EndRequest(ctx, tx, r.Tenant, r.ID, process, nil, "", false)
			return err
		})
	}
	if err != nil {
		return err
	}
	tried, err := f.tryLeftover(ctx, r, l, asker)
	if ctx.Err() != nil {
		return err
	}
	return f.endLeftover(ctx, process, r, l, tried, err)
}

// tryLeftover removes the machine as the DELETE of its node would; tried is false
// while an operation of the cluster is at work. What cannot be listed is removed by
// its id alone.
func (f *Processes) tryLeftover(ctx context.Context, r store.ProviderRequest, l loom.Leftover, asker Asker) (tried bool, err error) {
	claims, err := store.NodeClaims(ctx, f.db, r.Tenant, []loom.NodeID{l.Node}, r.Started)
	if err != nil {
		return false, err
	}
	if claim, there := claims[l.Node]; !there || claim.Busy || claim.Gone || claim.Incarnation != l.Incarnation {
		return false, nil
	}
	call, err := f.leftoverCall(ctx, l)
	if err != nil {
		return true, err
	}
	machines, listed, err := asker.Machines(ctx, call)
	if err != nil {
		return true, err
	}
	m := loom.TaggedMachine{ID: l.Machine, Name: l.Hostname, Node: l.Node, Key: loom.IdempotencyKey(l.Node, l.Incarnation), Cluster: l.Cluster.String(), Tenant: l.Tenant}
	if listed {
		i := slices.IndexFunc(machines, func(m loom.TaggedMachine) bool {
			if m.ID == "" || l.Machine != "" && m.ID != l.Machine {
				return false
			}
			cluster, ok := loom.ParseClusterID(m.Cluster)
			return ok && cluster == l.Cluster && m.Tenant == l.Tenant && nodeOf(m) == l.Node
		})
		if i < 0 {
			silent := slices.IndexFunc(machines, func(m loom.TaggedMachine) bool { return m.OwnerUnknown() && (l.Machine == "" || m.ID == l.Machine) })
			if silent >= 0 {
				return true, errSilent(machines[silent].ID)
			}
			return true, nil // it is gone
		}
		m = machines[i]
	} else if l.Machine == "" {
		return true, loom.NewError(loom.Unavailable, "The provider's id of the machine is unknown, and its machines cannot be listed. Look there for one of node %d, then stop tracking it here.", l.NodeNumber)
	}
	return true, asker.Remove(ctx, call, m, false)
}

// leftoverCall builds what is needed to ask the provider of a cluster in the way in which
// its tasks do: the provider with the cluster's own fields, over it the sealed fields of
// both, and the place of the machine; and what tasks learned of the node, in secret too.
func (f *Processes) leftoverCall(ctx context.Context, l loom.Leftover) (*loom.ProviderCall, error) {
	return store.AtOneMoment(ctx, f.db, func(tx *sqlx.Tx) (*loom.ProviderCall, error) { return f.readCall(ctx, tx, l) })
}

func (f *Processes) readCall(ctx context.Context, tx *sqlx.Tx, l loom.Leftover) (*loom.ProviderCall, error) {
	cluster, err := store.ClusterByID(ctx, tx, l.Tenant, l.Cluster)
	if err != nil {
		return nil, err
	}
	owner, err := store.Tenant(ctx, tx, l.Tenant)
	if err != nil {
		return nil, err
	}
	node, err := store.NodeByID(ctx, tx, l.Tenant, l.Cluster, l.Node)
	if err != nil {
		return nil, err
	}
	c := &loom.ProviderCall{Tenant: l.Tenant, Provider: cluster.Provider, ResourceSet: owner.ResourceSet, Facts: node.Results, Reach: owner.Permits.Reach()}
	fields := maps.Clone(cluster.Provider.Fields)
	if fields == nil {
		fields = map[string]any{}
	}
	for _, entity := range []string{store.ProviderSecrets(l.Provider), store.ClusterSecrets(l.Cluster)} {
		opened, err := f.openFields(ctx, tx, l.Tenant, entity, l.Provider)
		if err != nil {
			return nil, err
		}
		for field, plain := range opened {
			c.Sensitive = append(c.Sensitive, plain.Reveal())
			switch field {
			case loom.FieldPrivateKey:
				c.PrivateKey = plain
			case loom.FieldPublicKey:
			default:
				fields[field] = plain.Reveal()
			}
		}
	}
	c.Provider.Fields = fields
	c.Provider = c.Provider.AtPlace(loom.Placed(node.Results))
	hidden, err := f.openFields(ctx, tx, l.Tenant, store.NodeSecrets(l.Node), l.Provider)
	if err != nil {
		return nil, err
	}
	for name, plain := range hidden {
		fact, err := loom.RevealFact(name, plain)
		if err != nil {
			return nil, fmt.Errorf("reveal what node %s reported: %w", l.Node, err)
		}
		c.Facts = loom.JoinFacts(c.Facts, fact)
		c.Sensitive = append(c.Sensitive, loom.TextsIn(fact)...)
	}
	return c, nil
}

// endLeftover records what came of a try, and ends the cluster when nothing is left.
func (f *Processes) endLeftover(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, l loom.Leftover, tried bool, failure error) error {
	message := ""
	if failure != nil {
		message = loom.AsError(failure).Message
	}
	ended := store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		cluster, err := store.LockCluster(ctx, tx, l.Tenant, l.Cluster)
		if err != nil {
			return err
		}
		held, err := store.EndRequest(ctx, tx, r.Tenant, r.ID, process, nil, message, false)
		if err != nil || !held || !tried || cluster.Status != loom.ClusterIncomplete {
			return err
		}
		open, err := store.TriedLeftover(ctx, tx, l.Tenant, l, message)
		if err != nil || !open {
			return err
		}
		id := cluster.ID.String()
		if failure != nil {
			return store.InsertEvents(ctx, tx, loom.Event{Tenant: l.Tenant, Topic: "cluster:" + id})
		}
		actor := loom.SystemActor(l.Tenant, string(l.Tenant))
		err = store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "remove", Kind: "leftover", Object: l.Provider + "/" + l.Machine, Result: "ok",
			After: map[string]any{"clusterId": id, "nodeId": l.Node, "tries": l.Tries + 1}})
		if err != nil {
			return err
		}
		remains, err := store.Remains(ctx, tx, l.Tenant, l.Cluster)
		if err != nil {
			return err
		}
		if !remains {
			return store.TerminateCluster(ctx, tx, actor, l.Tenant, cluster, nil)
		}
		return store.InsertEvents(ctx, tx, loom.Event{Tenant: l.Tenant, Topic: "cluster:" + id}, loom.Event{Tenant: l.Tenant, Topic: "clusters", IDs: []string{id}})
	})
	if ended == nil && failure != nil && loom.AsError(failure).Kind == loom.Internal {
		return fmt.Errorf("%w: remove machine %s of cluster %s: %w", ErrRecorded, l.Machine, l.Cluster, failure)
	}
	return ended
}

// Leftovers lists the machines that deletes of clusters left behind, of all tenants;
// superadmins only.
func (f *Processes) Leftovers(ctx context.Context, actor loom.Actor) ([]loom.Leftover, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return store.LeftoversAllTenants(ctx, f.db)
}

// RetryLeftovers asks provisioners to try at once to remove what deletes left behind
// and says how many machines that concerns; those of which that is under way are
// left out. Superadmins only.
func (f *Processes) RetryLeftovers(ctx context.Context, actor loom.Actor) (int, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return 0, err
	}
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (int, error) {
		n, err := store.RequestLeftoversAllTenants(ctx, tx)
		if err != nil || n == 0 {
			return n, err
		}
		return n, store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "retry", Kind: "leftover", Object: "all", After: map[string]any{"machines": n}})
	})
}
