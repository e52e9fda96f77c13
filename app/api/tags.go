package api

import "strings"

// tag is a chapter of the OpenAPI document: what routes have in common, and the
// first segments behind /v2 that belong to it.
type tag struct {
	name, help string
	segments   []string
}

// tags are the chapters in reading order. A test holds every route against them.
var tags = []tag{
	{"clusters", "Create clusters, read them, change and delete them. What takes time becomes an operation; the call answers at once.",
		[]string{"clusters", "getClusterStatuses"}},
	{"operations", "Changes in progress and in the past, with their tasks, plans and logs.", []string{"operations", "plans"}},
	{"previews", "Work out what a request would do, look at it, and do exactly that.", []string{"previews", "fleet-previews"}},
	{"rollouts", "Change many clusters in waves, which stop by themselves.", []string{"rollouts"}},
	{"nodes", "Nodes of clusters, their facts and their logs.", []string{"nodes", "getNodeProperties"}},
	{"catalog", "What the kinds of the catalog have in common: merging templates, checks, import and export.",
		[]string{"resolve", "check", "import", "export"}},
	{"clustertemplates", "Cluster templates: what users choose from.", []string{"clustertemplates"}},
	{"partialtemplates", "Parts that templates include.", []string{"partialtemplates"}},
	{"services", "Software on nodes: actions, dependencies, links.", []string{"services"}},
	{"hardwaretypes", "Sizes of machines, with each provider's own name for them.", []string{"hardwaretypes"}},
	{"imagetypes", "Images that machines start from, with each provider's own name for them.", []string{"imagetypes"}},
	{"providers", "Where machines come from. Sensitive fields are sealed and never answered.", []string{"providers", "probes"}},
	{"plugins", "Types of providers and automators, and the resources (scripts, keys, cookbooks) that they use.", []string{"plugins"}},
	{"account", "Who the request acts as; tokens, sessions and profile.", []string{"whoami", "tokens", "sessions", "profile"}},
	{"tenants", "Tenants with quotas, their users and settings.", []string{"tenants", "users", "settings"}},
	{"groups", "Groups of users, and the roles that users and groups have in the tenant, on templates and on clusters.", []string{"groups", "bindings", "access"}},
	{"identity", "Services of organizations that people sign in with, and the rules that make them members of groups.", []string{"identity-providers"}},
	{"incidents", "What went wrong on nodes, from turning bad until well again.", []string{"incidents"}},
	{"hooks", "Notices over HTTP when operations start and end.", []string{"hooks"}},
	{"audit", "Who changed what, when and from where.", []string{"audit"}},
	{"metrics", "Queues and node hours.", []string{"metrics"}},
	{"system", "Processes and queues of the installation, what is over all tenants, health, and the stream of events.",
		[]string{"provisioners", "processes", "orphans", "leftovers", "sweeps", "queues", "riverjobs", "system", "events", "openapi.json", "status", "healthz", "readyz", "metrics.txt"}},
}

// tagOf gives the chapter of a path, "" for none.
func tagOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/v2"), "/"), "/")
	segment := parts[0]
	if len(parts) > 2 && segment == "clusters" {
		switch parts[2] {
		case "operations", "plans", "nodes", "access":
			segment = parts[2]
		}
	}
	for _, t := range tags {
		for _, s := range t.segments {
			if s == segment {
				return t.name
			}
		}
	}
	return ""
}

// placeHelps say what the variable segments of paths stand for. A name that means
// different things is looked up behind the segment before it, as "clusters/id".
var placeHelps = map[string]string{
	"clusters/id":           "Id of a cluster, such as 00000042; the zeros may be left out.",
	"incidents/id":          "Number of an incident.",
	"rollouts/id":           "Number of a rollout.",
	"nodes/id":              "Id of a node.",
	"nodeId":                "Id of a node.",
	"probe":                 "Id of a probe.",
	"n":                     "Number of an operation within its cluster.",
	"t":                     "Number of a task within its operation.",
	"r":                     "Revision of the config.",
	"planId":                "Id of an operation, such as 00000042-001.",
	"previews/id":           "Id of a preview.",
	"tokens/id":             "Id of a token, not its secret.",
	"sessions/id":           "Id of a session.",
	"users/id":              "User id.",
	"groups/id":             "Id of a group.",
	"identity-providers/id": "Id of an identity provider.",
	"user":                  "Id of a user.",
	"bindings/id":           "Id of a binding.",
	"binding":               "Id of a binding.",
	"hooks/id":              "Id of a hook.",
	"d":                     "Id of a delivery.",
	"queue":                 "Name of a queue: control, hook, probe, sweep, journal, or “tenant_” and the id of a tenant.",
	"riverjobs/id":          "Number of a River job.",
	"orphans/id":            "Id of an orphaned machine.",
	"processes/id":          "Id of a process.",
	"provisioners/id":       "Id of a provisioner.",
	"name":                  "Name of the entry.",
	"tenants/name":          "Name of a tenant.",
	"services/service":      "Name of a service of the cluster.",
	"version":               "Version, a whole number above 0.",
	"v":                     "Version of the resource.",
	"resource":              "Name of the resource.",
	"{name}/version":        "Version, a whole number above 0; among plugins also the type of a resource.",
	"automatortypes/name":   "Name of the automator type.",
	"providertypes/name":    "Name of the provider type.",
	"action":                "What to do.",
}

// placeHelp says what a variable segment of a path stands for, "" when unknown.
func placeHelp(path, name string) string {
	before := ""
	if i := strings.Index(path, "/{"+name+"}"); i >= 0 {
		before = path[strings.LastIndexByte(path[:i], '/')+1 : i]
	}
	if help := placeHelps[before+"/"+name]; help != "" {
		return help
	}
	return placeHelps[name]
}
