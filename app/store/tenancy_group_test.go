package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Groups: number 7 of the first tenant has its user, whom binding 8 makes an operator of cluster 1.
func init() {
	type tx = *sqlx.Tx
	maps.Copy(trespassers, map[string]trespasser{
		"GroupPage": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			groups, _, _, err := store.GroupPage(ctx, q, t, "", loom.Page{})
			return groups, err
		},
		"Group":     func(ctx context.Context, q tx, t loom.TenantID) (any, error) { return store.Group(ctx, q, t, 7) },
		"LockGroup": func(ctx context.Context, q tx, t loom.TenantID) (any, error) { return store.LockGroup(ctx, q, t, 7) },
		"CountGroups": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			n, err := store.CountGroups(ctx, q, t)
			return leak(n > 0), err
		},
		"InsertGroup": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.InsertGroup(ctx, q, t, loom.Group{Name: "new", Tenant: own})
		},
		"UpdateGroup": nothing(func(ctx context.Context, q tx, t loom.TenantID) error {
			return store.UpdateGroup(ctx, q, t, loom.Group{ID: 7, Name: "changed"})
		}),
		"DeleteGroup": nothing(func(ctx context.Context, q tx, t loom.TenantID) error { return store.DeleteGroup(ctx, q, t, 7) }),
		"MembersOf": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.MembersOf(ctx, q, t, 7, "", 10)
		},
		"GroupsOf": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.GroupsOf(ctx, q, t, ownUser)
		},
		"AddMember": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.AddMember(ctx, q, t, 7, ownUser, "rule:x", "x")
		},
		"RemoveMember": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			removed, err := store.RemoveMember(ctx, q, t, 7, ownUser, loom.MemberByHand)
			return leak(removed), err
		},
		"Binding": func(ctx context.Context, q tx, t loom.TenantID) (any, error) { return store.Binding(ctx, q, t, 8) },
		"Bindings": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.Bindings(ctx, q, t, store.BindingFilter{})
		},
		"BindingPage": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			bindings, _, _, err := store.BindingPage(ctx, q, t, store.BindingFilter{}, loom.Page{})
			return bindings, err
		},
		"CountBindings": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			n, err := store.CountBindings(ctx, q, t, ownUser, 7)
			return leak(n > 0), err
		},
		"InsertBinding": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			_, err := store.InsertBinding(ctx, q, t, loom.Binding{User: ownUser, Grant: loom.Grant{Role: loom.RoleReader}, CreatedBy: "x"})
			return nil, err
		},
		"DeleteBinding": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			gone, err := store.DeleteBinding(ctx, q, t, 8)
			return leak(gone), err
		},
		"DropBindingsOfTemplates": nothing(store.DropBindingsOfTemplates),
		"RevealedNodes": func(ctx context.Context, q tx, t loom.TenantID) (any, error) {
			return store.RevealedNodes(ctx, q, t, 1, ownUser, 7)
		},
	})
}
