package provider

import (
	"loom/app/loom"
	"loom/provisioner/plugins"
)

// Registry finds the provider of a type. The types that it describes have CommonFields
// besides their own, but for those of providers that are Unconnected, and say whether the provider is a Rebooter.
type Registry = plugins.Registry[Provider]

// NewRegistry takes the providers of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(providers ...Provider) (*Registry, error) {
	return plugins.New(plugins.Kind[Provider]{Word: "provider", Describe: describe}, providers...)
}

func describe(p Provider) loom.PluginType {
	t := p.Type()
	if u, ok := p.(Unconnected); !ok || !u.Unconnected() {
		t = withCommon(t)
	}
	_, t.Reboots = p.(Rebooter)
	return t
}
