package cloud

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// The labels that every machine carries.
const (
	LabelNode    = "loom-node"
	LabelKey     = "loom-key"
	LabelCluster = "loom-cluster"
	LabelTenant  = "loom-tenant"
	// LabelPort, on a machine, names the port of its SSH server where that is not 22.
	// Loom never sets it.
	LabelPort = "loom-ssh-port"
)

// LabelsOf returns the labels of a node's machine.
func LabelsOf(spec *loom.TaskSpec) map[string]string {
	return map[string]string{
		LabelNode: string(spec.Node), LabelKey: spec.IdempotencyKey,
		LabelCluster: spec.Ref.Operation.Cluster.String(), LabelTenant: string(spec.Tenant),
	}
}

// Tagged returns a machine as lists have it.
func (m Machine) Tagged() loom.TaggedMachine {
	state := loom.StateOther
	switch m.State {
	case Running:
		state = loom.StateRunning
	case Stopped:
		state = loom.StateStopped
	case Pending, Failed, Leaving, Gone:
	}
	var addresses []string
	for _, address := range m.Addresses {
		if address != "" && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return loom.TaggedMachine{ID: m.ID, Name: m.Name, Node: loom.NodeID(m.Labels[LabelNode]), Key: m.Labels[LabelKey],
		Cluster: m.Labels[LabelCluster], Tenant: loom.TenantID(m.Labels[LabelTenant]),
		State: state, Flavor: m.Flavor, Image: m.Image, Addresses: addresses}
}

// Tagged returns machines as lists have them, sorted by id.
func Tagged(machines []Machine) []loom.TaggedMachine {
	list := make([]loom.TaggedMachine, 0, len(machines))
	for _, m := range machines {
		list = append(list, m.Tagged())
	}
	slices.SortFunc(list, func(a, b loom.TaggedMachine) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// port of SSH, 0 for the usual one.
func (m Machine) port() int {
	n, err := strconv.ParseUint(m.Labels[LabelPort], 10, 16)
	if err != nil || n == 22 {
		return 0
	}
	return int(n)
}

// Tags writes labels as single words, for clouds without pairs: "<label>-<value>"
// (see Encode). The order is that of the names.
func Tags(labels map[string]string) []string {
	var tags []string
	for _, name := range []string{LabelCluster, LabelKey, LabelNode, LabelTenant} {
		if labels[name] != "" {
			tags = append(tags, Tag(name, labels[name]))
		}
	}
	return tags
}

// Tag is a label as one word.
func Tag(label, value string) string { return label + "-" + Encode(value) }

// FromTags reads what Tags wrote; other tags are left out.
func FromTags(tags []string) map[string]string {
	labels := map[string]string{}
	for _, tag := range tags {
		for _, name := range []string{LabelCluster, LabelKey, LabelNode, LabelTenant, LabelPort} {
			if value, ok := strings.CutPrefix(strings.ToLower(tag), name+"-"); ok {
				labels[name] = Decode(value)
			}
		}
	}
	return labels
}

// Encode writes a value with lower-case letters, digits, "-" and "_" only, for
// clouds that allow no more; anything else becomes "_" and two digits per byte.
func Encode(value string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// Decode reads what Encode wrote; what it did not write stays as it is.
func Decode(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '_' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
