package catalog

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// ProviderDraft gives a provider as saving its document would make it, and stores nothing.
// Secrets that it leaves out come from the stored provider of its name, by the rules of Save:
// never for another type or address. The name may be missing. Errors: those of Decode, and of Save
// for what is given.
func (c *Catalog) ProviderDraft(ctx context.Context, actor loom.Actor, body []byte) (loom.ProviderDraft, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.ProviderDraft{}, err
	}
	tenant := actor.Tenant
	name, body := named(body)
	entry, err := Decode(loom.KindProvider, body)
	if err != nil {
		return loom.ProviderDraft{}, err
	}
	p := entry.(*loom.Provider)
	var d loom.ProviderDraft
	err = store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		may, err := store.Permits(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if err := loom.InvalidFields(may.Check(*p)); err != nil {
			return err
		}
		s, err := c.splitProvider(ctx, tx, tenant, p)
		if err != nil {
			return err
		}
		if err := loom.InvalidFields(c.formats(s.plugin, *p)); err != nil {
			return err
		}
		if err := c.mayReplace(ctx, tx, tenant, *p, s); err != nil {
			return err
		}
		d.Secrets, d.Digest, err = c.draftOf(tenant, *p, s)
		return err
	})
	if err != nil {
		return loom.ProviderDraft{}, err
	}
	d.Provider = *p
	d.Provider.Name = name
	return d, nil
}

// draftOf gives the secrets that the tasks of a provider would get, and the digest of it with them.
func (c *Catalog) draftOf(tenant loom.TenantID, p loom.Provider, s split) (secrets map[string]loom.Secret, digest []byte, err error) {
	secrets, plain := map[string]loom.Secret{}, map[string]string{}
	for _, field := range p.Sealed {
		secret, given := s.given[field]
		if !given {
			if secret, err = c.ring.Open(tenant, store.ProviderSecrets(p.Name), field, s.sealed[field]); err != nil {
				return nil, nil, err
			}
		}
		secrets[field], plain[field] = secret, secret.Reveal()
	}
	// Text of JSON says where each value ends, and sorts the names.
	data, err := json.Marshal([]any{"provider draft", tenant, p.Type, p.Fields, plain})
	if err != nil {
		return nil, nil, err
	}
	digest, err = c.ring.MAC(c.ring.First(), data)
	return secrets, digest, err
}

// adoptTest makes the newest test that the actor ran of what is saved here the test of the provider.
func (c *Catalog) adoptTest(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, p loom.Provider, s split) error {
	_, digest, err := c.draftOf(actor.Tenant, p, s)
	if err != nil {
		return nil //nolint:nilerr // who saves new credentials need not wait for the key of the old ones
	}
	return store.AdoptDraftProbe(ctx, tx, actor.Tenant, actor.User, p.Name, digest)
}

// named gives the name in a document, and the document with a name that nothing is stored
// under where it has none.
func named(body []byte) (name string, with []byte) {
	var document map[string]json.RawMessage
	if json.Unmarshal(body, &document) != nil || document == nil {
		return "", body // Decode says why
	}
	if given := document["name"]; len(given) > 0 && string(given) != "null" && (json.Unmarshal(given, &name) != nil || name != "") {
		return name, body
	}
	document["name"], _ = json.Marshal("draft-" + rand.Text()) // a text
	with, err := json.Marshal(document)
	if err != nil {
		return "", body
	}
	return "", with
}
