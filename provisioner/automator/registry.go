package automator

import "loom/provisioner/plugins"

// Registry finds the automator of a type.
type Registry = plugins.Registry[Automator]

// NewRegistry takes the automators of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(automators ...Automator) (*Registry, error) {
	return plugins.New(plugins.Kind[Automator]{Word: "automator"}, automators...)
}
