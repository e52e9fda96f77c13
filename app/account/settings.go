package account

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Settings gives the settings of the actor's tenant.
func (a *Accounts) Settings(ctx context.Context, actor loom.Actor) (loom.Settings, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return loom.Settings{}, err
	}
	return store.Settings(ctx, a.db, actor.Tenant)
}

// SettingsChange is what may be changed of the settings; nil stays as it is.
// Tokens for ever are asked for by EndlessTokens, and then MaxTokenDays is nil.
type SettingsChange struct {
	LeaseReminderHours []int
	LeaseGraceHours    *int
	MaxTokenDays       *int
	EndlessTokens      bool
	RequireLease       *bool
	AutomaticRepairs   *bool
	RepairsPerDay      *int
	LocalSignIn        *string
}

// UpdateSettings changes settings of the actor's tenant. Tokens and clusters that
// are there already stay as they are. Errors: Forbidden, Invalid.
func (a *Accounts) UpdateSettings(ctx context.Context, actor loom.Actor, in SettingsChange) (loom.Settings, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.Settings{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Settings, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.Settings{}, err
		}
		before, err := store.Settings(ctx, tx, actor.Tenant)
		if err != nil {
			return loom.Settings{}, err
		}
		after := before
		if in.LeaseReminderHours != nil {
			after.LeaseReminderHours = in.LeaseReminderHours
		}
		if in.LeaseGraceHours != nil {
			after.LeaseGraceHours = *in.LeaseGraceHours
		}
		if in.MaxTokenDays != nil || in.EndlessTokens {
			after.MaxTokenDays = in.MaxTokenDays
		}
		if in.RequireLease != nil {
			after.RequireLease = *in.RequireLease
		}
		if in.AutomaticRepairs != nil {
			after.AutomaticRepairs = *in.AutomaticRepairs
		}
		if in.RepairsPerDay != nil {
			after.RepairsPerDay = *in.RepairsPerDay
		}
		if in.LocalSignIn != nil {
			after.LocalSignIn = *in.LocalSignIn
		}
		if err := loom.InvalidFields(after.Normalize()); err != nil {
			return loom.Settings{}, err
		}
		if err := store.SetSettings(ctx, tx, actor.Tenant, after); err != nil {
			return loom.Settings{}, err
		}
		if err := record(ctx, tx, actor, "update", "settings", actor.TenantName, before, after); err != nil {
			return loom.Settings{}, err
		}
		return after, store.InsertEvents(ctx, tx, loom.Event{Tenant: actor.Tenant, Topic: "tenant", IDs: []string{"settings"}})
	})
}
