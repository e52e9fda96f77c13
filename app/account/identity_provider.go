package account

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/idp"
	"loom/app/loom"
	"loom/app/store"
)

// IdentityProviderInput is a new identity provider, or what to change of one: nil leaves it.
type IdentityProviderInput struct {
	Name, Issuer, ClientID  *string
	Secret                  *loom.Secret
	UserClaim, SubjectClaim *string
	MaxAgeDays              *int
	Enabled                 *bool
}

// maxMaxAgeDays is the longest time that tokens work after a sign-in.
const maxMaxAgeDays = 365

// NewIdentityProvider returns what an identity provider has where nothing else is said.
func NewIdentityProvider() loom.IdentityProvider {
	return loom.IdentityProvider{UserClaim: "preferred_username", SubjectClaim: loom.SubjectClaims[0], MaxAgeDays: 30, Enabled: true}
}

func (in *IdentityProviderInput) apply(p *loom.IdentityProvider, client *idp.Client) []loom.FieldError {
	set := func(to *string, from *string) {
		if from != nil {
			*to = strings.TrimSpace(*from)
		}
	}
	set(&p.Name, in.Name)
	set(&p.Issuer, in.Issuer)
	set(&p.ClientID, in.ClientID)
	set(&p.UserClaim, in.UserClaim)
	set(&p.SubjectClaim, in.SubjectClaim)
	if in.MaxAgeDays != nil {
		p.MaxAgeDays = *in.MaxAgeDays
	}
	if in.Enabled != nil {
		p.Enabled = *in.Enabled
	}
	var errs []loom.FieldError
	if n := utf8.RuneCountInString(p.Name); n < 1 || n > 60 || strings.ContainsFunc(p.Name, unseen) {
		errs = append(errs, loom.FieldError{Field: "name", Message: "Enter a name of 1–60 characters. People see it on the sign-in page."})
	}
	if wrong := client.CheckIssuer(p.Issuer); wrong != "" {
		errs = append(errs, loom.FieldError{Field: "issuer", Message: wrong})
	}
	for field, value := range map[string]string{"clientId": p.ClientID, "userClaim": p.UserClaim} {
		if n := utf8.RuneCountInString(value); n < 1 || n > maxUserText || strings.ContainsFunc(value, unseen) {
			errs = append(errs, loom.FieldError{Field: field, Message: "Enter 1–200 characters."})
		}
	}
	if !slices.Contains(loom.SubjectClaims, p.SubjectClaim) {
		errs = append(errs, loom.FieldError{Field: "subjectClaim", Message: "Choose “sub” or “oid”."})
	}
	if p.MaxAgeDays < 1 || p.MaxAgeDays > maxMaxAgeDays {
		errs = append(errs, loom.FieldError{Field: "maxAgeDays", Message: fmt.Sprintf("Enter a number of days from 1 to %d.", maxMaxAgeDays)})
	}
	if in.Secret != nil {
		if n := len(in.Secret.Reveal()); n < 1 || n > 1000 {
			errs = append(errs, loom.FieldError{Field: "clientSecret", Message: "Enter the client secret, at most 1,000 characters."})
		}
	}
	slices.SortStableFunc(errs, func(a, b loom.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func shownIdentityProvider(p loom.IdentityProvider) map[string]any {
	return map[string]any{"id": p.ID, "name": p.Name, "issuer": p.Issuer, "clientId": p.ClientID, "userClaim": p.UserClaim, "subjectClaim": p.SubjectClaim,
		"maxAgeDays": p.MaxAgeDays, "enabled": p.Enabled}
}

// identityEvent tells pages of the tenant that its identity providers changed.
func identityEvent(tenant loom.TenantID) loom.Event {
	return loom.Event{Tenant: tenant, Topic: "tenant", IDs: []string{"identity"}}
}

// IdentityProviders lists the identity providers of the actor's tenant by name. Those of superadmins'
// tenant are for all tenants. Forbidden.
func (a *Accounts) IdentityProviders(ctx context.Context, actor loom.Actor) ([]loom.IdentityProvider, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.IdentityProviders(ctx, a.db, actor.Tenant)
}

// IdentityProvider returns an identity provider of the actor's tenant. Errors: Forbidden, NotFound.
func (a *Accounts) IdentityProvider(ctx context.Context, actor loom.Actor, id string) (loom.IdentityProvider, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return loom.IdentityProvider{}, err
	}
	return store.IdentityProvider(ctx, a.db, actor.Tenant, clean(id))
}

// CallbackURL is where an identity provider sends people back to, and LogoutURL where it tells of
// sign-ins that ended. Both are entered at the provider.
func (a *Accounts) CallbackURL(id string) string { return a.PublicURL + "/login/" + id + "/callback" }

// LogoutURL is described at CallbackURL.
func (a *Accounts) LogoutURL(id string) string { return a.PublicURL + "/login/" + id + "/logout" }

// CreateIdentityProvider stores an identity provider without rules. Errors: Forbidden; Invalid;
// Conflict for a name in use; Exhausted.
func (a *Accounts) CreateIdentityProvider(ctx context.Context, actor loom.Actor, in IdentityProviderInput) (loom.IdentityProvider, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.IdentityProvider{}, err
	}
	var id [10]byte
	rand.Read(id[:]) //nolint:errcheck // never fails (crypto/rand)
	p := NewIdentityProvider()
	p.ID = strings.ToLower(base32.StdEncoding.EncodeToString(id[:]))
	errs := in.apply(&p, a.Identity)
	if in.Secret == nil {
		errs = append(errs, loom.FieldError{Field: "clientSecret", Message: "Enter the client secret that the provider made for Loom."})
	}
	if err := loom.InvalidFields(errs); err != nil {
		return loom.IdentityProvider{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.IdentityProvider, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return p, err
		}
		if err := store.StillActs(ctx, tx, actor); err != nil {
			return p, err
		}
		there, err := store.IdentityProviders(ctx, tx, actor.Tenant)
		if err != nil {
			return p, err
		}
		if len(there) >= loom.MaxIdentityProviders {
			return p, loom.NewError(loom.Exhausted, "The tenant has %d identity providers, the most there are; delete one that is not used.", len(there))
		}
		if p, err = store.InsertIdentityProvider(ctx, tx, actor.Tenant, p); err != nil {
			return p, conflictAt(err, "name")
		}
		if err := a.sealIdentitySecret(ctx, tx, actor, p.ID, *in.Secret); err != nil {
			return p, err
		}
		if err := record(ctx, tx, actor, "create", "identity_provider", p.ID, nil, shownIdentityProvider(p)); err != nil {
			return p, err
		}
		return p, store.InsertEvents(ctx, tx, identityEvent(actor.Tenant))
	})
}

func (a *Accounts) sealIdentitySecret(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, id string, secret loom.Secret) error {
	entity := store.IdentitySecrets(id)
	sealed, err := a.ring.Seal(actor.Tenant, entity, store.IdentitySecretField, secret)
	if err != nil {
		return fmt.Errorf("seal the secret of identity provider %s: %w", id, err)
	}
	return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, map[string][]byte{store.IdentitySecretField: sealed})
}

// registration is what a provider knows of Loom.
func (a *Accounts) registration(ctx context.Context, q sqlx.ExtContext, p loom.IdentityProvider) (idp.Registration, error) {
	sealed, err := store.Secrets(ctx, q, p.Tenant, store.IdentitySecrets(p.ID))
	if err != nil {
		return idp.Registration{}, err
	}
	secret, err := a.ring.Open(p.Tenant, store.IdentitySecrets(p.ID), store.IdentitySecretField, sealed[store.IdentitySecretField])
	if err != nil {
		return idp.Registration{}, &loom.Error{Kind: loom.Unavailable, Message: fmt.Sprintf("Loom cannot read its client secret for “%s”; an administrator can enter it again.", p.Name), Err: err}
	}
	return idp.Registration{Issuer: p.Issuer, ClientID: p.ClientID, Secret: secret, RedirectURL: a.CallbackURL(p.ID), SubjectClaim: p.SubjectClaim}, nil
}

// changeIdentityProvider does something to an identity provider under its lock, if the actor may,
// and records it.
func (a *Accounts) changeIdentityProvider(ctx context.Context, actor loom.Actor, id, verb string, change func(tx *sqlx.Tx, p *loom.IdentityProvider) (before, after map[string]any, err error)) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return err
		}
		p, err := store.LockIdentityProvider(ctx, tx, actor.Tenant, clean(id))
		if err != nil {
			return err
		}
		before, after, err := change(tx, &p)
		if err != nil {
			return err
		}
		if err := record(ctx, tx, actor, verb, "identity_provider", p.ID, before, after); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, identityEvent(actor.Tenant))
	})
}

// UpdateIdentityProvider changes an identity provider. Another issuer or subject claim stands for
// other people, so it is refused once somebody is connected. Errors: Forbidden; NotFound; Invalid;
// Conflict for a name in use.
func (a *Accounts) UpdateIdentityProvider(ctx context.Context, actor loom.Actor, id string, in IdentityProviderInput) (loom.IdentityProvider, error) {
	var changed loom.IdentityProvider
	err := a.changeIdentityProvider(ctx, actor, id, "update", func(tx *sqlx.Tx, p *loom.IdentityProvider) (before, after map[string]any, err error) {
		was := *p
		errs := in.apply(p, a.Identity)
		const fixed = "%d users are connected with this provider, and another value would mean other people. Create another provider."
		if p.Issuer != was.Issuer && p.Users > 0 {
			errs = append(errs, loom.FieldError{Field: "issuer", Message: fmt.Sprintf(fixed, p.Users)})
		}
		if p.SubjectClaim != was.SubjectClaim && p.Users > 0 {
			errs = append(errs, loom.FieldError{Field: "subjectClaim", Message: fmt.Sprintf(fixed, p.Users)})
		}
		if p.Issuer != was.Issuer && in.Secret == nil {
			errs = append(errs, loom.FieldError{Field: "clientSecret", Message: "Enter the client secret of the new issuer: that of the old one is not sent elsewhere."})
		}
		if err := loom.InvalidFields(errs); err != nil {
			return nil, nil, err
		}
		if err := store.UpdateIdentityProvider(ctx, tx, actor.Tenant, *p); err != nil {
			return nil, nil, conflictAt(err, "name")
		}
		before, after, changed = shownIdentityProvider(was), shownIdentityProvider(*p), *p
		if in.Secret != nil {
			after["newSecret"] = true
			err = a.sealIdentitySecret(ctx, tx, actor, p.ID, *in.Secret)
		}
		return before, after, err
	})
	return changed, err
}

// DeleteIdentityProvider removes an identity provider: its sessions end, and its users lose what
// its rules gave them. Errors: Forbidden, NotFound.
func (a *Accounts) DeleteIdentityProvider(ctx context.Context, actor loom.Actor, id string) error {
	return a.changeIdentityProvider(ctx, actor, id, "delete", func(tx *sqlx.Tx, p *loom.IdentityProvider) (before, after map[string]any, err error) {
		before = shownIdentityProvider(*p)
		before["users"], before["rules"] = p.Users, p.Rules
		return before, nil, store.DeleteIdentityProvider(ctx, tx, actor.Tenant, *p)
	})
}

// IdentityOffers is what an identity provider offers.
type IdentityOffers = idp.Found

// CheckIdentityProvider asks an identity provider what it offers. Errors: Forbidden, NotFound,
// Invalid, Unavailable.
func (a *Accounts) CheckIdentityProvider(ctx context.Context, actor loom.Actor, id string) (IdentityOffers, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return IdentityOffers{}, err
	}
	p, err := store.IdentityProvider(ctx, a.db, actor.Tenant, clean(id))
	if err != nil {
		return IdentityOffers{}, err
	}
	return a.Identity.Check(ctx, p.Issuer)
}
