package loom

import (
	"crypto/sha1" //nolint:gosec // version 5 UUIDs are defined over SHA-1
	"encoding/hex"
	"strconv"
	"time"
)

// Labels that every machine of Loom carries at its provider;
// providers whose rules for names are narrower write them as their clouds allow.
const (
	LabelNode    = "loom-node"
	LabelKey     = "loom-key"
	LabelCluster = "loom-cluster"
	LabelTenant  = "loom-tenant"
)

// TaggedMachine is a machine that a provider lists because it carries Loom's
// labels. Whatever stands in them was read from the provider and proves nothing:
// another installation of Loom may work with the same account.
type TaggedMachine struct {
	// ID is what the provider calls it: the provider id of a node's results.
	ID   string
	Name string
	// Node, Key, Cluster and Tenant are the values of the labels, "" for none.
	Node    NodeID
	Key     string
	Cluster string
	Tenant  TenantID
	// State is whether it runs; "" where the provider does not say.
	State MachineState
	// Flavor, Image and Addresses are what the provider says of it now, in its own words;
	// empty where it does not say.
	Flavor    string
	Image     string
	Addresses []string
}

// OwnerUnknown reports that the machine may be anybody's: it is there, but what it is
// labeled with cannot be read now. Static hosts that do not answer are listed like this.
func (m TaggedMachine) OwnerUnknown() bool { return m.Node == "" && m.Key == "" }

// Bounds of what a provider may say of a machine, in characters and in number.
const (
	MaxMachineText      = 255
	MaxMachineAddresses = 16
)

// MachineState is whether a machine runs, by its provider's word. The zero value is that
// the provider does not say.
type MachineState string

// The states of machines in lists of providers. StateOther is everything that is neither
// surely on nor surely off: starting, stopping, broken.
const (
	StateRunning MachineState = "running"
	StateStopped MachineState = "stopped"
	StateOther   MachineState = "other"
	// StateMissing is never listed: it is that of a machine which a complete list lacks.
	StateMissing MachineState = "missing"
)

// Orphan is a machine of this installation that no live node claims: its node is gone, or
// has another machine.
type Orphan struct {
	ID         int64
	Tenant     TenantID
	TenantName string
	// Provider is the name in the tenant's catalog.
	Provider string
	Machine  string
	Name     string
	Key      string
	Cluster  ClusterID
	Node     NodeID
	// Own is the machine that the node has, "" for a node that is gone.
	Own       string
	FirstSeen time.Time
}

// Sweep is what is known of the looks for forgotten machines at a provider.
type Sweep struct {
	Tenant     TenantID
	TenantName string
	// Provider is the name in the tenant's catalog.
	Provider string
	// Asked is when the look was asked for that is under way, nil where none is; Started
	// says that a provisioner took it.
	Asked   *time.Time
	Started bool
	// Last is the end of the last look, nil for none; Failure why it found nothing out.
	Last    *time.Time
	Failure string
	// Found is how many machines are known that nobody uses.
	Found int
}

// keySpace is the name space of idempotency keys, chosen once and for ever.
var keySpace = [16]byte{0x6c, 0x6f, 0x6f, 0x6d, 0x2d, 0x6e, 0x4f, 0x64, 0xa5, 0x2d, 0x6b, 0x65, 0x79, 0x2d, 0x76, 0x31}

// IdempotencyKey is the same for all attempts to make one machine of a node, and
// another for the next machine: a version 5 UUID of node id and incarnation.
func IdempotencyKey(node NodeID, incarnation int) string {
	h := sha1.New() //nolint:gosec // see the import
	h.Write(keySpace[:])
	h.Write([]byte(string(node) + "/" + strconv.Itoa(incarnation)))
	id := h.Sum(nil)[:16]
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	x := hex.EncodeToString(id)
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
