package account_test

import (
	"errors"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// second makes another administrator of demo and gives her actor.
func (b *bundle) second(t *testing.T) loom.Actor {
	t.Helper()
	password := loom.NewSecret("a password of her own")
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "second", Role: loom.RoleAdmin, Password: password}); err != nil {
		t.Fatal(err)
	}
	actor := b.admin
	actor.User = "second"
	return actor
}

// TestTokensAreOnesOwn: nobody gets the secret of a token that stands for another, by
// acting as her or as an administrator; revoking is everybody's who administers.
func TestTokensAreOnesOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := b.second(t)
	own, _, err := b.CreateToken(b.ctx, b.admin, account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	acting := b.as(t, second, "desk", "", "admin")
	abroad := b.as(t, b.super, "ops", "demo", "admin")
	for name, actor := range map[string]loom.Actor{"a colleague": acting, "a superadmin": abroad} {
		if _, _, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: "forged", Scopes: []loom.Scope{loom.ScopeRead}}); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s makes a token as another: %v", name, err)
		}
		if _, _, err := b.RotateToken(b.ctx, actor, own.ID); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s rotates a token as its owner: %v", name, err)
		}
	}
	if _, _, err := b.RotateToken(b.ctx, second, own.ID); !errors.Is(err, loom.Forbidden) {
		t.Errorf("an administrator rotates another’s token: %v", err)
	}
	if _, _, err := b.RotateToken(b.ctx, b.user, own.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("a user learns of an administrator’s token: %v", err)
	}
	if err := b.RevokeToken(b.ctx, second, own.ID); err != nil {
		t.Errorf("an administrator revokes another’s token: %v", err)
	}
}

// TestOwnRoleThroughAColleague: who acts as a colleague changes of herself no more than
// she could as herself.
func TestOwnRoleThroughAColleague(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acting := b.as(t, b.second(t), "desk", "", "admin")
	password, old := loom.NewSecret("another password, a new one"), loom.NewSecret("a password of her own")
	for name, change := range map[string]account.UserChange{
		"role":     {Role: ptr(loom.RoleUser)},
		"disabled": {Disabled: ptr(true)},
	} {
		if _, err := b.UpdateUser(b.ctx, acting, "second", change); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.UpdateUser(b.ctx, acting, "second", account.UserChange{Password: &password}); fieldsOf(err) != "oldPassword" {
		t.Errorf("without the old password: %v", err)
	}
	wrong := b.passwords["demo/admin"]
	if _, err := b.UpdateUser(b.ctx, acting, "second", account.UserChange{Password: &password, OldPassword: &wrong}); fieldsOf(err) != "oldPassword" {
		t.Errorf("with the colleague’s password: %v", err)
	}
	if _, err := b.UpdateUser(b.ctx, acting, "second", account.UserChange{Password: &password, OldPassword: &old}); err != nil {
		t.Errorf("with her old password: %v", err)
	}
	if err := b.DeleteUser(b.ctx, acting, "second"); !errors.Is(err, loom.Conflict) {
		t.Errorf("removing herself: %v", err)
	}
}

// TestEveryActingIsRecorded: each user that a token acts as is on record, whatever the
// token did just before, and not at each request.
func TestEveryActingIsRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.second(t)
	_, secret, err := b.CreateToken(b.ctx, b.admin, account.NewToken{Name: "desk", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"", "user", "second", "user", "second", ""} {
		if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsUser: user}); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"user", "second"} {
		if n := b.count(t, `SELECT count(*) FROM audit WHERE verb = 'act_as' AND object = $1 AND actor = $1 AND via = 'token:desk by admin'`, user); n != 1 {
			t.Errorf("%d records of acting as %s, want 1", n, user)
		}
	}
}

// TestForeignTenantsAnswerAlike: whether another tenant is there is told to superadmins only.
func TestForeignTenantsAnswerAlike(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "rival"}); err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]loom.Actor{"an administrator": b.admin, "a user": b.user} {
		_, secret, err := b.CreateToken(b.ctx, owner, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeAdmin}})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, tenant := range []string{"rival", "nosuch", "no\x00such"} {
			_, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsTenant: tenant})
			if !errors.Is(err, loom.Forbidden) {
				t.Errorf("%s, %q: %v", name, tenant, err)
			}
			said = append(said, loom.AsError(err).Message)
		}
		if said[0] != said[1] || said[0] != said[2] {
			t.Errorf("%s learns which tenants there are: %q", name, said)
		}
	}
	_, secret, err := b.CreateToken(b.ctx, b.super, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsTenant: "nosuch"}); !errors.Is(err, loom.NotFound) {
		t.Errorf("a superadmin: %v", err)
	}
}

// TestTokensOfTokens: what a token makes ends with it at the latest, and is revoked with
// it, over several generations.
func TestTokensOfTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	scopes := []loom.Scope{loom.ScopeAdmin}
	ends := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	short, secret, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "short", Scopes: scopes, Expires: &ends})
	if err != nil {
		t.Fatal(err)
	}
	long, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "long", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	by := func(secret loom.Secret) loom.Actor {
		t.Helper()
		actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return actor
	}
	actor := by(secret)
	later := ends.Add(time.Hour)
	if _, _, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: "child", Scopes: scopes, Expires: &later}); fieldsOf(err) != "expires" {
		t.Errorf("a token that outlives the one that makes it: %v", err)
	}
	if _, _, err := b.RotateToken(b.ctx, actor, long.ID); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a secret that outlives the token that gets it: %v", err)
	}
	if _, _, err := b.RotateToken(b.ctx, actor, short.ID); err != nil {
		t.Errorf("a token rotates itself: %v", err)
	}
	secrets := []loom.Secret{}
	for _, name := range []string{"child", "grandchild"} {
		child, secret, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: name, Scopes: scopes})
		if err != nil || !child.Expires.Equal(ends) {
			t.Fatalf("%s: ends %v, %v; want %v", name, child.Expires, err, ends)
		}
		secrets, actor = append(secrets, secret), by(secret)
	}
	if err := b.RevokeToken(b.ctx, b.user, short.ID); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret}); !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("works after the one that made it was revoked: %v", err)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE verb = 'delete' AND kind = 'token'`); n != 1 {
		t.Errorf("%d entries about revoking, want 1", n)
	}
	if list, err := b.Tokens(b.ctx, b.user); err != nil || len(list) != 1 || list[0].ID != long.ID {
		t.Errorf("left: %+v, %v", list, err)
	}
}
