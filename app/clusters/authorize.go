package clusters

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// Authorize puts the SSH keys of the actor's account on the ready nodes of a cluster, and
// on those that come later, as far as the actor may see it then. Those of the owner and of
// others who asked come again as their accounts have them. Errors: NotFound; Conflict for
// an account without keys, without a ready node, and when the state of the cluster does
// not allow it; Invalid with missing provider fields.
func (u *Clusters) Authorize(ctx context.Context, actor loom.Actor, id loom.ClusterID, fields map[string]any) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	ref, _, err := u.execute(ctx, actor, PreviewInput{Kind: loom.ChangeAuthorize, Cluster: id, ProviderFields: fields}, nil)
	return ref, err
}

// draftAuthorize looks whether there is anything to put anywhere. Who asked is kept with
// the operation, and the tasks read the keys when they run.
func draftAuthorize(ctx context.Context, u *Clusters, r request, c *change) error {
	keys, err := accountKeys(ctx, u.db, r.actor)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return loom.NewError(loom.Conflict, "Your account has no SSH keys; add one there first.")
	}
	if len(c.ready()) == 0 {
		return loom.NewError(loom.Conflict, "No node of the cluster is ready.")
	}
	for _, n := range c.After.Nodes {
		if n.State != loom.NodeReady {
			c.warn("Node %d is not ready and is left out; it gets the keys when its machine is made.", n.Number)
		}
	}
	return nil
}

// ready are the nodes with a machine that serves.
func (c *change) ready() []loom.NodeID {
	ids := []loom.NodeID{}
	for _, n := range c.After.Nodes {
		if n.State == loom.NodeReady {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func planAuthorize(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	return c.steps(planner.Scope{Nodes: c.ready()})
}

func summarizeAuthorize(v *PreviewView) string {
	return fmt.Sprintf("Puts your SSH keys on %s", count(v.ByAction[loom.ActionKeys], "node"))
}

// accountKeys gives the fingerprints of the keys that the actor's account has now; none
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
type Way string

// The ways, from best to worst.
const (
	// WayOwn: a key of the viewer's account is on the machine.
	WayOwn Way = "own"
	// WayCluster: the key of the cluster is, which can be downloaded.
	WayCluster Way = "cluster"
	// WayPassword: the machine has a password of its own, which can be revealed.
	WayPassword Way = "password"
	// WayNone: nothing that the viewer has, or that Loom may show, opens the machine.
	WayNone Way = ""
)

// SignIns says how a viewer gets into the machines of a cluster.
type SignIns struct {
	// Keys are the fingerprints of the keys that the viewer's account has now.
	Keys []string
	// Jump are the jump hosts on the way to the machines, as ssh takes them; "" for none.
	Jump string
	// cluster is the fingerprint of the cluster's own key, "" where it has none.
	cluster string
	// brings says that the provider has a sign-in of its own.
	brings    bool
	passwords map[loom.NodeID]bool
}

// jumpHosts are words that ssh takes behind -J, and nothing else.
var jumpHosts = regexp.MustCompile(`^[A-Za-z0-9_.@:, \[\]-]+$`)

// SignIns tells how the actor gets into the machines of a cluster that it may see.
func (u *Clusters) SignIns(ctx context.Context, actor loom.Actor, c loom.Cluster) (SignIns, error) {
	s := SignIns{brings: bringsSignIn(c.Provider)}
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

// Way gives the best way into the machine of a node.
func (s *SignIns) Way(n *loom.Node) Way {
	_, known := n.Keys()
	switch {
	case n.HasKey(s.Keys...):
		return WayOwn
	case s.cluster != "" && (n.HasKey(s.cluster) || !known && !s.brings):
		return WayCluster
	case s.passwords[n.ID]:
		return WayPassword
	}
	return WayNone
}

// HasPassword reports whether the machine of a node has a password of its own.
func (s *SignIns) HasPassword(n loom.NodeID) bool { return s.passwords[n] }

// Downloads reports whether the key of the cluster opens any of the machines.
func (s *SignIns) Downloads(nodes []loom.Node) bool {
	return slices.ContainsFunc(nodes, func(n loom.Node) bool {
		if n.State == loom.NodeDeleted || n.State == loom.NodePlanned || s.cluster == "" {
			return false
		}
		_, known := n.Keys()
		return n.HasKey(s.cluster) || !known && !s.brings
	})
}

// MayAdd reports whether adding the viewer's keys would let him into a machine that has
// none of them.
func (s *SignIns) MayAdd(nodes []loom.Node) bool {
	return len(s.Keys) > 0 && slices.ContainsFunc(nodes, func(n loom.Node) bool {
		return n.State == loom.NodeReady && !n.Leaving && !n.HasKey(s.Keys...)
	})
}
