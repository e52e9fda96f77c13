package account_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

// tokenOf makes a token and gives who acts by it.
func (b bundle) tokenOf(t *testing.T, owner loom.Actor, name string) (loom.Actor, loom.Secret) {
	t.Helper()
	_, secret, err := b.CreateToken(b.ctx, owner, account.NewToken{Name: name, Scopes: all})
	if err != nil {
		t.Fatal(err)
	}
	return b.by(t, secret), secret
}

func (b bundle) by(t *testing.T, secret loom.Secret) loom.Actor {
	t.Helper()
	actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return actor
}

// TestNothingOutlivesARevocation: what a token makes at the moment in which it is revoked is
// revoked with it.
func TestNothingOutlivesARevocation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, _ := b.tokenOf(t, b.user, "first")
	parent, _ := b.tokenOf(t, first, "parent")
	revoked := make(chan error, 1)
	err := store.Exec(b.ctx, b.db.DB, func(tx *sqlx.Tx) error {
		if err := store.HoldActor(b.ctx, tx, parent); err != nil {
			return err
		}
		if _, err := store.InsertToken(b.ctx, tx, b.user.Tenant, loom.Token{Account: b.user.Account(), Name: "child", Prefix: "p", Scopes: all}, []byte("child"), parent.Token); err != nil {
			return err
		}
		go func() { revoked <- b.RevokeToken(b.ctx, b.user, first.Token) }()
		for b.count(t, `SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()`) == 0 { // it waits
			select {
			case err := <-revoked:
				return fmt.Errorf("revoked while a child was made (%v)", err)
			default:
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-revoked; err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM tokens WHERE name IN ('first', 'parent', 'child') AND revoked_at IS NULL`); n != 0 {
		t.Errorf("%d tokens are left", n)
	}
	if _, _, err := b.CreateToken(b.ctx, parent, account.NewToken{Name: "late", Scopes: all}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("a revoked token makes one: %v", err)
	}
	if _, _, err := b.RotateToken(b.ctx, parent, parent.Token); err == nil {
		t.Error("a revoked token rotates itself")
	}
}

// TestAChainIsRevokedAtOnce: all tokens of a chain are revoked by as many requests at the
// same time, which wait for each other in one order.
func TestAChainIsRevokedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []int64
	for maker := b.user; len(ids) < 60; {
		maker, _ = b.tokenOf(t, maker, "link")
		ids = append(ids, maker.Token)
	}
	for i := range ids { // the last one used is the first one stored
		b.exec(t, `UPDATE tokens SET last_used_at = now() WHERE id = $1`, ids[len(ids)-1-i])
	}
	var work sync.WaitGroup
	for _, id := range ids {
		work.Go(func() {
			if err := b.RevokeToken(b.ctx, b.user, id); err != nil && !errors.Is(err, loom.NotFound) {
				t.Errorf("token %d: %v", id, err)
			}
		})
	}
	work.Wait()
	if n := b.count(t, `SELECT count(*) FROM tokens WHERE name = 'link' AND revoked_at IS NULL`); n != 0 {
		t.Errorf("%d are left", n)
	}
	if n := b.count(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d times they waited for each other in a circle", n)
	}
}

// TestTokensRotateOnlyTheirOwn: a token gets no new secret of one that it did not create, and a replaced
// secret gets nothing that outlives it. Few of these work on.
func TestTokensRotateOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deploy, first := b.tokenOf(t, b.user, "deploy")
	ci, _ := b.tokenOf(t, b.user, "ci")
	child, _ := b.tokenOf(t, deploy, "child")
	grandchild, _ := b.tokenOf(t, child, "grandchild")
	if _, _, err := b.RotateToken(b.ctx, deploy, child.Token); err != nil {
		t.Errorf("its child: %v", err)
	}
	for name, c := range map[string]struct {
		by loom.Actor
		id int64
	}{"another": {ci, deploy.Token}, "its parent": {child, deploy.Token}, "a grandchild": {deploy, grandchild.Token}} {
		if _, _, err := b.RotateToken(b.ctx, c.by, c.id); !errors.Is(err, loom.Forbidden) || !strings.Contains(err.Error(), "only itself and what it created") {
			t.Errorf("%s: %v", name, err)
		}
	}
	secrets := []loom.Secret{first}
	for range 3 {
		_, next, err := b.RotateToken(b.ctx, b.by(t, secrets[len(secrets)-1]), deploy.Token)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, next)
		old := b.by(t, secrets[len(secrets)-2])
		if _, _, err := b.RotateToken(b.ctx, old, deploy.Token); !errors.Is(err, loom.Forbidden) || !strings.Contains(err.Error(), "was replaced already") {
			t.Errorf("a replaced secret rotates: %v", err)
		}
		made, _, err := b.CreateToken(b.ctx, old, account.NewToken{Name: "of old", Scopes: all})
		if err != nil || made.Expires.IsZero() || time.Until(made.Expires) > account.RotationOverlap {
			t.Errorf("a replaced secret makes one that ends %s (%v)", made.Expires, err)
		}
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: first}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("the third secret before the present one works on: %v", err)
	}
	b.by(t, secrets[1])
	b.by(t, secrets[2])
}

// TestTokensKeepNobodyOut: who stole a token sets no first password with it, and keeps its
// owner neither from changing his nor from his sessions.
func TestTokensKeepNobodyOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actor, cookie := b.signIn(t, "demo", "user")
	thief, _ := b.tokenOf(t, actor, "stolen")
	guess, next := loom.NewSecret("a wrong password"), loom.NewSecret("quite another password")
	for range 20 {
		if err := b.ChangePassword(b.ctx, thief, guess, next, loom.Secret{}, false); !errors.Is(err, loom.Invalid) && !errors.Is(err, loom.Throttled) {
			t.Fatalf("a guess: %v", err)
		}
	}
	other, _ := b.tokenOf(t, thief, "more")
	if err := b.ChangePassword(b.ctx, other, guess, next, loom.Secret{}, false); !errors.Is(err, loom.Throttled) {
		t.Errorf("another token guesses on: %v", err)
	}
	stolen, second := b.signIn(t, "demo", "user")
	for range 20 {
		_ = b.ChangePassword(b.ctx, stolen, guess, next, second, false) // waits by itself
	}
	if err := b.EndOtherSessions(b.ctx, thief, loom.Secret{}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a token ends all sessions: %v", err)
	}
	if err := b.ChangePassword(b.ctx, actor, b.passwords["demo/user"], next, cookie, false); err != nil {
		t.Errorf("the owner: %v", err)
	}
	recorded := func() int { return b.count(t, `SELECT count(*) FROM audit WHERE kind = 'session' AND verb = 'delete'`) }
	before := recorded()
	b.passwords["demo/user"] = next
	b.signIn(t, "demo", "user")
	actor, _, err := b.ActorBySession(b.ctx, cookie, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := b.EndOtherSessions(b.ctx, actor, cookie); err != nil {
			t.Fatal(err)
		}
	}
	if n := recorded() - before; n != 1 {
		t.Errorf("%d records of one end", n)
	}
	b.exec(t, `UPDATE users SET password_hash = NULL WHERE id = 'user'`)
	mine, _ := b.tokenOf(t, actor, "mine")
	if _, err := b.UpdateUser(b.ctx, mine, "user", account.UserChange{Password: &next}); !errors.Is(err, loom.Forbidden) || !strings.Contains(err.Error(), "no first password") {
		t.Errorf("a token sets the first password: %v", err)
	}
}

// TestTokenNamesAreSeen: a name holds nothing that a terminal or a page obeys. Who acts as
// another in a session is told how to end that.
func TestTokenNamesAreSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"a\x1b[31m", "a\u202eb", "a\tb", "a\u200bb", "a\u0085b"} {
		if _, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: name, Scopes: all}); fieldsOf(err) != "name" {
			t.Errorf("%q: %v", name, err)
		}
	}
	acting := b.user
	acting.By, acting.ByRole = b.super.Account(), loom.RoleSuperadmin
	if _, _, err := b.CreateToken(b.ctx, acting, account.NewToken{Name: "x", Scopes: all}); !errors.Is(err, loom.Forbidden) || !strings.Contains(err.Error(), "To create your own, end that.") {
		t.Errorf("in a session that acts: %v", err)
	}
}
