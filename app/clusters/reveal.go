package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Revealed is a machine's own sign-in.
type Revealed struct {
	User       string
	Password   loom.Secret
	PrivateKey loom.Secret
}

// Reveal gives the sign-in of a node: a password that the provider made up, the
// key pair of the cluster. A key that is a resource of the tenant is never
// revealed. Every reveal is in the audit. NotFound when there is nothing, and
// for nodes the actor may not see.
func (u *Clusters) Reveal(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) (Revealed, error) {
	return u.reveal(ctx, actor, id, node, true)
}

// RevealPassword is Reveal without the key of the cluster, which Key gives. NotFound for a
// node without a password of its own.
func (u *Clusters) RevealPassword(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) (Revealed, error) {
	return u.reveal(ctx, actor, id, node, false)
}

func (u *Clusters) reveal(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID, key bool) (Revealed, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return Revealed{}, err
	}
	if err := u.see(ctx, actor, id); err != nil {
		return Revealed{}, err
	}
	nothing := loom.NewError(loom.NotFound, "There is no sign-in to show for this node.")
	if node == "" || len(checkStorable("node", string(node))) > 0 {
		return Revealed{}, nothing
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (Revealed, error) {
		n, err := store.NodeByID(ctx, tx, actor.Tenant, id, node)
		if isNotFound(err) {
			return Revealed{}, nothing
		}
		if err != nil {
			return Revealed{}, err
		}
		r := Revealed{User: n.SSHUser}
		if auth, ok := n.Results["ssh-auth"].(map[string]any); ok {
			if user, _ := auth["user"].(string); user != "" {
				r.User = user
			}
		}
		if r.Password, err = u.machinePassword(ctx, tx, actor.Tenant, n); err != nil {
			return Revealed{}, err
		}
		if key {
			if r.PrivateKey, err = u.clusterKey(ctx, tx, actor.Tenant, id); err != nil {
				return Revealed{}, err
			}
		}
		if r.Password.IsZero() && r.PrivateKey.IsZero() {
			return Revealed{}, nothing
		}
		return r, store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: "reveal", Kind: "node", Object: id.String() + "/" + string(node), Result: "ok",
			After: map[string]any{"password": !r.Password.IsZero(), "privateKey": !r.PrivateKey.IsZero()},
		})
	})
}

// Key gives the private key that Loom made for a cluster, for a download. Every one is in
// the audit. NotFound where there is none, as where the provider brings the sign-in, and
// for clusters that the actor may not see.
func (u *Clusters) Key(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Secret, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.Secret{}, err
	}
	c, err := store.ClusterByID(ctx, u.db, actor.Tenant, id)
	if err := allowed(actor, loom.Operate, id, c.Owner, err); err != nil {
		return loom.Secret{}, err
	}
	nodes, err := store.NodesBriefly(ctx, u.db, actor.Tenant, id)
	if err != nil {
		return loom.Secret{}, err
	}
	signIns, err := u.SignIns(ctx, actor, c)
	if err != nil {
		return loom.Secret{}, err
	}
	if !signIns.Downloads(nodes) {
		return loom.Secret{}, loom.NewError(loom.NotFound, "No key of this cluster opens its machines; add your own SSH keys to them.")
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Secret, error) {
		key, err := u.clusterKey(ctx, tx, actor.Tenant, id)
		if err != nil {
			return loom.Secret{}, err
		}
		return key, store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "reveal", Kind: "cluster", Object: id.String(), Result: "ok", After: map[string]any{"privateKey": true}})
	})
}

// KeyFile is what the key of a cluster is stored as.
func KeyFile(id loom.ClusterID) string { return "loom-" + id.String() + ".pem" }

// clusterKey gives the private key that Loom made for a cluster, zero where it made none.
func (u *Clusters) clusterKey(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID) (loom.Secret, error) {
	sealed, err := store.Secrets(ctx, tx, tenant, store.ClusterSecrets(id))
	if err != nil {
		return loom.Secret{}, err
	}
	// A public key beside the private one says that Loom made the pair; a key
	// that someone gave as a provider field is his and stays hidden.
	if sealed[loom.FieldPublicKey] == nil || sealed[loom.FieldPrivateKey] == nil {
		return loom.Secret{}, nil
	}
	key, err := u.ring.Open(tenant, store.ClusterSecrets(id), loom.FieldPrivateKey, sealed[loom.FieldPrivateKey])
	if err != nil {
		return loom.Secret{}, fmt.Errorf("open the key of cluster %s: %w", id, err)
	}
	return key, nil
}

// machinePassword gives the password that the provider made up for a machine, zero where
// there is none. A credential of the provider itself, which older releases and plugins
// stored as the machine's, is none.
func (u *Clusters) machinePassword(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, n loom.Node) (loom.Secret, error) {
	entity := store.NodeSecrets(n.ID)
	sealed, err := store.Secrets(ctx, tx, tenant, entity)
	if err != nil {
		return loom.Secret{}, err
	}
	auth, _ := n.Results["ssh-auth"].(map[string]any)
	if sealed["ssh-auth"] != nil {
		plain, err := u.ring.Open(tenant, entity, "ssh-auth", sealed["ssh-auth"])
		if err != nil {
			return loom.Secret{}, fmt.Errorf("open the sign-in of node %s: %w", n.ID, err)
		}
		if json.Unmarshal([]byte(plain.Reveal()), &auth) != nil {
			return loom.Secret{}, fmt.Errorf("the sign-in of node %s is of an unknown form", n.ID)
		}
	}
	password, _ := auth["password"].(string)
	if password == "" {
		return loom.Secret{}, nil
	}
	c, err := store.ClusterByID(ctx, tx, tenant, n.Cluster)
	if err != nil {
		return loom.Secret{}, err
	}
	provider := store.ProviderSecrets(c.Provider.Name)
	own, err := store.Secrets(ctx, tx, tenant, provider)
	if err != nil {
		return loom.Secret{}, err
	}
	if own[loom.FieldSSHPassword] != nil { // perhaps the one that it had before
		return loom.Secret{}, nil
	}
	for _, field := range sortedNames(own) {
		plain, err := u.ring.Open(tenant, provider, field, own[field])
		if err != nil {
			return loom.Secret{}, fmt.Errorf("open the field %s of provider %s: %w", field, c.Provider.Name, err)
		}
		if strings.TrimSpace(plain.Reveal()) == strings.TrimSpace(password) {
			return loom.Secret{}, nil
		}
	}
	return loom.NewSecret(password), nil
}
