package wire

import (
	"encoding/json"

	"loom/app/clusters"
	"loom/app/lenient"
	"loom/app/loom"
)

// ReadNode reads a node as it is written. Services are names or
// whole services; the history is not read, it is what happened. Invalid.
func ReadNode(body []byte) (clusters.NodeInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.NodeInput{}, err
	}
	p := o.Object("properties")
	in := clusters.NodeInput{
		ID: loom.NodeID(o.Text("id")), Number: p.IntPtr("nodenum"), Hostname: p.TextPtr("hostname"), SSHUser: p.TextPtr("sshuser"),
		HardwareType: p.TextPtr("hardwaretype"), ImageType: p.TextPtr("imagetype"), Flavor: p.TextPtr("flavor"), Image: p.TextPtr("image"),
		Results: o.FreeObject("provisionerResults"),
	}
	if p.Has("ipaddresses") {
		in.Addresses = p.TextMap("ipaddresses")
	}
	if in.ID == "" {
		o.Fail("id", "Set the id of the node, a UUID.")
	}
	var ok bool
	if in.Cluster, ok = loom.ParseClusterID(o.Text("clusterId")); !ok {
		o.Fail("clusterId", "Name the cluster of the node, such as “00000042”.")
	}
	switch {
	case o.Has("services"):
		in.Services = readServiceNames(o)
	case p.Has("services"):
		in.Services = append([]string{}, p.Texts("services")...)
	}
	return in, o.Err()
}

// readServiceNames reads names from an array of names and of whole services.
func readServiceNames(o *lenient.Object) []string {
	names := []string{}
	for _, item := range o.Array("services") {
		name := item
		if service, ok := item.(map[string]any); ok {
			name = service["name"]
		}
		text, ok := name.(string)
		if !ok || text == "" {
			o.Fail("services", "Services are names, or objects with a name.")
			return names
		}
		names = append(names, text)
	}
	return names
}

// NodeQuery asks for facts of nodes.
type NodeQuery struct {
	// Cluster is 0 for a text that names none.
	Cluster              loom.ClusterID
	Properties, Services []string
}

// ReadNodeQuery reads the body of getNodeProperties. Invalid.
func ReadNodeQuery(body []byte) (NodeQuery, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return NodeQuery{}, err
	}
	q := NodeQuery{Properties: o.Texts("properties"), Services: o.Texts("services")}
	id := o.Text("clusterId")
	if id == "" {
		o.Fail("clusterId", "Name a cluster, such as “00000042”.")
	}
	q.Cluster, _ = loom.ParseClusterID(id)
	return q, o.Err()
}

// SelectProperties gives the named facts of a node, all of them when none is named.
// Names that are no facts are left out; “ipaddress” is the address that Loom and its
// users reach.
func SelectProperties(p loom.NodeProperties, names []string) (map[string]any, error) {
	p.Services, p.Automators = list(p.Services), list(p.Automators)
	if p.SSHUser == "" {
		p.SSHUser = loom.DefaultSSHUser
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	chosen := map[string]any{}
	if len(names) == 0 {
		for name, value := range all {
			chosen[name] = value
		}
	}
	for _, name := range names {
		if value, ok := all[name]; ok {
			chosen[name] = value
		} else if address := p.Addresses[loom.AccessV4]; name == "ipaddress" && address != "" {
			chosen[name] = address
		}
	}
	return chosen, nil
}
