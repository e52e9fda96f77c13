package account_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

func text(s string) *loom.Secret { secret := loom.NewSecret(s); return &secret }

// TestUserSelfAndOthers walks who may change what of whom.
func TestUserSelfAndOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second, password, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "second", Role: loom.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	boss := b.admin
	boss.User = second.ID
	reader := b.user
	reader.Scopes = []loom.Scope{loom.ScopeRead, loom.ScopeClusterWrite, loom.ScopeCatalogWrite}
	user, admin, super := loom.RoleUser, loom.RoleAdmin, loom.RoleSuperadmin
	yes, no := true, false
	own, others := b.passwords["demo/user"].Reveal(), password.Reveal()
	for _, c := range []struct {
		name  string
		actor loom.Actor
		id    loom.UserID
		in    account.UserChange
		want  loom.Kind
		field string
	}{
		{"own name", b.user, "user", account.UserChange{SelfInput: account.SelfInput{DisplayName: ptr("Me")}}, "", ""},
		{"name of another", b.user, "admin", account.UserChange{SelfInput: account.SelfInput{DisplayName: ptr("Me")}}, loom.Forbidden, ""},
		{"name of nobody, by a user", b.user, "nobody", account.UserChange{}, loom.Forbidden, ""},
		{"name of nobody, by an administrator", b.admin, "nobody", account.UserChange{}, loom.NotFound, ""},
		{"own role up", b.user, "user", account.UserChange{Role: &admin}, loom.Forbidden, "role"},
		{"own disabled", b.user, "user", account.UserChange{Disabled: &no}, loom.Forbidden, "disabled"},
		{"own role of an administrator", boss, "second", account.UserChange{Role: &user}, loom.Forbidden, "role"},
		{"own disabled of an administrator", boss, "second", account.UserChange{Disabled: &yes, Role: &user}, loom.Forbidden, "role disabled"},
		{"demote the built-in one", boss, "admin", account.UserChange{Role: &user}, loom.Conflict, ""},
		{"demote oneself as the built-in one", b.admin, "admin", account.UserChange{Role: &user}, loom.Conflict, ""},
		{"disable the built-in one", boss, "admin", account.UserChange{Disabled: &yes}, loom.Conflict, ""},
		{"the built-in one stays what it is", boss, "admin", account.UserChange{Role: &admin, Disabled: &no}, "", ""},
		{"superadmin is no role to give", b.admin, "user", account.UserChange{Role: &super}, loom.Invalid, "role"},
		{"a token without the scope", reader, "user", account.UserChange{SelfInput: account.SelfInput{DisplayName: ptr("x")}}, loom.Forbidden, ""},
		{"own password without the old one", b.user, "user", account.UserChange{Password: text("a new password")}, loom.Invalid, "oldPassword"},
		{"own password with a wrong old one", b.user, "user", account.UserChange{Password: text("a new password"), OldPassword: text("wrong")}, loom.Invalid, "oldPassword"},
		{"own password of an administrator without the old one", boss, "second", account.UserChange{Password: text("a new password")}, loom.Invalid, "oldPassword"},
		{"old password alone", b.user, "user", account.UserChange{OldPassword: text(own)}, loom.Invalid, "password"},
		{"short password", b.user, "user", account.UserChange{Password: text("short"), OldPassword: text(own)}, loom.Invalid, "password"},
		{"own password", b.user, "user", account.UserChange{Password: text("a new password"), OldPassword: text(own)}, "", ""},
		{"own password of an administrator", boss, "second", account.UserChange{Password: text("a new password"), OldPassword: text(others)}, "", ""},
		{"password of another", b.admin, "user", account.UserChange{Password: text("another password")}, "", ""},
		{"promote", b.admin, "user", account.UserChange{Role: &admin}, "", ""},
	} {
		_, err := b.UpdateUser(b.ctx, c.actor, c.id, c.in)
		if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) || fieldsOf(err) != c.field {
			t.Errorf("%s: %v (fields %q)", c.name, err, fieldsOf(err))
		}
	}
	if u, err := b.User(b.ctx, b.admin, "user"); err != nil || u.Role != loom.RoleAdmin || u.DisplayName != "Me" {
		t.Errorf("in the end %+v, %v", u, err)
	}
	if right, err := b.PasswordUnused(b.ctx, "demo", "user", loom.NewSecret("another password")); err != nil || !right {
		t.Errorf("the password is not the one given last: %v, %v", right, err)
	}
}

// TestUserThrottledOldPassword lets guesses of the old password wait as sign-ins do.
func TestUserThrottledOldPassword(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO sign_in_failures (subject, failures, last_at)
		SELECT 'own:' || left(encode(sha256(convert_to('demo', 'UTF8') || '\x00'::bytea || convert_to('user', 'UTF8')), 'hex'), 32), 20, now() + interval '1 hour'`)
	_, err := b.UpdateUser(b.ctx, b.user, "user", account.UserChange{Password: text("a new password"), OldPassword: text(b.passwords["demo/user"].Reveal())})
	if !errors.Is(err, loom.Throttled) || loom.AsError(err).RetryAfter == 0 {
		t.Errorf("after many wrong old passwords: %v", err)
	}
}

func TestUserRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, password, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana", Email: "ana@example.org", SSHKeys: []string{goodKey}})
	if err != nil {
		t.Fatal(err)
	}
	b.passwords["demo/ana"] = password
	ana := b.user
	ana.User = "ana"
	_, cookie := b.signIn(t, "demo", "ana")
	_, secret, err := b.CreateToken(b.ctx, ana, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetProfile(b.ctx, ana, map[string]any{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.BeginOnce(b.ctx, ana, "k", "/v2/clusters", nil); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO previews (id, tenant_id, user_id, kind, cluster_id, hash, body, expires_at)
		VALUES (gen_random_uuid(), $1, 'ana', 'create', 9, 'h', '{}', now() + interval '1 hour')`, b.user.Tenant)
	b.exec(t, `INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, $1, 'ana', 'c', 'incomplete', 't', 1, '{}', 'p', '{}', '{}')`, b.user.Tenant)

	boss, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "boss", Role: loom.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	chief := b.admin
	chief.User = boss.ID
	foreign := b.super
	for name, c := range map[string]struct {
		actor loom.Actor
		id    loom.UserID
		want  loom.Kind
	}{
		"by a user":         {b.user, "ana", loom.Forbidden},
		"himself":           {ana, "ana", loom.Forbidden},
		"the built-in one":  {chief, "admin", loom.Conflict},
		"an administrator":  {chief, "boss", loom.Conflict},
		"nobody":            {b.admin, "nobody", loom.NotFound},
		"of another tenant": {foreign, "ana", loom.NotFound},
		"with a cluster":    {b.admin, "ana", loom.Conflict},
	} {
		if err := b.DeleteUser(b.ctx, c.actor, c.id); !errors.Is(err, c.want) {
			t.Errorf("removing %s: %v", name, err)
		}
	}
	if _, _, err := b.ActorBySession(b.ctx, cookie, ""); err != nil {
		t.Errorf("refused removals ended a session: %v", err)
	}
	b.exec(t, `UPDATE clusters SET status = 'terminated'`)
	if err := b.DeleteUser(b.ctx, b.admin, "ana"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.ActorBySession(b.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("session of a removed user: %v", err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("token of a removed user: %v", err)
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "ana", Password: password}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("sign-in of a removed user: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE actor = 'ana'`); n == 0 {
		t.Error("what a removed user did is gone from the audit")
	}
	if n := b.count(t, `SELECT count(*) FROM clusters WHERE owner_id = 'ana'`); n != 1 {
		t.Error("the terminated cluster lost its owner")
	}

	// Another person of the same name starts from nothing.
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"}); err != nil {
		t.Fatal(err)
	}
	got, err := b.UserSummary(b.ctx, b.admin, "ana")
	if err != nil || got.Email != "" || len(got.SSHKeys) != 0 || got.Tokens != 0 || got.Clusters != 0 || !got.LastSeen.IsZero() {
		t.Errorf("the new ana is %+v, %v", got, err)
	}
	if _, err := b.Profile(b.ctx, ana); !errors.Is(err, loom.NotFound) {
		t.Errorf("the profile of the old ana: %v", err)
	}
	for _, table := range []string{"sessions", "tokens", "token_old_secrets", "previews", "idempotency_keys"} {
		if n := b.count(t, `SELECT count(*) FROM `+table+` x WHERE to_jsonb(x)->>'user_id' = 'ana'`); n != 0 {
			t.Errorf("%d rows of the old ana in %s", n, table)
		}
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("the old token lives with the new user: %v", err)
	}
}

func TestUserPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, id := range []loom.UserID{"b1", "b2", "Zed", "ä", "b3"} {
		b.exec(t, `INSERT INTO users (tenant_id, id, role, email, disabled, created_at) VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))`,
			b.user.Tenant, id, []string{"user", "admin"}[i%2], string(id)+"@example.org", i == 0, i/2)
	}
	b.exec(t, `INSERT INTO tokens (tenant_id, user_id, name, prefix, hash, scopes, revoked_at, expires_at) VALUES
		($1, 'b1', 'live', 'x', '1', '{read}', NULL, NULL), ($1, 'b1', 'gone', 'x', '2', '{read}', now(), NULL), ($1, 'b1', 'late', 'x', '3', '{read}', NULL, now())`, b.user.Tenant)
	ids := func(in account.UserListInput) []string {
		t.Helper()
		var all []string
		for page := 0; ; page++ {
			list, err := b.ListUsers(b.ctx, b.admin, in)
			if err != nil || page > 20 {
				t.Fatalf("page %d of %+v: %v", page, in, err)
			}
			for _, u := range list.Items {
				all = append(all, string(u.ID))
			}
			if list.Next == "" {
				return all
			}
			// Forwards and back again gives the same page.
			next, err := b.ListUsers(b.ctx, b.admin, account.UserListInput{Page: loom.Page{Limit: in.Limit, Sort: in.Sort, After: list.Next}, Q: in.Q, Roles: in.Roles, Disabled: in.Disabled})
			if err != nil {
				t.Fatal(err)
			}
			back, err := b.ListUsers(b.ctx, b.admin, account.UserListInput{Page: loom.Page{Limit: in.Limit, Sort: in.Sort, Before: next.Prev}, Q: in.Q, Roles: in.Roles, Disabled: in.Disabled})
			if err != nil || len(back.Items) != len(list.Items) || back.Items[0].ID != list.Items[0].ID {
				t.Fatalf("back from page %d of %+v: %v, %v", page, in, back.Items, err)
			}
			in.After = list.Next
		}
	}
	no := false
	for want, in := range map[string]account.UserListInput{
		"Zed admin b1 b2 b3 user ä": {},
		"ä user b3 b2 b1 admin Zed": {Page: loom.Page{Sort: "-id"}},
		"b1 b2 b3":                  {Q: "B example"},
		"admin b2 ä":                {Roles: []loom.Role{loom.RoleAdmin}},
		"":                          {Roles: []loom.Role{loom.RoleSuperadmin}},
		"Zed admin b2 b3 user ä":    {Disabled: &no},
		"b3":                        {Q: "b", Roles: []loom.Role{loom.RoleUser}, Disabled: &no},
	} {
		for _, limit := range []int{0, 1, 2, 3} {
			in.Limit = limit
			if got := strings.Join(ids(in), " "); got != want {
				t.Errorf("%+v gives %q, want %q", in, got, want)
			}
		}
	}
	newest := ids(account.UserListInput{Page: loom.Page{Sort: "-createTime", Limit: 2}})
	oldest := ids(account.UserListInput{Page: loom.Page{Sort: "createTime", Limit: 3}})
	slices.Reverse(oldest)
	if len(newest) != 7 || !slices.Equal(newest, oldest) {
		t.Errorf("newest first %v, oldest last %v", newest, oldest)
	}
	list, err := b.ListUsers(b.ctx, b.admin, account.UserListInput{Q: "b1"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Tokens != 1 {
		t.Errorf("b1: %+v, %v", list, err)
	}
	first, err := b.ListUsers(b.ctx, b.admin, account.UserListInput{Page: loom.Page{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for field, in := range map[string]account.UserListInput{
		"after":  {Page: loom.Page{After: first.Next}, Q: "b"},
		"before": {Page: loom.Page{Before: loom.Cursor{Sort: "createTime", Keys: []string{"0000-01-01T00:00:00Z", "x", "y"}}.Encode(), Sort: "createTime"}},
		"sort":   {Page: loom.Page{Sort: "role"}},
		"limit":  {Page: loom.Page{Limit: 501}},
	} {
		if _, err := b.ListUsers(b.ctx, b.admin, in); !errors.Is(err, loom.Invalid) || fieldsOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := b.ListUsers(b.ctx, b.user, account.UserListInput{}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user lists users: %v", err)
	}
	supers, err := b.ListUsers(b.ctx, b.super, account.UserListInput{Roles: []loom.Role{loom.RoleSuperadmin}})
	if err != nil || len(supers.Items) != 1 || supers.Items[0].Role != loom.RoleSuperadmin {
		t.Errorf("superadmins: %+v, %v", supers, err)
	}
}

// TestUserByHeaders is identity by headers from a network that is believed.
func TestUserByHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	by := func(user, tenant string) (loom.Actor, error) {
		return b.ActorByHeaders(b.ctx, account.HeaderInput{User: user, Tenant: tenant, Address: "192.0.2.7"})
	}
	if _, err := by("ana", "nowhere"); !errors.Is(err, loom.NotFound) {
		t.Errorf("unknown tenant: %v", err)
	}
	for _, id := range []string{"a/b", "system", " x", strings.Repeat("x", 256)} {
		if _, err := by(id, "demo"); !errors.Is(err, loom.Invalid) || fieldsOf(err) != "id" {
			t.Errorf("id %.20q: %v", id, err)
		}
	}
	done := make(chan error, 4)
	for range 4 { // several first requests at once
		go func() {
			actor, err := by("ana", "demo")
			if err == nil && (actor.Role != loom.RoleUser || actor.Via != "headers" || actor.Tenant != b.user.Tenant) {
				err = errors.New("a wrong actor")
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM users WHERE id = 'ana' AND password_hash IS NULL AND last_seen_at IS NOT NULL`); n != 1 {
		t.Error("ana has no row, a password, or was not seen")
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "ana"}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("sign-in without a password: %v", err)
	}
	if actor, err := by("admin", "superadmin"); err != nil || actor.Role != loom.RoleSuperadmin {
		t.Errorf("superadmin: %+v, %v", actor, err)
	}
	lab, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	if actor, err := by("admin", "lab"); err != nil || actor.Role != loom.RoleAdmin || actor.Tenant != lab.ID {
		t.Errorf("the administrator of a new tenant: %+v, %v", actor, err)
	}
	if _, err := b.UpdateUser(b.ctx, b.admin, "ana", account.UserChange{Disabled: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := by("ana", "demo"); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("a disabled user: %v", err)
	}
	// A superadmin's token acts as the administrator of a tenant that has no users.
	if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "bare"}); err != nil {
		t.Fatal(err)
	}
	_, secret, err := b.CreateToken(b.ctx, b.super, account.NewToken{Name: "s", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	if actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsTenant: "bare"}); err != nil || actor.Role != loom.RoleAdmin || actor.TenantName != "bare" {
		t.Errorf("acting as the administrator of bare: %+v, %v", actor, err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsTenant: "bare", AsUser: "eve"}); !errors.Is(err, loom.NotFound) {
		t.Errorf("acting as nobody: %v", err)
	}
}
