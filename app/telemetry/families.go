package telemetry

// Family is a row of the table of metrics: instruments, docs/metrics.md and the
// test that compares both are made from it.
type Family struct {
	Name string
	// Type is "counter", "gauge" or "histogram".
	Type   string
	Labels []string
	// From says which processes tell it: "all", "web", "scheduler", "provisioner"
	// or "state", which is what schedulers read from the database.
	From string
	// Help is one sentence.
	Help string
}

// Families is the table, in the order in which it is printed.
var Families = []Family{
	{"loom_build_info", "gauge", []string{"version"}, "all", "Always 1; the label tells the build."},
	{"loom_lease_held", "gauge", []string{"kind"}, "all", "Whether this process holds its process lease (1) or lost it (0)."},

	{"loom_tasks_total", "counter", []string{"action", "plugin", "outcome"}, "provisioner", "Attempts of tasks that ended here: complete, failed, interrupted, aborted, or late, whose result no longer counted."},
	{"loom_task_seconds", "histogram", []string{"action", "plugin"}, "provisioner", "How long attempts took that completed or failed, in seconds."},
	{"loom_tenant_tasks_total", "counter", []string{"tenant", "outcome"}, "provisioner", "The same attempts by tenant: the first 1,000 tenants by name, the sum of the rest as (others)."},
	{"loom_tenant_task_seconds_total", "counter", []string{"tenant"}, "provisioner", "How long workers were busy with them, in seconds, whatever the outcome."},
	{"loom_hop_seconds", "histogram", nil, "provisioner", "Time from the moment a task became due until its attempt began, in seconds by the clock of the database; without tasks that found no free worker within a second."},
	{"loom_snoozes_total", "counter", nil, "provisioner", "Deliveries given back because no worker of the tenant was free within a second."},
	{"loom_commit_tasks", "histogram", []string{"what"}, "provisioner", "Tasks per transaction that records starts or ends."},
	{"loom_commit_seconds", "histogram", []string{"what"}, "provisioner", "How long such a transaction took, in seconds."},
	{"loom_slots_used", "gauge", nil, "provisioner", "Tasks that run here now."},
	{"loom_slots_assigned", "gauge", nil, "provisioner", "Workers assigned to this process, over all tenants."},
	{"loom_slots_capacity", "gauge", nil, "provisioner", "Most tasks that may run here at once."},
	{"loom_ssh_connects_total", "counter", []string{"outcome"}, "provisioner", "SSH connections that were tried: ok, unreachable, refused (sign-in), host_key, other."},
	{"loom_repairs_total", "counter", []string{"how"}, "scheduler", "Repairs that Loom began by itself: restart, reboot or replace. Their results are in loom_operations_total."},
	{"loom_repairs_held_total", "counter", []string{"reason"}, "scheduler", "Times that a repair was held back, by the rule that held it."},
	{"loom_node_checks_total", "counter", []string{"outcome"}, "provisioner", "Checks of nodes: passed, failed (a service), refused (sign-in), unreachable, off, or skipped for want of time."},
	{"loom_nodes_watched", "gauge", nil, "provisioner", "Nodes that this process checks."},
	{"loom_node_checks_late", "gauge", nil, "provisioner", "Nodes of these whose check is overdue by half a minute."},
	{"loom_health_doubt", "gauge", []string{"kind"}, "provisioner", "Whether this process reaches so few machines that it is not believed (1)."},
	{"loom_log_bytes_total", "counter", nil, "provisioner", "Bytes of task logs that were stored."},

	{"loom_operations_total", "counter", []string{"action", "outcome"}, "scheduler", "Operations that ended: complete, failed, aborted, rolled_back."},
	{"loom_hook_deliveries_total", "counter", []string{"outcome"}, "scheduler", "Tries of deliveries of hooks: delivered, refused, failed for good, or waiting for another try."},
	{"loom_solver_seconds", "histogram", nil, "web", "How long requests, previews and form checks searched for a layout, in seconds."},

	{"loom_queue_depth", "gauge", []string{"tenant"}, "state", "Tasks of a tenant for which no worker was free yet; tenants without any are left out."},
	{"loom_queue_oldest_seconds", "gauge", []string{"tenant"}, "state", "How long the oldest of these has waited, in seconds."},
	{"loom_clusters", "gauge", []string{"status"}, "state", "Clusters that are not terminated."},
	{"loom_nodes", "gauge", []string{"health"}, "state", "Nodes with a machine, by last known health."},
	{"loom_clusters_health", "gauge", []string{"status"}, "state", "Clusters with machines, by last known health."},
	{"loom_incidents_open", "gauge", []string{"kind"}, "state", "Incidents that last."},
	{"loom_rollouts", "gauge", []string{"status"}, "state", "Rollouts that run or stopped."},
	{"loom_rollout_clusters", "gauge", []string{"status"}, "state", "Clusters that wait or run in these."},
	{"loom_leases_ending", "gauge", nil, "state", "Clusters whose lease ends within 24 hours."},
	{"loom_processes", "gauge", []string{"kind"}, "state", "Processes that are registered, also those whose lease just ended."},
	{"loom_process_lease_age_seconds", "gauge", []string{"kind"}, "state", "Seconds since the renewal of the process lease that is longest ago; above 10 a process is lost."},
	{"loom_workers_capacity", "gauge", nil, "state", "Tasks that all live provisioners may run at once; those that drain do not count."},
	{"loom_workers_wanted", "gauge", nil, "state", "Workers that tenants request."},
	{"loom_workers_assigned", "gauge", nil, "state", "Workers assigned to tenants."},
	{"loom_workers_busy", "gauge", nil, "state", "Tasks that run now, in all provisioners."},
	{"loom_database_connections", "gauge", nil, "state", "Connections to the database of this installation."},
	{"loom_database_oldest_transaction_seconds", "gauge", nil, "state", "Age of the oldest open transaction, in seconds."},
	{"loom_hook_deliveries_waiting", "gauge", nil, "state", "Deliveries of hooks that have not ended."},
	{"loom_state_errors_total", "counter", nil, "state", "Times that part of the state could not be read; that part is then missing from the answer."},
}

// family finds a row; a name that is not in the table is a programming error and
// panics.
func family(name string) Family {
	for _, f := range Families {
		if f.Name == name {
			return f
		}
	}
	panic("telemetry: no metric " + name)
}
