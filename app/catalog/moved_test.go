package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/store"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
)

// TestMovedCredentialsAreGivenAgain: a save that changes where or how a sealed value is
// sent, or to which plugin, and keeps the value is refused at each sealed field, and
// nothing of it is stored. With the value, or when nothing moves, it is saved.
func TestMovedCredentialsAreGivenAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{openstack.Type(), rackspace.Type(), static.Type()}, nil); err != nil {
		t.Fatal(err)
	}
	token := b.admin
	token.Via, token.Scopes = "token", []loom.Scope{loom.ScopeRead, loom.ScopeCatalogWrite}
	tester := token // of connections
	tester.Scopes = []loom.Scope{loom.ScopeAdmin}
	for i, c := range []struct {
		what, kind, before, kindAfter, after string
		again                                []string
	}{
		{"another address", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://b"`, []string{"api_password"}},
		{"an address before it", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://a", "endpoint_url": "https://b"`, []string{"api_password"}},
		{"no checks", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://a", "openstack_ssl_verify_peer": false`, []string{"api_password"}},
		{"checks said", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": " https://a ", "openstack_ssl_verify_peer": true`, nil},
		{"both secrets", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted", "application_credential_secret": "planted"`, "", `"api_password": ""`, []string{"api_password", "application_credential_secret"}},
		{"one of both", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted", "application_credential_secret": "planted"`, "", `"api_password": "known"`, []string{"application_credential_secret"}},
		{"given again", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://b", "api_password": "other"`, nil},
		{"shown to scripts", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://a", "expose_credentials": "on"`, []string{"api_password"}},
		{"shown to scripts as before", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted", "expose_credentials": true`, "", `"openstack_auth_url": "https://a", "expose_credentials": "true"`, nil},
		{"no longer shown to scripts", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted", "expose_credentials": true`, "", `"openstack_auth_url": "https://a", "expose_credentials": false`, nil},
		{"not shown to scripts", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://a", "expose_credentials": "false"`, nil},
		{"rotated", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://a", "api_password": "other"`, nil},
		{"another region", "openstack", `"openstack_auth_url": "https://a", "api_password": "planted"`, "", `"openstack_auth_url": "https://a", "openstack_region": "r"`, nil},
		{"not declared, but read", "rackspace", `"api_password": "planted"`, "", `"rackspace_auth_url": "https://b"`, []string{"api_password"}},
		{"another type", "rackspace", `"api_password": "planted"`, "openstack", `"x": "y"`, []string{"api_password"}},
		{"another type that has no such field", "rackspace", `"api_password": "planted"`, "static", `"hosts": "a"`, nil},
		{"a type nobody knows", "rackspace", `"api_password": "planted"`, "mine", `"x": "y"`, []string{"api_password"}},
		{"another host and a password", "static", `"hosts": "a", "ssh_password": "planted"`, "", `"hosts": "a\nb"`, []string{"ssh_password"}},
		{"by way of another host", "static", `"hosts": "a", "ssh_password": "planted"`, "", `"hosts": "a", "ssh_jump": "me@b"`, []string{"ssh_password"}},
		{"another host and a key, which only signs", "static", `"hosts": "a", "ssh_key_resource": "k", "ssh_key_passphrase": "planted"`, "", `"hosts": "b", "ssh_key_resource": "k"`, nil},
	} {
		name := fmt.Sprintf("p%d", i)
		b.save(t, b.admin, loom.KindProvider, `{"name": %q, "providertype": %q, "provisioner": {%s}}`, name, c.kind, c.before)
		kind := c.kind
		if c.kindAfter != "" {
			kind = c.kindAfter
		}
		body := fmt.Sprintf(`{"name": %q, "providertype": %q, "provisioner": {%s}}`, name, kind, c.after)
		var atSave, atImport, atCompare error
		drafted, atDraft := b.ProviderDraft(b.ctx, tester, []byte(body))
		if len(c.again) == 0 && (atDraft != nil || drafted.Provider.Name != name) {
			t.Errorf("%s: a draft: %+v, %v", c.what, drafted, atDraft)
		}
		for field, secret := range drafted.Secrets {
			if strings.Contains(c.before, field) && !strings.Contains(c.after, field) && secret.Reveal() != "planted" || secret.IsZero() {
				t.Errorf("%s: a draft has another %s", c.what, field)
			}
		}
		for _, field := range c.again {
			if !slices.ContainsFunc(loom.AsError(atDraft).Fields, func(e loom.FieldError) bool { return e.Field == "provisioner."+field }) {
				t.Errorf("%s: a draft keeps %s: %v", c.what, field, atDraft)
			}
		}
		in, err := catalog.DecodeBundle([]byte(`{"providers": [` + body + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		report, err := b.CompareImport(b.ctx, token, in, catalog.Merge)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Invalid) > 0 {
			atCompare = loom.InvalidFields(report.Invalid[0].Fields)
		}
		if len(c.again) > 0 {
			for _, mode := range []catalog.Mode{catalog.Merge, catalog.Replace} {
				_, atImport = b.Import(b.ctx, token, in, mode)
				again(t, c.what+", imported: "+string(mode), atImport, c.again)
			}
		}
		again(t, c.what+", compared", atCompare, c.again)
		_, _, atSave = b.Save(b.ctx, token, loom.KindProvider, catalog.SaveInput{Entry: decode(t, loom.KindProvider, "%s", body)})
		again(t, c.what, atSave, c.again)
		versions, err := b.Versions(b.ctx, b.admin, loom.KindProvider, name)
		want := 2
		if len(c.again) > 0 {
			want = 1
		}
		if err != nil || len(versions) != want {
			t.Errorf("%s: %d versions, %v", c.what, len(versions), err)
		}
		left, err := store.Secrets(b.ctx, b.db.DB, "t-1", store.ProviderSecrets(name))
		if _, has := left["api_password"]; err != nil || c.kindAfter == "static" && has {
			t.Errorf("%s: a password that the new type has no field for is still stored (%v)", c.what, err)
		}
	}
}

// again holds an error against the sealed fields that have to be given again.
func again(t *testing.T, what string, err error, fields []string) {
	t.Helper()
	var got []string
	if err != nil {
		if !errors.Is(err, loom.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
		for _, e := range loom.AsError(err).Fields {
			if !strings.Contains(e.Message, "Give “") || !strings.Contains(e.Message, "again") {
				t.Errorf("%s: no remedy in %q", what, e.Message)
			}
			got = append(got, strings.TrimPrefix(e.Field, "provisioner."))
		}
	}
	if !slices.Equal(got, fields) {
		t.Errorf("%s: asked for %v, want %v (%v)", what, got, fields, err)
	}
}

// TestOldVersionsDoNotGetNewCredentials: the newest version of a provider is not deleted
// when the one before would send the stored credentials elsewhere, nor does saving
// an old version again bring its address back without them.
func TestOldVersionsDoNotGetNewCredentials(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{openstack.Type()}, nil); err != nil {
		t.Fatal(err)
	}
	body := `{"name": "p", "providertype": "openstack", "provisioner": {"openstack_auth_url": "https://%s", "openstack_region": "%s", "api_password": "%s"}}`
	b.save(t, b.admin, loom.KindProvider, body, "a", "r", "first")
	b.save(t, b.admin, loom.KindProvider, body, "b", "r", "second")
	err := b.Delete(b.ctx, b.admin, loom.KindProvider, "p", 2)
	if !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("deleting the newest: %v", err)
	}
	old, _, err := b.Entry(b.ctx, b.admin, loom.KindProvider, "p", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Save(b.ctx, b.admin, loom.KindProvider, catalog.SaveInput{Entry: old})
	again(t, "an old version", err, []string{"api_password"})
	b.save(t, b.admin, loom.KindProvider, body, "b", "s", "")
	for _, version := range []int{3, 1, 2} { // to the same address; an older one; the last
		if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "p", version); err != nil {
			t.Errorf("deleting version %d: %v", version, err)
		}
	}
	if left, err := store.Secrets(b.ctx, b.db.DB, "t-1", store.ProviderSecrets("p")); err != nil || len(left) > 0 {
		t.Errorf("left are %d secrets, %v", len(left), err)
	}
	b.save(t, b.admin, loom.KindProvider, body, "c", "r", "") // a name that is free has nothing to move
}
