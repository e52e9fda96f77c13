package account

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// TokenWarning is how long before its end a token is warned of.
const TokenWarning = loom.TokenWarning

// Notices are what pages tell without being asked.
type Notices = store.Notices

// Notices gives what there is to tell the actor; what only administrators can do
// something about is left out for others.
func (a *Accounts) Notices(ctx context.Context, actor loom.Actor) (Notices, error) {
	found, err := store.NoticesFor(ctx, a.kept, actor.Tenant, actor.User, TokenWarning)
	if actor.May(loom.Publish.Reading(), actor.InTenant()) != nil {
		found.Outstanding = 0
	}
	return found, err
}
