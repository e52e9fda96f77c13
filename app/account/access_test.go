package account_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

// all is the scope of a token that may do what its owner may.
var all = []loom.Scope{loom.ScopeAdmin}

// TestEndedAccessFinishesNothing: what came with a session or token that ended since makes
// no token and no cluster, also when the user was enabled again or there is a new one of the
// same id.
func TestEndedAccessFinishesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	yes, no, chief := true, false, loom.RoleAdmin
	for i, end := range []struct {
		what string
		do   func(id loom.UserID) error
	}{
		{"a new password that ends tokens", func(id loom.UserID) error {
			next := loom.NewSecret("quite-another-Pa55phrase")
			_, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Password: &next, EndTokens: true})
			return err
		}},
		{"disabled and enabled", func(id loom.UserID) error {
			if _, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Disabled: &yes}); err != nil {
				return err
			}
			_, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Disabled: &no})
			return err
		}},
		{"disabled", func(id loom.UserID) error {
			_, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Disabled: &yes})
			return err
		}},
		{"another role", func(id loom.UserID) error {
			_, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Role: &chief})
			return err
		}},
		{"removed", func(id loom.UserID) error { return b.DeleteUser(b.ctx, b.admin, id) }},
		{"removed and made again", func(id loom.UserID) error {
			if err := b.DeleteUser(b.ctx, b.admin, id); err != nil {
				return err
			}
			return b.newUser(id)
		}},
	} {
		id := loom.UserID(fmt.Sprintf("worker-%d", i))
		if err := b.newUser(id); err != nil {
			t.Fatal(err)
		}
		b.passwords["demo/"+string(id)] = loom.NewSecret(workerPassword)
		_, cookie := b.signIn(t, "demo", string(id))
		bySession, _, err := b.ActorBySession(b.ctx, cookie, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		_, secret, err := b.CreateToken(b.ctx, bySession, account.NewToken{Name: "ci", Scopes: all})
		if err != nil {
			t.Fatal(err)
		}
		byToken, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		if err := end.do(id); err != nil {
			t.Fatalf("%s: %v", end.what, err)
		}
		for way, actor := range map[string]loom.Actor{"session": bySession, "token": byToken} {
			if _, _, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: "late", Scopes: all}); !errors.Is(err, loom.Unauthenticated) {
				t.Errorf("%s, with a %s: a token is made (%v)", end.what, way, err)
			}
			if _, err := b.UpdateSelf(b.ctx, actor, account.SelfInput{SSHKeys: []string{}}); err == nil {
				t.Errorf("%s, with a %s: the account is changed", end.what, way)
			}
			if err := store.Exec(b.ctx, b.db.DB, func(tx *sqlx.Tx) error { return store.HoldActor(b.ctx, tx, actor) }); !errors.Is(err, loom.Unauthenticated) {
				t.Errorf("%s, with a %s: a cluster would be made (%v)", end.what, way, err)
			}
		}
	}
}

const workerPassword = "some-long-Pa55phrase-of-a-worker"

func (b bundle) newUser(id loom.UserID) error {
	password := loom.NewSecret(workerPassword)
	_, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: id, Role: loom.RoleUser, Password: password})
	return err
}

// TestNothingOutlivesANewPassword: while an administrator gives a new password and ends the
// tokens, sign-ins with the old one and a token that makes more of itself go on at full
// speed. The administrator gets through, and of what they made nothing works afterwards.
func TestNothingOutlivesANewPassword(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const id = "thief"
	if err := b.newUser(id); err != nil {
		t.Fatal(err)
	}
	b.passwords["demo/"+id] = loom.NewSecret(workerPassword)
	for round := range 3 {
		var mu sync.Mutex
		var cookies, secrets []loom.Secret
		first, _ := b.signIn(t, "demo", id)
		old := b.passwords["demo/"+id]
		stop := make(chan struct{})
		var work sync.WaitGroup
		for range 4 {
			_, secret, err := b.CreateToken(b.ctx, first, account.NewToken{Name: "seed", Scopes: all})
			if err != nil {
				t.Fatal(err)
			}
			work.Go(func() { // always with the newest token
				for n := 0; n < 15; n++ {
					select {
					case <-stop:
						return
					default:
					}
					actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret})
					if err != nil {
						return
					}
					_, next, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: "more", Scopes: all})
					if err != nil {
						return
					}
					secret = next
					mu.Lock()
					secrets = append(secrets, next)
					mu.Unlock()
				}
			})
		}
		for range 3 {
			work.Go(func() {
				_, cookie, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: id, Password: old, Address: "192.0.2.7"})
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				cookies = append(cookies, cookie)
			})
		}
		next := loom.NewSecret(fmt.Sprintf("quite-another-Pa55phrase-%d", round))
		if _, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Password: &next, EndTokens: true}); err != nil {
			t.Fatalf("round %d: the administrator is refused: %v", round, err)
		}
		close(stop)
		work.Wait()
		for _, secret := range secrets {
			if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret}); !errors.Is(err, loom.Unauthenticated) {
				t.Fatalf("round %d: a token of before works on (%v)", round, err)
			}
		}
		for _, cookie := range cookies {
			if _, _, err := b.ActorBySession(b.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
				t.Fatalf("round %d: a session of the old password is open (%v)", round, err)
			}
		}
		b.passwords["demo/"+id] = next
		if n := b.count(t, `SELECT count(*) FROM tokens WHERE user_id = 'thief' AND revoked_at IS NULL`); n != 0 {
			t.Fatalf("round %d: %d tokens are left", round, n)
		}
	}
}

// TestLimitsOfAnAccount: keys and tokens of a user have a number, a key a length, and the
// audit of a profile says what changed and no more.
func TestLimitsOfAnAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Y1y1xG2nVYQm0o8zq8Tn5u1mWzqkq9mJk0b6T0000 "
	many := make([]string, 51)
	for i := range many {
		many[i] = key + fmt.Sprint(i)
	}
	for what, keys := range map[string][]string{"sshKeys": many, "sshKeys[0]": {key + strings.Repeat("x", 9000)}} {
		if _, err := b.UpdateSelf(b.ctx, b.user, account.SelfInput{SSHKeys: keys}); fieldsOf(err) != what {
			t.Errorf("%d keys: %v", len(keys), err)
		}
	}
	if _, err := b.UpdateSelf(b.ctx, b.user, account.SelfInput{SSHKeys: many[:50]}); err != nil {
		t.Fatal(err)
	}
	name := "Una"
	if _, err := b.UpdateSelf(b.ctx, b.user, account.SelfInput{DisplayName: &name}); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT length(coalesce(before::text, '') || after::text) FROM audit WHERE kind = 'user' AND verb = 'update' ORDER BY id DESC LIMIT 1`); n > 200 {
		t.Errorf("the audit of a name has %d characters", n)
	}
	b.exec(t, `INSERT INTO tokens (tenant_id, user_id, name, prefix, hash, scopes) SELECT $1, 'user', 't', 'p', sha256(i::text::bytea), '{read}' FROM generate_series(1, 100) i`, b.user.Tenant)
	if _, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "one more", Scopes: all}); !errors.Is(err, loom.Exhausted) {
		t.Errorf("the 101st token: %v", err)
	}
}
