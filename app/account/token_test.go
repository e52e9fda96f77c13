package account_test

import (
	"errors"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// TestTokenRotation walks what happens to the secrets of a token.
func TestTokenRotation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	token, first, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeAdmin}, Expires: &soon})
	if err != nil {
		t.Fatal(err)
	}
	works := func(name string, secret loom.Secret, want bool) {
		t.Helper()
		_, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret})
		if want && err != nil || !want && !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := b.user
	other.User = "somebody"
	for name, c := range map[string]struct {
		actor loom.Actor
		id    int64
		want  loom.Kind
	}{
		"another user":             {other, token.ID, loom.NotFound},
		"another tenant":           {b.super, token.ID, loom.NotFound},
		"no such token":            {b.user, token.ID + 99, loom.NotFound},
		"a token without the role": {scoped(b.user, loom.ScopeRead, loom.ScopeClusterWrite, loom.ScopeCatalogWrite), token.ID, loom.Forbidden},
	} {
		if _, _, err := b.RotateToken(b.ctx, c.actor, c.id); !errors.Is(err, c.want) {
			t.Errorf("rotation by %s: %v", name, err)
		}
	}
	rotated, second, err := b.RotateToken(b.ctx, b.user, token.ID)
	if err != nil || rotated.ID != token.ID || rotated.Prefix != second.Reveal()[:9] || !rotated.Expires.Equal(token.Expires) || second.Reveal() == first.Reveal() {
		t.Fatalf("rotated %+v, %v", rotated, err)
	}
	works("the old secret", first, true)
	works("the new secret", second, true)
	if n := b.count(t, `SELECT count(*) FROM token_old_secrets s JOIN tokens t ON t.id = s.token_id WHERE s.ends_at = t.expires_at`); n != 1 {
		t.Error("the old secret would outlive its token")
	}
	// What is deployed survives two rotations.
	_, third, err := b.RotateToken(b.ctx, b.user, token.ID)
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]loom.Secret{"first": first, "second": second, "third": third} {
		works(name, secret, true)
	}
	b.exec(t, `UPDATE tokens SET expires_at = NULL`)
	_, fourth, err := b.RotateToken(b.ctx, b.user, token.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM token_old_secrets WHERE ends_at BETWEEN now() + interval '23 hours' AND now() + interval '24 hours'`); n != 1 {
		t.Error("the old secret of a token for ever does not live 24 hours")
	}
	b.exec(t, `UPDATE token_old_secrets SET ends_at = now()`)
	works("the third after its time", third, false)
	works("the fourth", fourth, true)
	b.exec(t, `UPDATE token_old_secrets SET ends_at = now() + interval '1 hour'`)
	b.exec(t, `UPDATE tokens SET expires_at = now()`)
	works("the third of an expired token", third, false)
	if _, _, err := b.RotateToken(b.ctx, b.user, token.ID); !errors.Is(err, loom.Conflict) {
		t.Errorf("rotating an expired token: %v", err)
	}
	b.exec(t, `UPDATE tokens SET expires_at = NULL`)
	works("the third again", third, true)
	if err := b.RevokeToken(b.ctx, b.user, token.ID); err != nil {
		t.Fatal(err)
	}
	works("the third of a revoked token", third, false)
	works("the fourth of a revoked token", fourth, false)
	if _, _, err := b.RotateToken(b.ctx, b.user, token.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("rotating a revoked token: %v", err)
	}
}

func scoped(actor loom.Actor, scopes ...loom.Scope) loom.Actor {
	actor.Scopes = scopes
	return actor
}
