package clusters

import (
	"context"
	"encoding/json"
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

// WriteNode writes a node, for administrators of its tenant, and says whether it is
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
		held, err := holdNode(ctx, tx, c, in.ID)
		if isNotFound(err) {
			return true, u.addNode(ctx, tx, actor, c, in)
		}
		if err != nil {
			return false, err
		}
		return false, u.changeNode(ctx, tx, actor, c, held.Node, in)
	})
}

func invalid(field, format string, args ...any) error {
	return loom.InvalidFields([]loom.FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}})
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

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func (in *NodeInput) typeTexts() map[string]*string {
	return map[string]*string{"hardwaretype": in.HardwareType, "imagetype": in.ImageType, "flavor": in.Flavor, "image": in.Image}
}

func (u *Clusters) addNode(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, c loom.Cluster, in NodeInput) error {
	other, _, err := store.OwnerOfNode(ctx, tx, actor.Tenant, in.ID)
	if err == nil {
		return loom.NewError(loom.Conflict, "Node %s belongs to cluster %s and stays there.", in.ID, other)
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
	take(&n.Hostname, in.Hostname)
	take(&n.SSHUser, in.SSHUser)
	take(&n.HardwareType, in.HardwareType)
	take(&n.ImageType, in.ImageType)
	take(&n.Flavor, in.Flavor)
	take(&n.Image, in.Image)
	if err := store.InsertNodeRecord(ctx, tx, actor.Tenant, n); err != nil {
		return err
	}
	return u.nodeWritten(ctx, tx, actor, "create", nil, &n)
}

func take(into, given *string) {
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
	take(&after.Hostname, in.Hostname)
	take(&after.SSHUser, in.SSHUser)
	if in.Addresses != nil {
		after.Addresses = in.Addresses
	}
	if err := passwordStays(ctx, tx, actor.Tenant, c.Provider.Name, before, after); err != nil {
		return err
	}
	if err := store.UpdateNodeFacts(ctx, tx, actor.Tenant, after); err != nil {
		return err
	}
	return u.nodeWritten(ctx, tx, actor, "update", &before, &after)
}

// passwordStays refuses a new address to which the sealed password of a provider would be
// sent: whoever writes it may not know the password. What a provider made up for one
// machine an administrator may see anyway.
func passwordStays(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, before, after loom.Node) error {
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
