package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Identity providers: “idp” of the first tenant has its user, who signs in as subject 1.
func init() {
	type tx = *sqlx.Tx
	provider := loom.IdentityProvider{ID: "idp", Name: "changed", Issuer: "https://id.example", ClientID: "loom", UserClaim: "name", SubjectClaim: "sub", MaxAgeDays: 1}
	maps.Copy(trespassers, map[string]trespasser{
		"IdentityProviders": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.IdentityProviders(ctx, q, t)
		},
		"SignInProviders": func(ctx context.Context, q tx, t loom.TenantID) (any, error) { return store.SignInProviders(ctx, q, t) },
		"IdentityProvider": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.IdentityProvider(ctx, q, t, "idp")
		},
		"LockIdentityProvider": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.LockIdentityProvider(ctx, q, t, "idp")
		},
		"InsertIdentityProvider": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			other := provider
			other.ID, other.Tenant = "another", own
			return store.InsertIdentityProvider(ctx, q, t, other)
		},
		"UpdateIdentityProvider": nothing(func(ctx context.Context, q tx, t loom.TenantID) error {
			return store.UpdateIdentityProvider(ctx, q, t, provider)
		}),
		"DeleteIdentityProvider": nothing(func(ctx context.Context, q tx, t loom.TenantID) error {
			return store.DeleteIdentityProvider(ctx, q, t, provider)
		}),
		"RulesOfGroup": func(ctx context.Context, q tx, t loom.TenantID) (any, error) { return store.RulesOfGroup(ctx, q, t, 8) },
		"InsertIdentityUser": nothing(func(ctx context.Context, q tx, t loom.TenantID) error {
			return store.InsertIdentityUser(ctx, q, t, "idp", "1", ownUser)
		}),
		"DeleteIdentityUser": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			gone, err := store.DeleteIdentityUser(ctx, q, t, provider, ownUser)
			return leak(gone), err
		},
		"SetMembers": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			added, removed, err := store.SetMembers(ctx, q, t, ownUser, loom.MemberByHand, []int64{7})
			return leak(len(added)+len(removed) > 0), err
		},
		"IdentitiesOf": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.IdentitiesOf(ctx, q, t, ownUser)
		},
		"SetSessionProvider": nothing(func(ctx context.Context, q tx, t loom.TenantID) error {
			return store.SetSessionProvider(ctx, q, t, []byte("MARKED-hash"), "idp", "s1", nil)
		}),
		"SessionProvider": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			provider, _, err := store.SessionProvider(ctx, q, t, []byte("MARKED-hash"))
			return leak(provider != ""), err
		},
	})
}
