package loom

import (
	"regexp"
	"strings"
)

// Provider is a place that makes machines, with its settings.
// Fields holds the admin fields that its provider type declares; sensitive
// ones are kept sealed elsewhere and only named in Sealed.
type Provider struct {
	Base
	Type   string         `json:"providertype" names:"providertypes,stops" new:"local" label:"Provider type" help:"It stays with the provider once that is stored." own:"form"`
	Fields map[string]any `json:"provisioner" new:"{\"internet\":true}" own:"form page"`
	Sealed []string       `json:"sealed,omitempty" decode:"-" description:"Fields that are stored and never shown." own:"form page"`
	// Fixed are names of fields that users may not give another value for their cluster,
	// although the type would let them (FieldSchema.Override).
	Fixed []string `json:"fixed,omitempty" description:"Fields that users may not give another value, although the type would let them." label:"Users may not change" own:"form page"`
}

// ProviderGone is the error about a provider that something needs and that was deleted.
func ProviderGone(name string) error {
	return NewError(NotFound, "The provider “%s” is no longer in the catalog; store it again under that name.", name)
}

// Validate checks shape: a name and a provider type.
func (p *Provider) Validate() []FieldError {
	errs := p.validate()
	if p.Type == "" {
		errs = append(errs, FieldError{"providertype", "Say which provider type makes the machines, such as “local”."})
	}
	for _, name := range sortedKeys(p.Fields) {
		if !LooksSecret(name) && HasUserInfo(p.Fields[name]) {
			errs = append(errs, FieldError{"provisioner." + name, NoUserInfo})
		}
	}
	return errs
}

// NoUserInfo is what is said of a field with user and password in an address.
const NoUserInfo = "Leave user and password out of the address, which others can read; there are fields for credentials."

var userInfo = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]*:[/\\]{2}[^/\\?#\s]*@`)

// HasUserInfo reports whether a value is an address with a user, and perhaps a password,
// before its host. Not of SSH, which names a user there.
func HasUserInfo(value any) bool {
	text, ok := value.(string)
	return ok && userInfo.MatchString(text) && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "ssh:")
}
