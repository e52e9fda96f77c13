package route

import (
	"strconv"

	"loom/app/loom"
)

func number[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }

// AdminUser is the page of a user (GET) and where its form is saved (POST).
func AdminUser(id loom.UserID) string { return join("admin", "users", string(id)) }

// AdminUserNew is the form for a new user. Users may be called "new".
func AdminUserNew() string { return "/admin/new-user" }

// AdminUsersDisable asks (GET) and disables several users (POST).
func AdminUsersDisable() string { return "/admin/bulk/users/disable" }

// AdminUserVerb is an action on a user: "disable", "enable", "password", "delete".
func AdminUserVerb(id loom.UserID, verb string) string {
	return join("admin", "users", string(id), verb)
}

// AdminUserToken asks (GET) and revokes (POST) a token of a user.
func AdminUserToken(id loom.UserID, token int64) string {
	return join("admin", "users", string(id), "tokens", number(token), "revoke")
}

// AdminUserSession asks (GET) and ends (POST) a session of a user.
func AdminUserSession(id loom.UserID, session string) string {
	return join("admin", "users", string(id), "sessions", session, "end")
}

// AdminRollouts lists the rollouts of the tenant (GET) and makes one (POST).
func AdminRollouts() string { return "/admin/rollouts" }

// AdminRolloutNew is the form of a new rollout; params are names and values of its change.
func AdminRolloutNew(params ...string) string { return Query("/admin/rollouts/new", params...) }

// AdminRollout is the page of a rollout.
func AdminRollout(number int) string { return join("admin", "rollouts", strconv.Itoa(number)) }

// AdminRolloutVerb does something to a rollout, such as start.
func AdminRolloutVerb(number int, verb string) string {
	return join("admin", "rollouts", strconv.Itoa(number), verb)
}

// AdminRolloutClusters lists the clusters of a rollout.
func AdminRolloutClusters(number int) string {
	return join("admin", "rollouts", strconv.Itoa(number), "clusters")
}

// TopicRollouts signals changes of any rollout.
func TopicRollouts() string { return "rollouts" }

// TopicRollout signals changes of a rollout.
func TopicRollout(number int) string { return "rollout:" + strconv.Itoa(number) }

// AdminHooks lists the hooks of the tenant (GET) and makes one (POST).
func AdminHooks() string { return "/admin/hooks" }

// AdminHookNew is the form for a new hook.
func AdminHookNew() string { return "/admin/hooks/new" }

// AdminHook is the page of a hook (GET) and where its form is saved (POST).
func AdminHook(id loom.HookID) string { return join("admin", "hooks", number(id)) }

// AdminHookVerb is a form or an action of a hook: "edit", "test", "delete".
func AdminHookVerb(id loom.HookID, verb string) string {
	return join("admin", "hooks", number(id), verb)
}

// AdminDeliveries is what was sent to a hook, as files; without scripts and by hand it
// leads to the page of the hook.
func AdminDeliveries(id loom.HookID) string {
	return join("admin", "hooks", number(id), "deliveries")
}

// AdminDelivery shows what was sent to a hook.
func AdminDelivery(id loom.HookID, delivery loom.DeliveryID) string {
	return join("admin", "hooks", number(id), "deliveries", number(delivery))
}

// AdminDeliveryReplay sends it once more (POST).
func AdminDeliveryReplay(id loom.HookID, delivery loom.DeliveryID) string {
	return AdminDelivery(id, delivery) + "/replay"
}

// AdminAudit lists who did what in the tenant.
func AdminAudit() string { return "/admin/audit" }

// AdminQueue says which tasks of the tenant wait, and why.
func AdminQueue() string { return "/admin/queue" }

// AdminSettings is the form of the tenant's settings.
func AdminSettings() string { return "/admin/settings" }

// AdminProbe is the last answer of a provider (GET) and asks it again (POST).
func AdminProbe(provider string) string { return join("admin", "providers", provider, "test") }

// AdminOrphans lists the machines at a provider that nobody uses (GET) and looks for them
// now (POST).
func AdminOrphans(provider string) string { return join("admin", "providers", provider, "orphans") }

// AdminProbes tests the connection of a provider that is not saved (POST).
func AdminProbes() string { return "/admin/tests" }

// AdminProbeRun is one test of a connection.
func AdminProbeRun(id string) string { return join("admin", "tests", id) }

// SystemTenants lists the tenants (GET) and makes one (POST).
func SystemTenants() string { return "/system/tenants" }

// SystemTenantNew is the form for a new tenant.
func SystemTenantNew() string { return "/system/tenants/new" }

// SystemTenant is the page of a tenant (GET) and where its form is saved (POST).
func SystemTenant(name string) string { return join("system", "tenants", name) }

// SystemTenantTab is a tab of the page of a tenant: "clusters", "users", "edit" (its quotas) or "activity".
func SystemTenantTab(name, tab string) string { return join("system", "tenants", name, tab) }

// SystemTenantDelete asks (GET) and deletes a tenant (POST).
func SystemTenantDelete(name string) string { return join("system", "tenants", name, "delete") }

// SystemWorkers lists the processes.
func SystemWorkers() string { return "/system/workers" }

// SystemWorkerVerb asks (GET) and does (POST) something with a process: "drain",
// "resume".
func SystemWorkerVerb(id loom.ProcessID, verb string) string {
	return join("system", "workers", string(id), verb)
}

// SystemQueues says what waits, by tenant.
func SystemQueues() string { return "/system/queues" }

// SystemQueueVerb asks (GET) and does (POST) something with a queue: "pause", "resume".
func SystemQueueVerb(queue, verb string) string { return join("system", "queues", queue, verb) }

// SystemTenantNodes lists the machines that a tenant has.
func SystemTenantNodes(tenant string) string { return join("system", "tenants", tenant, "nodes") }

// SystemJobs lists River jobs that belong to no task.
func SystemJobs() string { return "/system/queues/jobs" }

// SystemPlugins lists the plugin types.
func SystemPlugins() string { return "/system/plugins" }

// SystemOrphans lists machines that nobody claims, and those that deletes left.
func SystemOrphans() string { return "/system/orphans" }

// SystemOrphanRemove asks (GET) and removes a machine (POST).
func SystemOrphanRemove(id int64) string { return join("system", "orphans", number(id), "remove") }

// SystemLeftovers is what deletes left behind, as files; by hand it leads to the page
// that shows them.
func SystemLeftovers() string { return "/system/orphans/leftovers" }

// SystemLeftoversRetry tries all leftovers again (POST).
func SystemLeftoversRetry() string { return "/system/orphans/retry" }

// SystemOrphansLook looks for machines that nobody claims now (POST).
func SystemOrphansLook() string { return "/system/orphans/look" }

// SystemAbandon asks (GET) and gives up what a delete left behind (POST).
func SystemAbandon(tenant string, id loom.ClusterID) string {
	return join("system", "tenants", tenant, "clusters", id.String(), "abandon")
}

// SystemAudit lists who did what, in all tenants.
func SystemAudit() string { return "/system/audit" }

// TopicTenant signals changes of the tenant: counts, users, settings.
func TopicTenant() string { return "tenant" }

// TopicSystem signals changes of workers, queues and tenants; superadmins only.
func TopicSystem() string { return "system" }

// AdminGroups lists the groups of the tenant (GET) and makes one (POST).
func AdminGroups() string { return "/admin/groups" }

// AdminGroupNew is the form for a new group.
func AdminGroupNew() string { return "/admin/groups/new" }

// AdminGroup is the page of a group (GET) and where its form is saved (POST).
func AdminGroup(id int64) string { return join("admin", "groups", number(id)) }

// AdminGroupVerb is an action on a group: "delete", "members", "members/remove", "roles", "roles/remove".
func AdminGroupVerb(id int64, verb ...string) string {
	return join(append([]string{"admin", "groups", number(id)}, verb...)...)
}
