package schema

import (
	"encoding/json"
	"reflect"

	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
)

// bodies are the schemas by name. Clients generate code from the names.
var bodies = map[string]body{
	"Finding":          {value: wire.Finding{}},
	"Fix":              {value: wire.Fix{}, request: true},
	"Fixed":            {value: wire.Fixed{}},
	"FixedEntry":       {value: wire.FixedEntry{}},
	"Use":              {value: wire.Use{}},
	"Difference":       {value: wire.Difference{}},
	"EntryName":        {value: catalog.EntryName{}},
	"InvalidEntry":     {value: catalog.InvalidEntry{}},
	"ImportReport":     {value: wire.ImportReport{}},
	"CatalogDocument":  {value: wire.CatalogDocument{}, request: true, description: "The newest version of every entry. In an import a missing kind is an empty one; without any kind a document can only be merged."},
	"Problem":          {value: httpx.Problem{}, description: "RFC 9457"},
	"MissingField":     {value: httpx.MissingField{}},
	"Base":             {value: loom.Base{}},
	"Progress":         {value: wire.Progress{}},
	"ClusterSummary":   {value: wire.ClusterSummary{}},
	"Link":             {value: loom.Link{}},
	"Cluster":          {value: wire.Cluster{}},
	"ClusterStatus":    {value: wire.ClusterStatus{}},
	"Health":           {value: wire.Health{}},
	"ClusterHealth":    {value: wire.ClusterHealth{}},
	"NodeLoad":         {value: wire.NodeLoad{}},
	"NodeHealth":       {value: wire.NodeHealth{}},
	"ServiceHealth":    {value: wire.ServiceHealth{}},
	"Check":            {value: wire.Check{}, request: true, open: true},
	"Checking":         {value: wire.Checking{}},
	"Journal":          {value: wire.Journal{}},
	"Incident":         {value: wire.Incident{}},
	"Maintenance":      {value: wire.Maintenance{}},
	"MaintenanceBegin": {value: wire.MaintenanceBegin{}, request: true, open: true},
	"MaintenanceEnd":   {value: wire.MaintenanceEnd{}, request: true, open: true},
	"ClusterID":        {value: wire.ClusterID{}},
	"ClusterCreate":    {value: wire.ClusterCreate{}, request: true, open: true},
	"ClusterEdit":      {value: wire.ClusterEdit{}, request: true, open: true},
	"ExpiryChange":     {value: wire.ExpiryChange{}, request: true, open: true},
	"OperationRequest": {value: wire.OperationRequest{}, request: true, open: true},
	"ClusterDelete":    {value: wire.ClusterDelete{}, request: true, open: true},
	"Configure":        {value: wire.Configure{}, request: true, open: true, description: "Exactly one of config, configPatch and revision."},
	"ConfigRevision":   {value: wire.ConfigRevision{}},
	"ServicesAdd":      {value: wire.ServicesAdd{}, request: true, open: true},
	"Expand":           {value: wire.Expand{}, request: true, open: true},
	"Shrink":           {value: wire.Shrink{}, request: true, open: true, description: "One of numMachines and nodes."},
	"Upgrade":          {value: wire.Upgrade{}, request: true, open: true},
	"Update":           {value: wire.Update{}, request: true, open: true},
	"Resize":           {value: wire.Resize{}, request: true, open: true},
	"Repair":           {value: wire.Repair{}, request: true, open: true},
	"Retry":            {value: wire.Retry{}, request: true, open: true},
	"Deprecation":      {value: wire.Deprecation{}, request: true, open: true},
	"Skip":             {value: wire.Skip{}, request: true, open: true},
	"Started":          {value: wire.Started{}},
	"NodeProperties":   {value: loom.NodeProperties{}},
	"NodeAction":       {value: wire.NodeAction{}},
	"Node":             {value: wire.Node{}},
	"Revealed":         {value: wire.Revealed{}},
	"Operation":        {value: wire.Operation{}},
	"Task":             {value: wire.Task{}},
	"Attempt":          {value: wire.Attempt{}},
	"Line":             {value: wire.Line{}},
	"Plan":             {value: wire.Plan{}},
	"NodeWrite":        {value: wire.NodeWrite{}, request: true, open: true},
	"NodeQuery":        {value: wire.NodeQueryBody{}, request: true, open: true},
	"Provisioner":      {value: wire.Provisioner{}},
	"Process":          {value: wire.Process{}},
	"Queue":            {value: wire.Queue{}},
	"Usage":            {value: wire.Usage{}},
	"PreviewRequest":   {value: wire.PreviewRequest{}, request: true, open: true},
	"FleetRequest":     {value: wire.FleetRequest{}, request: true, open: true},
	"FleetPreview":     {value: wire.FleetPreview{}},
	"FleetGroup":       {value: wire.FleetGroup{}},
	"FleetMember":      {value: wire.FleetMember{}},
	"RolloutRequest":   {value: wire.RolloutRequest{}, request: true, open: true},
	"RolloutSettings":  {value: wire.RolloutSettings{}, request: true, open: true},
	"Wave":             {value: loom.Wave{}, request: true, open: true, description: "One of count, percent, q, clusters and rest."},
	"Window":           {value: loom.Window{}, request: true, open: true},
	"RolloutStart":     {value: wire.RolloutStart{}, request: true, open: true},
	"Rollout":          {value: wire.Rollout{}},
	"RolloutWave":      {value: wire.RolloutWave{}},
	"RolloutCluster":   {value: wire.RolloutCluster{}},
	"EntryVersion":     {value: wire.EntryVersion{}},
	"PreviewApply":     {value: wire.PreviewApply{}, request: true, open: true},
	"Applied":          {value: wire.Applied{}},
	"Preview":          {value: wire.Preview{}},
	"Change":           {value: wire.Change{}},
	"Provider":         {value: loom.Provider{}, request: true, open: true},
	"HardwareType":     {value: loom.HardwareType{}, request: true, open: true},
	"ImageType":        {value: loom.ImageType{}, request: true, open: true},
	"Service":          {value: loom.Service{}, request: true, open: true},
	"Template":         {value: loom.Template{}, request: true, open: true},
	"PartialTemplate":  {value: loom.PartialTemplate{}, request: true, open: true},
	"PluginType":       {value: loom.PluginType{}, request: true, open: true},
	"Resource":         {value: wire.Resource{}},
	"ResourceName":     {value: wire.ResourceName{}},
	"VersionInfo":      {value: wire.VersionInfo{}},
	"User":             {value: wire.User{}},
	"Whoami":           {value: wire.Whoami{}},
	"AuditEntry":       {value: wire.AuditEntry{}},
	"Token":            {value: wire.Token{}},
	"TokenCreate":      {value: wire.TokenCreate{}, request: true},
	"Tenant":           {value: wire.Tenant{}},
	"TenantWrite":      {value: wire.TenantWrite{}, request: true, open: true},
	"Hook":             {value: wire.Hook{}},
	"HookWrite":        {value: wire.HookWrite{}, request: true, open: true},
	"Delivery":         {value: wire.Delivery{}},
	"Session":          {value: wire.Session{}},
	"UserCreate":       {value: wire.UserCreate{}, request: true},
	"UserEdit":         {value: wire.UserEdit{}, request: true, description: "Absent fields keep their values."},
	"Settings":         {value: loom.Settings{}},
	"SettingsEdit":     {value: wire.SettingsEdit{}, request: true, description: "Absent fields keep their values."},
	"Probe":            {value: wire.Probe{}},
	"Orphan":           {value: wire.Orphan{}},
	"Sweep":            {value: wire.Sweep{}},
	"LeftBehind":       {value: wire.LeftBehind{}},
	"QueueState":       {value: wire.QueueState{}},
	"RiverJob":         {value: wire.RiverJob{}},
	"TenantCluster":    {value: wire.TenantCluster{}},
	"TenantNode":       {value: wire.TenantNode{}},
}

// mapped are types whose schema is that of another one.
var mapped = map[reflect.Type]any{
	reflect.TypeFor[json.Number]():   int(0),
	reflect.TypeFor[wire.Template](): loom.Template{},
	reflect.TypeFor[map[string]loom.FieldGroup](): struct {
		Admin loom.FieldGroup `json:"admin"`
		User  loom.FieldGroup `json:"user"`
	}{},
}

// enums are the values of types that have few.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[loom.ClusterStatus]():   values(loom.ClusterStatuses...),
	reflect.TypeFor[loom.TaskStatus]():      values(loom.TaskStatuses...),
	reflect.TypeFor[loom.HookEvent]():       values(loom.HookEvents...),
	reflect.TypeFor[loom.DeliveryStatus]():  values(loom.DeliveryStatuses...),
	reflect.TypeFor[loom.ChangeKind]():      values(loom.PreviewKinds...),
	reflect.TypeFor[loom.Scope]():           values(loom.Scopes...),
	reflect.TypeFor[loom.FindingSeverity](): values(loom.FindingSeverities...),
	reflect.TypeFor[loom.FindingFix]():      values(loom.FindingFixes...),
	reflect.TypeFor[loom.FindingCode](): values(loom.FindingDangling, loom.FindingCycle, loom.FindingUnsolvable, loom.FindingMacro, loom.FindingParameter, loom.FindingNoMapping,
		loom.FindingIncomplete, loom.FindingImmutable, loom.FindingPointless, loom.FindingInsecure, loom.FindingUnchecked, loom.FindingMore),
	reflect.TypeFor[loom.OperationStatus](): values(loom.OperationNotSubmitted, loom.OperationRunning, loom.OperationPaused, loom.OperationFailing, loom.OperationRollingBack,
		loom.OperationComplete, loom.OperationFailed, loom.OperationAborted, loom.OperationRolledBack),
	reflect.TypeFor[loom.AttemptStatus]():  values(loom.AttemptRunning, loom.AttemptComplete, loom.AttemptFailed, loom.AttemptInterrupted, loom.AttemptAborted),
	reflect.TypeFor[loom.NodeState]():      values(loom.NodePlanned, loom.NodeCreating, loom.NodeReady, loom.NodeFailed, loom.NodeDeleting, loom.NodeDeleted),
	reflect.TypeFor[loom.ServiceState]():   values(loom.ServiceAbsent, loom.ServiceInstalled, loom.ServiceStarted, loom.ServiceStopped, loom.ServiceFailed),
	reflect.TypeFor[loom.ResourceStatus](): values(loom.ResourceInactive, loom.ResourceActive, loom.ResourceStaged, loom.ResourceRecalled),
	reflect.TypeFor[loom.FieldRole]():      values(loom.RoleBuild, loom.RoleAccess, loom.RolePlace),
	reflect.TypeFor[loom.Role]():           values(loom.RoleUser, loom.RoleAdmin, loom.RoleSuperadmin),
	reflect.TypeFor[catalog.Sign]():        values(catalog.SignAdded, catalog.SignChanged, catalog.SignRemoved),
}

func values[T any](of ...T) []any {
	out := make([]any, len(of))
	for i, v := range of {
		out[i] = v
	}
	return out
}
