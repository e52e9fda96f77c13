package loom

import (
	"strings"
	"testing"
)

// TestRefusalsSayWhatHelps: where a token with the scope is made, and whom to ask for what
// needs another role.
func TestRefusalsSayWhatHelps(t *testing.T) {
	t.Parallel()
	user := Actor{Tenant: "a", User: "ana", Role: RoleUser, Scopes: []Scope{ScopeRead}}
	for want, err := range map[string]error{
		"“loom token create --scope clusters:write”": user.May(Operate, user.Mine()),
		"ask one of your tenant":                     user.May(Administer.Reading(), user.InTenant()),
		"ask whoever runs Loom":                      user.May(Install, Installation),
	} {
		if err == nil || !strings.Contains(AsError(err).Message, want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestProviderAddressesHoldNoPassword: neither when they are saved or imported; fields
// that are sealed may.
func TestProviderAddressesHoldNoPassword(t *testing.T) {
	t.Parallel()
	for value, refused := range map[any]bool{
		"https://user:pw@keystone.example:5000/v3": true, " HTTPS://user@keystone.example": true, `https:\\user:pw@host`: true,
		"https://us%er:p%w@host/": true, "https://host/a@b": false, "https://host?mail=a@b": false, "me@host": false, "ssh://ubuntu@bastion": false,
		"https://keystone.example:5000/v3": false, "": false, 7: false,
	} {
		p := Provider{Base: Base{Name: "p"}, Type: "openstack", Fields: map[string]any{"openstack_auth_url": value, "openstack_password": value}}
		errs := p.Validate()
		if refused != (len(errs) == 1 && errs[0].Field == "provisioner.openstack_auth_url") || !refused && len(errs) > 0 {
			t.Errorf("%v: %v", value, errs)
		}
	}
}
