package clusters

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// takeProviderFields lays the given fields over what the cluster has (entities.md
// 17). A provider type that is gone answers NotFound, as machines cannot be
// reached without its plugin.
func (u *Clusters) takeProviderFields(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, cluster *loom.Cluster, given map[string]any) error {
	if errs := checkStorable("providerFields", given); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if cluster.Provider.Type == "" {
		return loom.ProviderGone(cluster.Provider.Name)
	}
	t, err := store.ProviderType(ctx, tx, cluster.Provider.Type)
	if err != nil {
		return err
	}
	entity := store.ClusterSecrets(cluster.ID)
	stored, err := store.Secrets(ctx, tx, actor.Tenant, entity)
	if err != nil {
		return err
	}
	fields := takeFields(t, cluster.Provider, sortedNames(stored), given)
	if err := loom.InvalidFields(fields.errs); err != nil {
		return err
	}
	if err := missingError(fields.missing); err != nil {
		return err
	}
	if len(fields.open) > 0 {
		cluster.Provider = withFields(cluster.Provider, fields.open)
		if err := store.AddProviderFields(ctx, tx, actor.Tenant, cluster.ID, fields.open); err != nil {
			return err
		}
	}
	if len(fields.sealed) == 0 {
		return nil
	}
	// Given secrets replace all earlier ones but the key pair of the cluster.
	for name := range stored {
		if name == loom.FieldPrivateKey || name == loom.FieldPublicKey {
			continue
		}
		if err := store.DeleteSecrets(ctx, tx, actor.Tenant, entity, name); err != nil {
			return err
		}
	}
	sealed, err := u.seal(actor.Tenant, cluster.ID, fields.sealed)
	if err != nil {
		return err
	}
	return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, sealed)
}
