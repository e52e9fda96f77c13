package clusters

import (
	"context"

	"loom/app/loom"
)

// AbandonIn gives up what the delete of a cluster of any tenant left behind and
// terminates the cluster: a superadmin does it as the tenant's administrator, and is
// named in its audit. Errors: Forbidden, NotFound, Conflict where nothing was left.
func (u *Clusters) AbandonIn(ctx context.Context, actor loom.Actor, tenant loom.Tenant, id loom.ClusterID) error {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return err
	}
	if tenant.ID == actor.Tenant {
		return u.abandon(ctx, actor, id)
	}
	acting := actor
	acting.Tenant, acting.TenantName, acting.User, acting.Role = tenant.ID, tenant.Name, loom.AdminUser, loom.RoleAdmin
	acting.Via = actor.Via + " by " + actor.TenantName + "/" + string(actor.User)
	acting.By, acting.ByRole = actor.Account(), actor.Role
	return u.abandon(ctx, acting, id)
}
