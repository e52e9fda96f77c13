package automator

import "loom/provisioner/carried"

// Registry finds the automator of a type.
type Registry = carried.Registry[Automator]

// NewRegistry takes the automators of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(automators ...Automator) (*Registry, error) {
	return carried.New(carried.Kind[Automator]{Word: "automator"}, automators...)
}
