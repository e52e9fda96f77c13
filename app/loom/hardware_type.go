package loom

// HardwareType is a named machine size, mapped per provider name to the
// provider's own terms; key "flavor" is needed for a provider to be usable.
type HardwareType struct {
	Base
	ProviderMap map[string]map[string]string `json:"providermap" description:"By provider name." keynames:"providers" new:"{\"local\":{\"flavor\":\"mem=256m,pids=256,cpu=100\"}}" own:"form page"`
}

// Validate checks shape.
func (h *HardwareType) Validate() []FieldError { return h.validate() }
