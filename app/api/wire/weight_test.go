package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestNodesAreWeighed: each node counts with all of its services, also where nodes of two
// clusters have services of the same name.
func TestNodesAreWeighed(t *testing.T) {
	t.Parallel()
	large := map[string]loom.Service{"web": {Base: loom.Base{Name: "web", Description: strings.Repeat("x", 100_000)}}}
	little := map[string]loom.Service{"web": {Base: loom.Base{Name: "web"}}}
	var nodes []Node
	for i := range 20 {
		n, services := loom.Node{Cluster: 1, Services: []string{"web"}}, large
		if i >= 10 {
			n.Cluster, services = 2, little
		}
		nodes = append(nodes, NewNode(n, services, nil))
	}
	weight, err := NodesWeight(nodes)
	text, failed := json.Marshal(nodes)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if weight < 1_000_000 || weight > int64(len(text)) || weight < int64(len(text))*9/10 {
		t.Errorf("they weigh %d, their JSON has %d bytes", weight, len(text))
	}
}
