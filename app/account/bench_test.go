package account_test

import (
	"testing"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/testkit"
)

// A session or a token is looked up with every request; a password is hashed at
// sign-in only.
func BenchmarkIdentity(b *testing.B) {
	db := testkit.NewDatabase(b)
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		b.Fatal(err)
	}
	accounts := account.New(db.DB, ring)
	made, err := accounts.EnsureSuperadmin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	in := account.SignInInput{Tenant: made[0].Tenant, User: string(made[0].User), Password: made[0].Password}
	actor, cookie, _, err := accounts.SignIn(b.Context(), in)
	if err != nil {
		b.Fatal(err)
	}
	_, token, err := accounts.CreateToken(b.Context(), actor, account.NewToken{Name: "bench", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sign-in", func(b *testing.B) {
		for b.Loop() {
			if _, _, _, err := accounts.SignIn(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("session", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := accounts.ActorBySession(b.Context(), cookie, ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("token", func(b *testing.B) {
		for b.Loop() {
			if _, err := accounts.ActorByToken(b.Context(), account.TokenInput{Secret: token}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
