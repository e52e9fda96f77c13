package store_test

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Tenants, their users, sessions and tokens.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"LockTenant": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LockTenant(ctx, tx, t)
		},
		"Tenant":      reads(store.Tenant),
		"QuotaUse":    reads(store.QuotaUse),
		"BusyWorkers": reads(store.BusyWorkers),
		"NodesInUse": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			nodes, _, err := store.NodesInUse(ctx, tx, t)
			return leak(nodes > 0), err
		},
		"UpdateTenant": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.UpdateTenant(ctx, tx, t, loom.Tenant{ID: own, Description: "changed"})
		}),
		"MaxTokenDays": reads(store.MaxTokenDays),
		"Permits":      reads(store.Permits),
		"Settings":     reads(store.Settings),
		"SetSettings": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SetSettings(ctx, tx, t, loom.Settings{RequireLease: true})
		}),
		"AssignedWorkers": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.AssignedWorkers(ctx, tx, t)
			return leak(n > 0), err
		},
		"DeleteTenant": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.DeleteTenant(ctx, tx, t)
		}),
		"User": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.User(ctx, tx, t, ownUser)
		},
		"LockUser": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LockUser(ctx, tx, t, ownUser)
		},
		"InsertUser": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.InsertUser(ctx, tx, t, loom.User{ID: ownUser, Tenant: own, Role: loom.RoleUser}, "")
			return nil, err
		},
		"UpdateUser": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.UpdateUser(ctx, tx, t, loom.User{ID: ownUser, Tenant: own, Role: loom.RoleAdmin})
		}),
		"PasswordHash": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.PasswordHash(ctx, tx, t, ownUser)
		},
		"MarkPasswordUsed": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.MarkPasswordUsed(ctx, tx, t, ownUser)
		}),
		"PasswordUsed": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.PasswordUsed(ctx, tx, t, ownUser)
		},
		"SetPasswordHash": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SetPasswordHash(ctx, tx, t, ownUser, "changed", loom.PasswordAsked)
		}),
		"InsertSession": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.InsertSession(ctx, tx, t, []byte("new"), ownUser, "", "", time.Hour)
			return nil, err
		},
		"TouchSession": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.TouchSession(ctx, tx, t, ownHash, "changed")
		}),
		"SessionsOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.SessionsOf(ctx, tx, t, ownUser)
		},
		"LiveSession": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LiveSession(ctx, tx, t, ownHash)
		},
		"SessionPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			items, next, prev, err := store.SessionPage(ctx, tx, t, ownUser, "", loom.Page{})
			return []any{items, next, prev}, err
		},
		"UserPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			items, next, prev, err := store.UserPage(ctx, tx, t, store.UserFilter{}, loom.Page{})
			return []any{items, next, prev}, err
		},
		"UserAlike": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.UserAlike(ctx, tx, t, loom.UserID(strings.ToUpper(string(ownUser))))
		},
		"UserSummary": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.UserSummary(ctx, tx, t, ownUser)
		},
		"EndAccess": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.EndAccess(ctx, tx, t, ownUser)
		}),
		"TouchUser": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.TouchUser(ctx, tx, t, ownUser)
		}),
		"LiveClustersOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.LiveClustersOf(ctx, tx, t, ownUser)
			return leak(n > 0), err
		},
		"DeleteUser": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.DeleteUser(ctx, tx, t, ownUser)
		}),
		"Profile": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			profile, err := store.Profile(ctx, tx, t, ownUser)
			return leak(profile != nil), err
		},
		"SetProfile": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SetProfile(ctx, tx, t, ownUser, []byte("{}"))
		}),
		"DeleteSession": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.DeleteSession(ctx, tx, t, ownHash)
		}),
		"DeleteSessionsOf": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			_, err := store.DeleteSessionsOf(ctx, tx, t, ownUser, nil)
			return err
		}),
		"TokenOwner": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			owner, err := store.TokenOwner(ctx, tx, t, 1)
			return leak(owner != ""), err
		},
		"InsertToken": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.InsertToken(ctx, tx, t, loom.Token{Account: loom.Account{User: ownUser, Tenant: own}, Name: "x", Prefix: "x"}, []byte("new"), 0)
			return nil, err
		},
		"TouchToken": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.TouchToken(ctx, tx, t, 1, "changed")
		}),
		"TokensOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.TokensOf(ctx, tx, t, ownUser)
		},
		"TokenPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			items, next, prev, err := store.TokenPage(ctx, tx, t, ownUser, "", loom.Page{})
			return []any{items, next, prev}, err
		},
		"RotateToken": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.RotateToken(ctx, tx, t, 1, []byte("other"), "x", time.Hour)
		}),
		"LockToken": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LockToken(ctx, tx, t, 1)
		},
		"RevokeToken": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.RevokeToken(ctx, tx, t, 1)
		}),
		"RevokeTokensOf": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.RevokeTokensOf(ctx, tx, t, ownUser)
		}),
	})
}
