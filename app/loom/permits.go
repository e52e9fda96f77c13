package loom

import (
	"fmt"
	"slices"
	"strings"
)

// InstanceRoleField is the provider field that has Loom sign in with the role of the
// provisioner's own host.
const InstanceRoleField = "use_instance_role"

// Permits are what the superadmin lets a tenant do with providers (docs/decisions/
// 0055-what-loom-dials.md). What was made before they were taken away can still be
// worked on and deleted.
type Permits struct {
	// PrivateNetworks may be reached with providers.
	PrivateNetworks bool
	// InstanceRoles may be used.
	InstanceRoles bool
	// TypesOff are the provider types that nothing new is made with, sorted. A type that
	// nobody has switched off is on, also one that comes later.
	TypesOff []string
}

// AllPermits are those of the superadmin's own tenant and of the tenant demo.
func AllPermits() Permits { return Permits{PrivateNetworks: true, InstanceRoles: true} }

// NewPermits are those that a new tenant begins with.
func NewPermits() Permits { return Permits{TypesOff: []string{"static"}} }

// Reach is what the tenant reaches, without what the installation says.
func (p Permits) Reach() Reach { return Reach{Private: p.PrivateNetworks} }

// Check gives an error for each permit that a provider needs and the tenant lacks. The
// fields are those of the REST API, as in “providertype”.
func (p Permits) Check(provider Provider) []FieldError {
	var errs []FieldError
	if slices.Contains(p.TypesOff, provider.Type) {
		errs = append(errs, FieldError{Field: "providertype", Message: fmt.Sprintf("The provider type “%s” is switched off for this tenant; ask the superadmin to switch it on.", provider.Type)})
	}
	role := strings.ToLower(FieldText(provider.Fields[InstanceRoleField]))
	if !p.InstanceRoles && (role == "true" || role == "on") {
		errs = append(errs, FieldError{Field: "provisioner." + InstanceRoleField, Message: "Instance roles are switched off for this tenant; give credentials, or ask the superadmin to switch them on."})
	}
	return errs
}

// Refusal is what Check finds in one error whose fields are all of the given name, or nil.
func (p Permits) Refusal(field string, provider Provider) error {
	errs := p.Check(provider)
	if len(errs) == 0 {
		return nil
	}
	for i := range errs {
		errs[i].Field = field
	}
	return &Error{Kind: Invalid, Message: errs[0].Message, Fields: errs}
}
