package clusters

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/app/store"
)

// Revealed is a machine's own sign-in.
type Revealed struct {
	User       string
	Password   loom.Secret
	PrivateKey loom.Secret
}

// Reveal returns the sign-in of a node: a password that the provider generated, the
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
	if err := u.May(ctx, actor, loom.Operate, id); err != nil {
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

// Key returns the private key that Loom made for a cluster, for a download. Every one is in
// the audit. NotFound where there is none, as where the provider brings the sign-in, and
// for clusters that the actor may not see.
func (u *Clusters) Key(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Secret, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.Secret{}, err
	}
	c, err := store.ClusterByID(ctx, u.q, actor.Tenant, id)
	if err := allowed(actor, loom.Operate, id, c.Object(), err); err != nil {
		return loom.Secret{}, err
	}
	nodes, err := store.NodesBriefly(ctx, u.q, actor.Tenant, id)
	if err != nil {
		return loom.Secret{}, err
	}
	signIns, err := u.SSHAccess(ctx, actor, c)
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

// clusterKey returns the private key that Loom made for a cluster, zero where it made none.
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

// machinePassword returns the password that the provider generated for a machine, zero where
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

// sealCluster seals what a cluster keeps secret: the sensitive provider fields
// of its request and, where its machines have no other key, a key pair made for
// this cluster alone.
func (u *Clusters) sealCluster(tenant loom.TenantID, id loom.ClusterID, p loom.Provider, fields map[string]loom.Secret) (map[string][]byte, error) {
	values := maps.Clone(fields)
	if values == nil {
		values = map[string]loom.Secret{}
	}
	if _, own := values[loom.FieldPrivateKey]; !own && !hasOwnSignIn(p) {
		private, public, err := newKeyPair(id)
		if err != nil {
			return nil, err
		}
		values[loom.FieldPrivateKey], values[loom.FieldPublicKey] = private, loom.NewSecret(public)
	}
	return u.seal(tenant, id, values)
}

// hasOwnSignIn reports whether a provider says itself how its machines are signed in to,
// with a key of the tenant or a password of theirs: a key of the cluster is on none then.
func hasOwnSignIn(p loom.Provider) bool {
	name, _ := p.Fields[fieldKeyResource].(string)
	password, _ := p.Fields[loom.FieldSSHPassword].(string)
	return name != "" || password != "" || slices.Contains(p.Sealed, loom.FieldSSHPassword)
}

// seal seals values for a cluster, in the order of their names so that an error
// is always about the same one.
func (u *Clusters) seal(tenant loom.TenantID, id loom.ClusterID, values map[string]loom.Secret) (map[string][]byte, error) {
	sealed := make(map[string][]byte, len(values))
	for _, field := range slices.Sorted(maps.Keys(values)) {
		data, err := u.ring.Seal(tenant, store.ClusterSecrets(id), field, values[field])
		if err != nil {
			return nil, fmt.Errorf("seal %s of cluster %s: %w", field, id, err)
		}
		sealed[field] = data
	}
	return sealed, nil
}

// newKeyPair makes an ed25519 pair: the private key in PEM (OpenSSH form), the
// public one as an authorized_keys line that says whose it is.
func newKeyPair(id loom.ClusterID) (private loom.Secret, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return private, "", fmt.Errorf("make the key pair of cluster %s: %w", id, err)
	}
	comment := "loom cluster " + id.String()
	block, err := ssh.MarshalPrivateKey(priv, comment)
	if err != nil {
		return private, "", fmt.Errorf("encode the private key of cluster %s: %w", id, err)
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return private, "", fmt.Errorf("encode the public key of cluster %s: %w", id, err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + comment
	return loom.NewSecret(string(pem.EncodeToMemory(block))), line, nil
}

// fingerprint returns that of a public key in authorized_keys form, "" for what is none.
func fingerprint(line string) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// accountKeys returns the fingerprints of the keys that the actor's account has now; none
// for an actor without an account in the tenant.
func accountKeys(ctx context.Context, q sqlx.ExtContext, actor loom.Actor) ([]string, error) {
	user, err := store.User(ctx, q, actor.Tenant, actor.User)
	if isNotFound(err) {
		return nil, nil
	}
	var all []string
	for _, line := range user.SSHKeys {
		if f := fingerprint(line); f != "" && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all, err
}

// Way is how somebody gets into a machine.
type Access string

// The ways, from best to worst.
const (
	// AccessOwnKey: a key of the viewer's account is on the machine.
	AccessOwnKey Access = "own"
	// AccessClusterKey: the key of the cluster is, which can be downloaded.
	AccessClusterKey Access = "cluster"
	// AccessPassword: the machine has a password of its own, which can be revealed.
	AccessPassword Access = "password"
	// AccessNone: nothing that the viewer has, or that Loom may show, opens the machine.
	AccessNone Access = ""
)

// SSHAccess is how a viewer gets into the machines of a cluster.
type SSHAccess struct {
	// Keys are the fingerprints of the keys that the viewer's account has now.
	Keys []string
	// Jump are the jump hosts on the way to the machines, as ssh takes them; "" for none.
	Jump string
	// cluster is the fingerprint of the cluster's own key, "" where it has none.
	cluster string
	// brings says that the provider has a sign-in of its own.
	ownSignIn bool
	passwords map[loom.NodeID]bool
}

// jumpHosts are words that ssh takes behind -J, and nothing else.
var jumpHosts = regexp.MustCompile(`^[A-Za-z0-9_.@:, \[\]-]+$`)

// SSHAccess returns how the actor gets into the machines of a cluster that it may see.
func (u *Clusters) SSHAccess(ctx context.Context, actor loom.Actor, c loom.Cluster) (SSHAccess, error) {
	s := SSHAccess{ownSignIn: hasOwnSignIn(c.Provider)}
	if jump, _ := c.Provider.Fields["ssh_jump"].(string); jumpHosts.MatchString(jump) {
		s.Jump = strings.ReplaceAll(jump, " ", "")
	}
	var err error
	if s.Keys, err = accountKeys(ctx, u.kept, actor); err != nil {
		return s, err
	}
	sealed, err := store.SignInSecrets(ctx, u.kept, c.Owner.Tenant, c.ID)
	if err != nil {
		return s, err
	}
	if !slices.Contains(c.Provider.Sealed, loom.FieldSSHPassword) { // what nodes have is that one, as Reveal knows
		s.passwords = sealed.Nodes
	}
	if sealed.Public != nil && sealed.Private {
		// What cannot be opened, because the installation's key is another one, is no way in, and
		// no reason to show no page.
		if public, err := u.ring.Open(c.Owner.Tenant, store.ClusterSecrets(c.ID), loom.FieldPublicKey, sealed.Public); err == nil {
			s.cluster = fingerprint(public.Reveal())
		}
	}
	return s, nil
}

// Best returns the best way into the machine of a node.
func (s *SSHAccess) Best(n *loom.Node) Access {
	_, known := n.Keys()
	switch {
	case n.HasKey(s.Keys...):
		return AccessOwnKey
	case s.cluster != "" && (n.HasKey(s.cluster) || !known && !s.ownSignIn):
		return AccessClusterKey
	case s.passwords[n.ID]:
		return AccessPassword
	}
	return AccessNone
}

// HasPassword reports whether the machine of a node has a password of its own.
func (s *SSHAccess) HasPassword(n loom.NodeID) bool { return s.passwords[n] }

// Downloads reports whether the key of the cluster opens any of the machines.
func (s *SSHAccess) Downloads(nodes []loom.Node) bool {
	return slices.ContainsFunc(nodes, func(n loom.Node) bool {
		if n.State == loom.NodeDeleted || n.State == loom.NodePlanned || s.cluster == "" {
			return false
		}
		_, known := n.Keys()
		return n.HasKey(s.cluster) || !known && !s.ownSignIn
	})
}

// MayAdd reports whether adding the viewer's keys would let him into a machine that has
// none of them.
func (s *SSHAccess) MayAdd(nodes []loom.Node) bool {
	return len(s.Keys) > 0 && slices.ContainsFunc(nodes, func(n loom.Node) bool {
		return n.State == loom.NodeReady && !n.Leaving && !n.HasKey(s.Keys...)
	})
}
