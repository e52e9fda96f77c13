package loom

// Snapshot is the layout of a cluster at one time: what an operation changes, as it
// was before it. Nodes are those that had or were to have a machine, by number,
// without facts and history.
type Snapshot struct {
	Nodes    []Node             `json:"nodes"`
	Services map[string]Service `json:"services"`
	Config   map[string]any     `json:"config"`
	// Template and Types are the cluster's copies, nil where the layout is one that
	// something leads to.
	Template *Template     `json:"template,omitempty"`
	Types    *TypeSettings `json:"types,omitempty"`
}

// StoredPlan is the plan of an operation as it is stored, tasks that undo included. States
// are its tasks as they are now, by number.
type StoredPlan struct {
	Plan
	States map[int]Task
}

// Lineage is an operation with those that it goes on with: what a plan that takes it back,
// or leads on from it, is made of.
type Lineage struct {
	// Plans are those of the operation and, behind it, of the operations that it retries.
	Plans []StoredPlan
	// Before and After are the layouts around it. After of one that has ended without
	// success is what it was to lead to.
	Before, After Snapshot
	// First is the operation that it mends, nil for none.
	First *Lineage
	// Goal is the layout before all of them, to which an undo leads: nil before a
	// create, and for operations of releases that did not keep it.
	Goal *Snapshot
}
