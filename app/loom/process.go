package loom

import (
	"strconv"
	"strings"
	"time"
)

// Process kinds.
const (
	ProcessWeb         = "web"
	ProcessScheduler   = "scheduler"
	ProcessProvisioner = "provisioner"
)

// Process is a running process of Loom with its lease.
type Process struct {
	ID       ProcessID
	Kind     string
	Host     string
	Port     int
	Version  string
	Capacity int
	Plugins  []string
	// Versions are the releases of those plugins that are no part of Loom, by type.
	Versions map[string]string
	// Trouble is what last went wrong in the process itself, TroubleAt when; "" and zero
	// for nothing yet.
	Trouble   string
	TroubleAt time.Time
	Started   time.Time
	Expires   time.Time
}

// Assignment is how many workers a tenant has in a provisioner.
type Assignment struct {
	Tenant  TenantID
	Process ProcessID
	Workers int
}

// Event is a hint that something changed, for open pages: a topic and
// the ids concerned.
type Event struct {
	Tenant TenantID
	Topic  string
	IDs    []string
}

// AuditEntry is the kept record of an act.
type AuditEntry struct {
	// ID is given when the entry is stored.
	ID     int64
	Actor  Actor
	Verb   string
	Kind   string
	Object string
	// Result is "ok", "refused" or "failed".
	Result string
	Before any
	After  any
	Time   time.Time
}

// TopicOwn is the topic of what concerns whoever follows it; TopicOfUser begins the one
// under which that is kept, followed by the user.
const (
	TopicOwn    = "user:me"
	TopicOfUser = "user:"
)

// NewsOfToken begins what is told there of an API token that ends soon, followed by its
// id; operations are told of as "00000042/3", leases by the id of the cluster.
const NewsOfToken = "token/"

// NewsOfIncident begins what is told there of an incident that somebody should decide about,
// followed by its number.
const NewsOfIncident = "incident/"

// TokenWarning is how long before its end the owner of an API token is warned.
const TokenWarning = 7 * 24 * time.Hour

// ParseLogTopic reads the topic "log:{cluster}/{operation}/{task}/{attempt}" of
// the log of an attempt.
func ParseLogTopic(topic string) (ref TaskRef, attempt int, ok bool) {
	rest, isLog := strings.CutPrefix(topic, "log:")
	parts := strings.Split(rest, "/")
	if !isLog || len(parts) != 4 {
		return TaskRef{}, 0, false
	}
	var n [3]int
	for i, part := range parts[1:] {
		var err error
		if n[i], err = strconv.Atoi(part); err != nil || n[i] <= 0 {
			return TaskRef{}, 0, false
		}
	}
	id, ok := ParseClusterID(parts[0])
	return TaskRef{Operation: OperationRef{Cluster: id, Number: n[0]}, Number: n[1]}, n[2], ok
}
