package loom

import (
	"fmt"
	"strings"
	"time"
)

// FirstNodeNumber is the number of the first node of every cluster.
const FirstNodeNumber = 1000

// DefaultSSHUser logs in where an image type names no user.
const DefaultSSHUser = "root"

// Usual kinds of addresses in Node.Addresses.
const (
	AccessV4 = "access_v4" // reachable from Loom and its users
	BindV4   = "bind_v4"   // internal
)

// Node is one machine of a cluster, before, while and after it exists.
type Node struct {
	ID      NodeID
	Cluster ClusterID
	Number  int
	// Incarnation counts the machines this node has had, from 1; with the id it
	// makes the idempotency key.
	Incarnation int
	State       NodeState
	// Leaving says that the node is on its way out of the cluster, or gone; other
	// nodes are not told of it.
	Leaving      bool `json:",omitempty"`
	Hostname     string
	HardwareType string
	ImageType    string
	Flavor       string
	Image        string
	SSHUser      string
	// Services are the names of the services on the node, sorted.
	Services []string
	// Automators are the automator types used by any action of the services, sorted.
	Automators []string
	// Addresses by kind, empty until CONFIRM.
	Addresses map[string]string
	// Results are the merged facts of task results: providerid, ssh-auth, ...
	Results       map[string]any
	ServiceStates map[string]ServiceState
	Actions       []NodeAction
}

// NodeAction is an entry of a node's history. Ended is zero while it runs.
type NodeAction struct {
	Task TaskRef
	// Attempt counts the tries of the task, from 1.
	Attempt int `json:",omitempty"`
	Service string
	Action  TaskAction
	Started time.Time
	Ended   time.Time
	// Status is "in_progress", "complete" or "failed".
	Status string
	Stdout string
	Stderr string
}

// Hostname makes the name of a node:
// "<label><cluster number>-<node number>.<suffix>", the label shortened so
// that the first part fits 63 characters, suffix "local" when empty.
func Hostname(clusterName string, cluster ClusterID, nodeNumber int, suffix string) string {
	label := strings.TrimLeft(clusterName, "0123456789")
	label = strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, label)
	label = strings.TrimLeft(label, "-")
	if label == "" {
		label = "node"
	}
	number := fmt.Sprintf("%d-%d", int64(cluster), nodeNumber)
	if room := 63 - len(number); len(label) > room {
		label = label[:room]
	}
	suffix = strings.TrimPrefix(suffix, ".")
	if suffix == "" {
		suffix = "local"
	}
	return label + number + "." + suffix
}
