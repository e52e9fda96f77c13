package loom

// Snapshot is the layout of a cluster at one time: what an operation changes, as it
// was before it. Nodes are those that had or were to have a machine, by number,
// without facts and history.
type Snapshot struct {
	Nodes    []Node             `json:"nodes"`
	Services map[string]Service `json:"services"`
	Config   map[string]any     `json:"config"`
}
