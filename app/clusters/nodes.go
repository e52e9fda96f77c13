package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// NodeView is a node with the copies of services that its cluster holds.
type NodeView struct {
	loom.Node
	Catalog map[string]loom.Service
}

// NodePage is a page of nodes; Next and Prev are cursors.
type NodePage struct {
	Items      []NodeView
	Next, Prev string
}

// Nodes lists the nodes of all clusters that the actor may see, with their
// history; secrets among their facts are masked. The page sorts by clusterId, then
// by number. Invalid for a wrong sort, limit or cursor.
func (u *Clusters) Nodes(ctx context.Context, actor loom.Actor, page loom.Page) (NodePage, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return NodePage{}, err
	}
	list, err := store.NodesByTenant(ctx, u.q, actor.Tenant, store.SeenBy(actor), page)
	if err != nil {
		return NodePage{}, err
	}
	if err := store.AddNodeHistory(ctx, u.q, actor.Tenant, list.Items, maxNodeActions); err != nil {
		return NodePage{}, err
	}
	var clusters []loom.ClusterID
	for _, n := range list.Items {
		if len(clusters) == 0 || clusters[len(clusters)-1] != n.Cluster { // they come by cluster
			clusters = append(clusters, n.Cluster)
		}
	}
	services, err := store.ServicesOfClusters(ctx, u.q, actor.Tenant, clusters)
	if err != nil {
		return NodePage{}, err
	}
	out := NodePage{Items: make([]NodeView, len(list.Items)), Next: list.Next, Prev: list.Prev}
	for i := range list.Items {
		n := list.Items[i]
		maskFacts(&n)
		out.Items[i] = NodeView{n, services[n.Cluster]}
	}
	return out, nil
}

// NodeByID reads one node by its id alone. NotFound for a node of a cluster that
// the actor may not see.
func (u *Clusters) NodeByID(ctx context.Context, actor loom.Actor, id loom.NodeID) (NodeView, error) {
	none := loom.NewError(loom.NotFound, "There is no node “%.40s”.", id)
	if id == "" || len(checkStorable("id", string(id))) > 0 {
		return NodeView{}, none
	}
	o, err := store.ClusterOfNode(ctx, u.q, actor.Tenant, id)
	if err == nil {
		err = actor.May(loom.See, o)
	}
	if isNotFound(err) {
		return NodeView{}, none
	}
	if err != nil {
		return NodeView{}, err
	}
	n, err := store.NodeByID(ctx, u.q, actor.Tenant, o.Cluster, id)
	if isNotFound(err) {
		return NodeView{}, none
	}
	if err != nil {
		return NodeView{}, err
	}
	nodes := []loom.Node{n}
	if err := store.AddNodeHistory(ctx, u.q, actor.Tenant, nodes, maxNodeActions); err != nil {
		return NodeView{}, err
	}
	maskFacts(&nodes[0])
	services, err := store.ServicesOfClusters(ctx, u.q, actor.Tenant, []loom.ClusterID{o.Cluster})
	return NodeView{nodes[0], services[o.Cluster]}, err
}

// NodeProperties returns the facts of those nodes of a cluster that have all the
// named services, by id; none for a cluster that the actor may not see.
func (u *Clusters) NodeProperties(ctx context.Context, actor loom.Actor, id loom.ClusterID, services []string) (map[loom.NodeID]loom.NodeProperties, error) {
	found := map[loom.NodeID]loom.NodeProperties{}
	if err := u.see(ctx, actor, id); err != nil {
		if isNotFound(err) {
			return found, nil
		}
		return nil, err
	}
	nodes, err := store.NodesByCluster(ctx, u.q, actor.Tenant, id)
	// Those that left are left out, unless nothing is left of the cluster.
	if here := slices.DeleteFunc(slices.Clone(nodes), func(n loom.Node) bool { return n.Leaving && n.State == loom.NodeDeleted }); len(here) > 0 {
		nodes = here
	}
	for i := range nodes {
		n := &nodes[i]
		if !slices.ContainsFunc(services, func(name string) bool { return !slices.Contains(n.Services, name) }) {
			found[n.ID] = n.Properties()
		}
	}
	return found, err
}

// RemoveNode removes the record of a node that no operation ever touched, for
// administrators of its tenant; a node that is not there is no error. Conflict for
// one that has or had a machine, and while the cluster is busy.
func (u *Clusters) RemoveNode(ctx context.Context, actor loom.Actor, id loom.NodeID) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	o, err := store.ClusterOfNode(ctx, u.q, actor.Tenant, id)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		c, err := store.LockCluster(ctx, tx, actor.Tenant, o.Cluster)
		if err != nil {
			return err
		}
		held, err := lockNode(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if held.Lived {
			return loom.NewError(loom.Conflict,
				"Node %s has or had a machine and is a part of what happened to cluster %s; delete the cluster to remove its machines.", id, c.ID)
		}
		if err := store.DeleteNodeRecord(ctx, tx, actor.Tenant, c.ID, id); err != nil {
			return err
		}
		return u.recordNodeWrite(ctx, tx, actor, "delete", &held.Node, nil)
	})
	if isNotFound(err) { // somebody else was faster
		return nil
	}
	return err
}

// lockNode locks a node of a held cluster for a write. NotFound, and Conflict while
// an operation may be at work on it.
func lockNode(ctx context.Context, tx *sqlx.Tx, c loom.Cluster, id loom.NodeID) (store.HeldNode, error) {
	if err := checkIdle(c); err != nil {
		return store.HeldNode{}, err
	}
	held, err := store.LockNode(ctx, tx, c.Owner.Tenant, c.ID, id)
	if err == nil && held.Busy {
		err = loom.NewError(loom.Conflict, "Node %s is busy with a task; try again when that is over.", id)
	}
	return held, err
}

// checkIdle returns Conflict while the nodes of a cluster belong to an operation.
func checkIdle(c loom.Cluster) error {
	if c.Status == loom.ClusterPending {
		return loom.NewError(loom.Conflict, "Cluster %s is pending: its nodes belong to the operation that is under way. Try again when that is over.", c.ID)
	}
	return nil
}

// recordNodeWrite does what every write of a node brings with it: previews of the
// cluster become stale, tasks see the new facts, the audit and open pages learn of it.
func (u *Clusters) recordNodeWrite(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, verb string, before, after *loom.Node) error {
	entry := loom.AuditEntry{Actor: actor, Verb: verb, Kind: "node", Result: "ok"}
	cluster := loom.ClusterID(0)
	if before != nil {
		entry.Before, entry.Object, cluster = nodeFacts(before), string(before.ID), before.Cluster
	}
	if after != nil {
		entry.After, entry.Object, cluster = nodeFacts(after), string(after.ID), after.Cluster
	}
	return errors.Join(
		store.NodesWritten(ctx, tx, actor.Tenant, cluster),
		store.InsertAudit(ctx, tx, entry),
		store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster)...),
	)
}

// nodeFacts is a node as the audit keeps it.
func nodeFacts(n *loom.Node) map[string]any {
	return map[string]any{"clusterId": n.Cluster.String(), "properties": n.Properties()}
}

// maxNodeActions is how much of a node's history is shown.
const maxNodeActions = 200

// NodeRecord reads one node of a cluster with its history, oldest first and at most 200
// entries, and what tasks learned of it, secrets masked. NotFound for a node that the actor
// may not see.
func (u *Clusters) NodeRecord(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) (loom.Node, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return loom.Node{}, err
	}
	if errs := checkStorable("node", string(node)); node == "" || len(errs) > 0 {
		return loom.Node{}, loom.NewError(loom.NotFound, "Cluster %s has no such node.", id)
	}
	n, err := store.NodeByID(ctx, u.kept, actor.Tenant, id, node)
	if isNotFound(err) {
		return n, loom.NewError(loom.NotFound, "Cluster %s has no node “%s”.", id, node)
	}
	if err != nil {
		return n, err
	}
	maskFacts(&n)
	history, err := store.NodeActions(ctx, u.kept, actor.Tenant, id, node, maxNodeActions)
	n.Actions = history[node]
	return n, err
}

// maskFacts hides credentials among the facts of a node; Reveal gives them. What services
// reported has plain names.
func maskFacts(n *loom.Node) {
	if masked, ok := loom.MaskSecrets(loom.ResultsFor("", n.Results)).(map[string]any); ok {
		n.Results = masked
	}
}

// NodeInput is a node as somebody writes it; nil means not given. What a node has
// already stays as it is where nothing is given.
type NodeInput struct {
	ID                                                        loom.NodeID
	Cluster                                                   loom.ClusterID
	Number                                                    *int
	Hostname, SSHUser, HardwareType, ImageType, Flavor, Image *string
	Addresses                                                 map[string]string
	Services                                                  []string
	// Results are facts that the provisioner found; they can be repeated, not
	// changed.
	Results map[string]any
}

// maxNodeNumber bounds numbers that people choose, so that there is room above.
const maxNodeNumber = 999_999

var (
	hostnameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	addressKind  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	loginRule    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)
)

// WriteNode writes a node, for administrators of its tenant, and reports whether it is
// new. Of a node that is there only host name, addresses and user change: all else
// is what plans rest on and what machines are found by. A new one is a record
// without a machine, state deleted, which no operation touches and no quota counts.
//
// Errors: Forbidden; Invalid, also for a cluster that is not there; Conflict while
// the cluster is pending or the node busy, and for what cannot change.
func (u *Clusters) WriteNode(ctx context.Context, actor loom.Actor, in NodeInput) (created bool, err error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return false, err
	}
	if err := loom.InvalidFields(in.check()); err != nil {
		return false, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (bool, error) {
		c, err := store.LockCluster(ctx, tx, actor.Tenant, in.Cluster)
		if isNotFound(err) {
			return false, invalid("clusterId", "There is no cluster %s.", in.Cluster)
		}
		if err != nil {
			return false, err
		}
		if c.Status == loom.ClusterTerminated {
			return false, loom.NewError(loom.Conflict, "Cluster %s is terminated; its nodes stay as they were.", c.ID)
		}
		held, err := lockNode(ctx, tx, c, in.ID)
		if isNotFound(err) {
			return true, u.addNode(ctx, tx, actor, c, in)
		}
		if err != nil {
			return false, err
		}
		return false, u.changeNode(ctx, tx, actor, c, held.Node, in)
	})
}

// check checks the shape of what is given; the id becomes lower case, as all are.
func (in *NodeInput) check() []loom.FieldError {
	var errs []loom.FieldError
	fail := func(field, format string, args ...any) {
		errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	id := strings.ToLower(string(in.ID))
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		fail("id", "The id of a node is a UUID such as “0c1d2e3f-0000-4000-8000-000000000000”; this is “%.60s”.", in.ID)
	}
	in.ID = loom.NodeID(id)
	if in.Number != nil && (*in.Number < loom.FirstNodeNumber || *in.Number > maxNodeNumber) {
		fail("properties.nodenum", "The number of a node is from %d to %d; this is %d.", loom.FirstNodeNumber, maxNodeNumber, *in.Number)
	}
	if in.Hostname != nil && (len(*in.Hostname) > 253 || !hostnameRule.MatchString(*in.Hostname)) {
		fail("properties.hostname", "A host name is lower-case labels joined by dots, such as “web42-1000.lab.example”; this is “%.60s”.", *in.Hostname)
	}
	if in.SSHUser != nil && !loginRule.MatchString(*in.SSHUser) {
		fail("properties.sshuser", "A user of a machine is up to 32 letters, digits, “_”, “.” and “-”, such as “root”; this is “%.60s”.", *in.SSHUser)
	}
	if len(in.Addresses) > 20 {
		fail("properties.ipaddresses", "A node has at most 20 addresses; these are %d.", len(in.Addresses))
	}
	for _, kind := range sortedNames(in.Addresses) {
		if !addressKind.MatchString(kind) {
			fail("properties.ipaddresses", "The kind of an address is a word such as “access_v4”; this is “%.60s”.", kind)
		} else if _, err := netip.ParseAddr(in.Addresses[kind]); err != nil {
			fail("properties.ipaddresses."+kind, "This is no IP address: “%.60s”.", in.Addresses[kind])
		}
	}
	for field, value := range in.typeTexts() {
		if value == nil {
			continue
		}
		if len(*value) > loom.MaxNameLength {
			fail("properties."+field, "This has at most %d characters.", loom.MaxNameLength)
		}
		errs = append(errs, checkStorable("properties."+field, *value)...)
	}
	return append(errs, checkStorable("services", anyList(in.Services))...)
}

func (in *NodeInput) typeTexts() map[string]*string {
	return map[string]*string{"hardwaretype": in.HardwareType, "imagetype": in.ImageType, "flavor": in.Flavor, "image": in.Image}
}

func (u *Clusters) addNode(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, c loom.Cluster, in NodeInput) error {
	other, err := store.ClusterOfNode(ctx, tx, actor.Tenant, in.ID)
	if err == nil {
		return loom.NewError(loom.Conflict, "Node %s belongs to cluster %s and stays there.", in.ID, other.Cluster)
	}
	if !isNotFound(err) {
		return err
	}
	n := loom.Node{
		ID: in.ID, Cluster: c.ID, Incarnation: 1, State: loom.NodeDeleted, Services: slices.Compact(slices.Sorted(slices.Values(in.Services))),
		Addresses: in.Addresses, SSHUser: loom.DefaultSSHUser,
	}
	for _, name := range n.Services {
		if _, ok := c.Services[name]; !ok {
			return invalid("services", "Cluster %s has no service “%.60s”; it has %s.", c.ID, name, strings.Join(sortedNames(c.Services), ", "))
		}
	}
	if len(in.Results) > 0 {
		return invalid("provisionerResults", "These are facts that a provisioner finds; leave them out.")
	}
	n.Automators = automatorsOf(n.Services, c.Services)
	if n.Number, err = store.NextNodeNumber(ctx, tx, actor.Tenant, c.ID); err != nil {
		return err
	}
	if in.Number != nil {
		n.Number = *in.Number
	}
	if n.Number > maxNodeNumber {
		return loom.NewError(loom.Conflict, "Cluster %s has no number left for another node.", c.ID)
	}
	n.Hostname = loom.Hostname(c.Name, c.ID, n.Number, c.DNSSuffix)
	setIfGiven(&n.Hostname, in.Hostname)
	setIfGiven(&n.SSHUser, in.SSHUser)
	setIfGiven(&n.HardwareType, in.HardwareType)
	setIfGiven(&n.ImageType, in.ImageType)
	setIfGiven(&n.Flavor, in.Flavor)
	setIfGiven(&n.Image, in.Image)
	if err := store.InsertNodeRecord(ctx, tx, actor.Tenant, n); err != nil {
		return err
	}
	return u.recordNodeWrite(ctx, tx, actor, "create", nil, &n)
}

func setIfGiven(into, given *string) {
	if given != nil {
		*into = *given
	}
}

func (u *Clusters) changeNode(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, c loom.Cluster, before loom.Node, in NodeInput) error {
	if why := in.unchangeable(before); why != "" {
		return loom.NewError(loom.Conflict, "The %s of a node cannot be written: plans rest on it, or its machine is found by it. "+
			"Host name, addresses and user can.", why)
	}
	after := before
	setIfGiven(&after.Hostname, in.Hostname)
	setIfGiven(&after.SSHUser, in.SSHUser)
	if in.Addresses != nil {
		after.Addresses = in.Addresses
	}
	if err := checkPasswordTarget(ctx, tx, actor.Tenant, c.Provider.Name, before, after); err != nil {
		return err
	}
	if err := store.UpdateNodeFacts(ctx, tx, actor.Tenant, after); err != nil {
		return err
	}
	return u.recordNodeWrite(ctx, tx, actor, "update", &before, &after)
}

// checkPasswordTarget refuses a new address to which the sealed password of a provider would be
// sent: whoever writes it may not know the password. What a provider made up for one
// machine an administrator may see anyway.
func checkPasswordTarget(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, before, after loom.Node) error {
	if after.Addresses[loom.AccessV4] == before.Addresses[loom.AccessV4] {
		return nil
	}
	sealed, err := store.Secrets(ctx, tx, tenant, store.ProviderSecrets(provider))
	if err != nil || sealed[loom.FieldSSHPassword] == nil {
		return err
	}
	return loom.NewError(loom.Conflict, "The address %s of a node of provider “%s” cannot be written: Loom would send the provider's SSH password there. "+
		"Give the provider an SSH key instead of the password, or make the node again.", loom.AccessV4, provider)
}

// unchangeable names what is given otherwise than it is and must not change.
func (in *NodeInput) unchangeable(n loom.Node) string {
	if in.Number != nil && *in.Number != n.Number {
		return "number"
	}
	is := map[string]string{"hardwaretype": n.HardwareType, "imagetype": n.ImageType, "flavor": n.Flavor, "image": n.Image}
	for _, field := range sortedNames(is) {
		if given := in.typeTexts()[field]; given != nil && *given != is[field] {
			return field
		}
	}
	if in.Services != nil && !slices.Equal(slices.Compact(slices.Sorted(slices.Values(in.Services))), slices.Sorted(slices.Values(n.Services))) {
		return "services"
	}
	if len(in.Results) > 0 {
		maskFacts(&n) // whoever repeats what he read repeats the masks
		given, err := json.Marshal(in.Results)
		has, hasErr := json.Marshal(n.Results)
		if err != nil || hasErr != nil || string(given) != string(has) {
			return "provisionerResults"
		}
	}
	return ""
}
