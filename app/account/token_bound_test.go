package account_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// TestTokensAreBounded: a user has a hundred valid tokens; one that is over or revoked makes
// room.
func TestTokensAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := func() error {
		_, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeRead}})
		return err
	}
	if err := token(); err != nil {
		t.Fatal(err)
	}
	n := b.count(t, `SELECT count(*) FROM tokens WHERE user_id = $1 AND tenant_id = $2`, b.user.User, b.user.Tenant)
	for ; n < 100; n++ {
		if err := token(); err != nil {
			t.Fatalf("token %d: %v", n+1, err)
		}
	}
	if err := token(); !errors.Is(err, loom.Exhausted) || !strings.Contains(err.Error(), "revoke one") {
		t.Errorf("one more: %v", err)
	}
	b.exec(t, `UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = (SELECT max(id) FROM tokens)`)
	if err := token(); err != nil {
		t.Errorf("once one is over: %v", err)
	}
}
