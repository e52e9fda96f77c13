package loom

// ImageType is a named operating system image, mapped per provider name; keys
// "image" (needed) and "sshuser" (default root).
type ImageType struct {
	Base
	ProviderMap map[string]map[string]string `json:"providermap" description:"By provider name." keynames:"providers" new:"{\"local\":{\"image\":\"bookworm\"}}" own:"form page"`
}

// Validate checks shape.
func (i *ImageType) Validate() []FieldError { return i.validate() }
