package route

// Usage is the use of nodes by one's own clusters.
func Usage() string { return "/usage" }

// AdminUsage is the use of nodes by the tenant.
func AdminUsage() string { return "/admin/usage" }

// SystemUsage is the use of nodes by all tenants.
func SystemUsage() string { return "/system/usage" }

// Activity is what happened of late that concerns one.
func Activity() string { return "/activity" }

// SystemActivity is what happened of late in all tenants.
func SystemActivity() string { return "/system/activity" }

// AdminTransfer exports and imports the catalog; AdminTransferExport is the download.
func AdminTransfer() string { return "/admin/transfer" }

// AdminTransferExport is the bundle of what was chosen.
func AdminTransferExport() string { return "/admin/transfer/export" }

// AdminTransferPreview shows what an import would do (POST).
func AdminTransferPreview() string { return "/admin/transfer/preview" }

// AdminTransferFleet says what the chosen entries would do to each cluster (POST).
func AdminTransferFleet() string { return AdminTransferPreview() + "/clusters" }

// AdminTransferImport does it (POST) and tells what the last one did (GET).
func AdminTransferImport() string { return "/admin/transfer/import" }

// AdminStarter loads the starter catalog (POST).
func AdminStarter() string { return "/admin/starter" }

// SystemStatus tells how the parts of the installation are.
func SystemStatus() string { return "/system/status" }

// SystemActAs begins to act as the administrator of a tenant (GET asks, POST does).
func SystemActAs(tenant string) string { return join("system", "tenants", tenant, "act-as") }

// ActEnd ends acting as another (POST).
func ActEnd() string { return "/act/end" }

// SystemJob is a River job.
func SystemJob(id int64) string { return join("system", "queues", "jobs", number(id)) }

// SystemJobVerb asks (GET) and does (POST) something with a River job: "retry",
// "cancel", "delete".
func SystemJobVerb(id int64, verb string) string {
	return join("system", "queues", "jobs", number(id), verb)
}

// SystemPlugin is the page of a plugin type.
func SystemPlugin(kind, name string) string { return join("system", "plugins", kind, name) }

// SystemClusters lists the clusters of all tenants.
func SystemClusters() string { return "/system/clusters" }

// AdminClusters leads to the clusters of all owners.
func AdminClusters() string { return "/admin/clusters" }

// AdminArchive shows the archive of plugin resources that was given (GET) and imports of
// it (POST).
func AdminArchive() string { return "/admin/transfer/resources" }

// AdminArchiveExport is the archive of plugin resources.
func AdminArchiveExport() string { return "/admin/transfer/resources/export" }

// AdminArchiveUpload takes an archive of plugin resources (POST).
func AdminArchiveUpload() string { return "/admin/transfer/resources/upload" }
