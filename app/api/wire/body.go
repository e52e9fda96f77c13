package wire

import "loom/app/loom"

// The bodies of requests as the OpenAPI document has them, and the names of members that
// strict routes know. Functions read them, which take what older clients write and tell absent
// members from null ones; so nothing is stored in these structs.

type withFields struct {
	ProviderFields map[string]string `json:"providerFields"`
}

type withPolicy struct {
	OnFailure string `json:"onFailure" enum:"keep,undo"`
	withFields
}

// ClusterID is the answer of a create.
type ClusterID struct {
	ID string `json:"id" required:"true"`
}

// Started names the operation that a request began.
type Started struct {
	OperationID string `json:"operationId" required:"true"`
}

// Applied says what came of a preview.
type Applied struct {
	ID          string `json:"id" required:"true" description:"The cluster."`
	OperationID string `json:"operationId,omitempty"`
}

// CatalogDocument is a whole catalog.
type CatalogDocument struct {
	Providers        []loom.Provider        `json:"providers"`
	HardwareTypes    []loom.HardwareType    `json:"hardwaretypes"`
	ImageTypes       []loom.ImageType       `json:"imagetypes"`
	Services         []loom.Service         `json:"services"`
	Templates        []loom.Template        `json:"clustertemplates"`
	PartialTemplates []loom.PartialTemplate `json:"partialtemplates"`
}

// ClusterCreate is what ReadCreate reads.
type ClusterCreate struct {
	Name                 string            `json:"name" required:"true"`
	ClusterTemplate      string            `json:"clusterTemplate" required:"true"`
	TemplateVersion      int               `json:"clusterTemplateVersion" description:"The newest released version if left out. Administrators may name an unreleased one."`
	Machines             int               `json:"numMachines" required:"true" description:"At least 1, within the template's size."`
	Description          string            `json:"description"`
	Provider             string            `json:"provider"`
	ProviderFields       map[string]any    `json:"providerFields"`
	Services             []string          `json:"services"`
	HardwareType         string            `json:"hardwaretype"`
	ImageType            string            `json:"imagetype"`
	InitialLeaseDuration int               `json:"initialLeaseDuration" description:"Milliseconds; -1 for the template's, 0 for no expiry."`
	DNSSuffix            string            `json:"dnsSuffix"`
	Config               map[string]any    `json:"config" description:"Replaces the template's."`
	ConfigPatch          map[string]any    `json:"configPatch" description:"Merge patch over the template's config; not with config."`
	Labels               map[string]string `json:"labels"`
	OnFailure            string            `json:"onFailure" enum:"keep,undo"`
}

// Deprecation is what ReadDeprecation reads.
type Deprecation struct {
	Message string `json:"message" required:"true" description:"What the owners of clusters on this version should know, at most 500 characters; empty to undeprecate it."`
}

// ClusterEdit is what ReadEdit reads.
type ClusterEdit struct {
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels"`
	Protected   bool              `json:"protected"`
	OwnerID     string            `json:"ownerId" description:"A user of the tenant; for administrators."`
	// Repair is null for what the template says.
	Repair *loom.RepairPolicy `json:"repair" nullable:"true" description:"What Loom may repair by itself, in place of what the template says; null: the template's. For do, the template or an administrator."`
}

// ExpiryChange is what ReadExpiry reads.
type ExpiryChange struct {
	ExpireTime int64 `json:"expireTime" required:"true" nullable:"true" description:"Milliseconds since 1970; null for never."`
}

// OperationRequest is what ReadOperation reads.
type OperationRequest struct {
	withFields
}

// ClusterDelete is what ReadDelete reads.
type ClusterDelete struct {
	Abort   bool `json:"abort" description:"Abort a running operation first; the delete begins when that has ended."`
	Abandon bool `json:"abandon" description:"Stop tracking leftover machines and terminate the cluster at once; administrators only."`
	withFields
}

// Configure is what ReadChange reads for its kind.
type Configure struct {
	Config      map[string]any `json:"config" description:"Replaces the whole config."`
	ConfigPatch map[string]any `json:"configPatch" description:"Merge patch (RFC 7386) over the present config."`
	Revision    int            `json:"revision" description:"A config that the cluster has had."`
	Restart     bool           `json:"restart" description:"Stop services before and start them afterwards; true when left out."`
	withFields
}

// ServicesAdd is what ReadChange reads for its kind.
type ServicesAdd struct {
	Services []string `json:"services" required:"true"`
	withPolicy
}

// Expand is what ReadChange reads for its kind.
type Expand struct {
	Machines int `json:"numMachines" required:"true" description:"The new total."`
	withPolicy
}

// Shrink is what ReadChange reads for its kind.
type Shrink struct {
	Machines int      `json:"numMachines" description:"The new total."`
	Dead     []string `json:"dead" description:"Those of nodes whose machines do not answer: nothing is drained or stopped there."`
	Nodes    []string `json:"nodes" description:"Ids of the nodes to remove."`
	withPolicy
}

// Upgrade is what ReadChange reads for its kind.
type Upgrade struct {
	Services   []string `json:"services"`
	Batch      int      `json:"batch" description:"How many nodes at a time." minimum:"1"`
	MinHealthy int      `json:"minHealthy" description:"How many nodes of each service must be up at any time; all but one batch if left out." minimum:"0"`
	withPolicy
}

// Update is what ReadChange reads for an update.
type Update struct {
	Entries []struct {
		Kind    string `json:"kind" required:"true" enum:"clustertemplates,partialtemplates,services,hardwaretypes,imagetypes"`
		Name    string `json:"name" required:"true"`
		Version int    `json:"version" description:"The newest when left out."`
	} `json:"entries" description:"All that the cluster is made of when left out."`
	Batch      int `json:"batch" description:"How many nodes at a time." minimum:"1"`
	MinHealthy int `json:"minHealthy" description:"How many nodes of each service must be up at any time; all but one batch if left out." minimum:"0"`
	withPolicy
}

// Resize is what ReadChange reads for its kind.
type Resize struct {
	HardwareType string   `json:"hardwaretype" required:"true"`
	Services     []string `json:"services"`
	Batch        int      `json:"batch" description:"How many nodes at a time." minimum:"1"`
	MinHealthy   int      `json:"minHealthy" description:"How many nodes of each service must be up at any time; all but one batch if left out." minimum:"0"`
	withPolicy
}

// Repair is what ReadChange reads for its kind.
type Repair struct {
	Dead     []string `json:"dead" description:"Those of nodes whose machines do not answer: nothing is drained or stopped there."`
	Nodes    []string `json:"nodes" required:"true" description:"Ids of the nodes to repair."`
	How      string   `json:"how" enum:"restart,configure,reboot,replace" description:"replace, the default: another machine takes the place of the present one. The others keep the machine: restart stops and starts services, configure configures them as well, which puts back files, reboot starts or restarts the machine and starts the services."`
	Services []string `json:"services" description:"With restart and configure: the services, each on at least one of the nodes; those that should run when left out."`
	withPolicy
}

// Retry is what ReadChange reads for its kind.
type Retry struct {
	Services       []string       `json:"services" description:"Services that come in their newest version."`
	ConfigPatch    map[string]any `json:"configPatch" description:"A merge patch (RFC 7386) over the config of the cluster."`
	RemoveServices []string       `json:"removeServices" description:"Services that are taken off the cluster."`
	Skip           []int          `json:"skip" description:"Numbers of tasks to skip; for administrators, with a reason."`
	Reason         string         `json:"reason"`
	OnFailure      string         `json:"onFailure" description:"That of the operation retried when left out." enum:"keep,undo"`
	withFields
}

// Skip is what ReadSkip reads.
type Skip struct {
	Reason string `json:"reason" required:"true"`
}

// NodeWrite is what ReadNode reads.
type NodeWrite struct {
	ID         string `json:"id" required:"true" description:"A UUID."`
	ClusterID  string `json:"clusterId" required:"true"`
	Services   []any  `json:"services" description:"Names, or whole services." schema:"{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}}"`
	Properties struct {
		Hostname     string            `json:"hostname"`
		Addresses    map[string]string `json:"ipaddresses"`
		Number       int               `json:"nodenum"`
		HardwareType string            `json:"hardwaretype"`
		ImageType    string            `json:"imagetype"`
		Flavor       string            `json:"flavor"`
		Image        string            `json:"image"`
		SSHUser      string            `json:"sshuser"`
		Services     []string          `json:"services"`
		Automators   []string          `json:"automators"`
	} `json:"properties"`
	Actions            []map[string]any `json:"actions" description:"Not read: history is what happened."`
	ProvisionerResults map[string]any   `json:"provisionerResults" description:"Can be repeated, not changed."`
}

// NodeQueryBody is what ReadNodeQuery reads.
type NodeQueryBody struct {
	ClusterID  string   `json:"clusterId" required:"true"`
	Properties []string `json:"properties" description:"Names of facts; all when left out."`
	Services   []string `json:"services" description:"Only nodes that have all of these."`
}

// PreviewRequest is what ReadPreview reads.
type PreviewRequest struct {
	Kind      string `json:"kind" required:"true" enum:"create,configure,add_services,remove_services,start,stop,restart,expand,shrink,upgrade,update,resize,repair,rollback,retry,authorize,sync,delete"`
	ClusterID string `json:"clusterId"`
	Request   struct {
		Operation int `json:"operation" description:"Number of the operation to roll back, or to retry, which can only be the latest and may be left out; for other kinds it means nothing."`
	} `json:"request" description:"The body of the call that would do it at once: for create that of POST /v2/clusters. For rollback and retry it names the operation as well."`
	Service string `json:"service" description:"The one service to start, stop or restart; all when left out."`
}

// PreviewApply is what ReadApply reads.
type PreviewApply struct {
	Hash           string         `json:"hash" required:"true"`
	ProviderFields map[string]any `json:"providerFields"`
}

// TokenCreate is what ReadToken reads.
type TokenCreate struct {
	Name    string   `json:"name" required:"true"`
	Scopes  []string `json:"scopes" required:"true" enum:"read,clusters:write,catalog:write,admin"`
	Expires int      `json:"expires" nullable:"true" description:"Milliseconds since 1970; null for as long as the tenant allows."`
}

// TenantWrite is what ReadTenant reads.
type TenantWrite struct {
	Tenant    TenantFields `json:"tenant" required:"true"`
	Bootstrap bool         `json:"bootstrap"`
}

// HookWrite is what ReadHook reads.
type HookWrite struct {
	Name       string   `json:"name" required:"true"`
	URL        string   `json:"url" required:"true" description:"http or https; private networks only where the installation allows them."`
	Events     []string `json:"events" description:"Left out: all." enum:"start,success,failure"`
	Actions    []string `json:"actions" description:"Cluster actions; empty: all."`
	Templates  []string `json:"templates" description:"Names of cluster templates; empty: all."`
	Secret     string   `json:"secret" description:"16 to 200 characters that sign deliveries. Without it a new hook gets a generated one and an existing hook keeps its own."`
	Blocking   bool     `json:"blocking" description:"An operation starts only when the hook agrees: 2xx go, 409 refuses."`
	OnTimeout  string   `json:"onTimeout" enum:"go,refuse"`
	Global     bool     `json:"global" description:"All tenants; for superadmins."`
	LegacyBody bool     `json:"legacyBody" description:"The predecessor's body."`
	Enabled    bool     `json:"enabled"`
}

// GroupWrite is what ReadGroup reads.
type GroupWrite struct {
	Name        string `json:"name" description:"1–100 characters."`
	Description string `json:"description" nullable:"true"`
}

// BindingWrite is what ReadBinding reads.
type BindingWrite struct {
	User     string `json:"user" description:"Id of a user; or name a group."`
	Group    string `json:"group" description:"Id of a group."`
	Role     string `json:"role" required:"true" enum:"reader,user,operator,publisher,admin"`
	Template string `json:"template" description:"Name of a template, for the clusters made from it."`
	Cluster  string `json:"cluster" description:"Id of a cluster. Without template and cluster the role holds in all of the tenant."`
}

// ShareWrite is what ReadShare reads.
type ShareWrite struct {
	User  string `json:"user" description:"Id of a user; or name a group."`
	Group string `json:"group" description:"Id of a group that one belongs to."`
	Role  string `json:"role" required:"true" enum:"reader,operator,admin"`
}

// IdentityProviderWrite is what ReadIdentityProvider reads.
type IdentityProviderWrite struct {
	Name         string `json:"name" description:"1–60 characters, on the sign-in page."`
	Issuer       string `json:"issuer" description:"URL, exactly as the provider has it in its tokens."`
	ClientID     string `json:"clientId" description:"Loom's id at the provider."`
	ClientSecret string `json:"clientSecret" description:"Never answered."`
	UserClaim    string `json:"userClaim" description:"The claim that names new users; preferred_username by default."`
	SubjectClaim string `json:"subjectClaim" enum:"sub,oid" description:"The claim that identifies a person; sub by default."`
	MaxAgeDays   int    `json:"maxAgeDays" minimum:"1" maximum:"365" description:"How many days API tokens of users without a password work after a sign-in; 30 by default."`
	Enabled      bool   `json:"enabled" description:"true by default."`
}

// IdentityRulesWrite is what ReadIdentityRules reads.
type IdentityRulesWrite struct {
	Rules []IdentityRule `json:"rules" required:"true" description:"At most 200, with 1–5 conditions each."`
	Hash  string         `json:"hash" description:"That of the preview; needed to replace the rules."`
}

// UserCreate is what ReadUser reads.
type UserCreate struct {
	ID          string   `json:"id" required:"true"`
	Role        string   `json:"role" enum:"user,admin,none"`
	DisplayName string   `json:"displayName"`
	Email       string   `json:"email"`
	Password    string   `json:"password" description:"Generated when left out." minLength:"10" maxLength:"200"`
	SSHKeys     []string `json:"sshKeys" description:"Public keys, one line of authorized_keys each."`
}

// UserEdit is what ReadUserChange reads.
type UserEdit struct {
	DisplayName string   `json:"displayName" nullable:"true"`
	Email       string   `json:"email" nullable:"true"`
	SSHKeys     []string `json:"sshKeys" nullable:"true" description:"Public keys, one line of authorized_keys each."`
	Role        string   `json:"role" enum:"user,admin,none"`
	Disabled    bool     `json:"disabled"`
	Password    string   `json:"password" minLength:"10" maxLength:"200"`
	OldPassword string   `json:"oldPassword" description:"Needed to change one's own password."`
	EndTokens   bool     `json:"endTokens" description:"Revoke the API tokens of the user with the new password, that of the request included."`
}

// SettingsEdit is what ReadSettings reads.
type SettingsEdit struct {
	LeaseReminderHours []int  `json:"leaseReminderHours" items:"{\"minimum\":1,\"maximum\":8760}"`
	LeaseGraceHours    int    `json:"leaseGraceHours" minimum:"0" maximum:"8760"`
	MaxTokenDays       int    `json:"maxTokenDays" nullable:"true" description:"null: no maximum."`
	RequireLease       bool   `json:"requireLease" description:"Every cluster needs an expiry."`
	LocalSignIn        string `json:"localSignIn" enum:"everyone,builtin" description:"Who signs in with a password: everyone, or the built-in administrator alone."`
	AutomaticRepairs   bool   `json:"automaticRepairs" description:"Loom repairs by itself what the repair policies of clusters let it."`
	RepairsPerDay      int    `json:"repairsPerDay" minimum:"0" maximum:"1000" description:"How many repairs Loom begins by itself in 24 hours."`
}

// TenantFields are those of a tenant that a request may set.
type TenantFields struct {
	Name             string   `json:"name" required:"true"`
	Description      string   `json:"description"`
	Workers          int      `json:"workers"`
	WorkersFrom      string   `json:"workersFrom" description:"Another tenant by name: workers that are not free are taken from it; 409 where it has too few or runs more tasks than it would keep workers."`
	MaxClusters      int      `json:"maxClusters"`
	MaxNodes         int      `json:"maxNodes"`
	PrivateNetworks  bool     `json:"privateNetworks" description:"Providers and their machines may be in private networks; left out, no for a new tenant."`
	InstanceRoles    bool     `json:"instanceRoles" description:"Providers may use the role of the host of a provisioner; left out, no for a new tenant."`
	ProviderTypesOff []string `json:"providerTypesOff" description:"Provider types that nothing new is made with; left out, static for a new tenant."`
}
