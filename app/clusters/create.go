package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
	"loom/solver"
)

// noWorkers is the warning that nothing would run.
const noWorkers = "The tenant has no workers, so nothing would run; ask an administrator to give it some."

// draftCreate does everything for a create that needs no transaction: checks,
// layout, nodes. With lenient, absent provider fields are no error, because they
// may still come. Errors: Invalid with fields or missing provider fields,
// NotFound for template and provider, Exhausted, Unsolvable, Unavailable when
// the search ran out of time.
func (u *Clusters) draftCreate(ctx context.Context, actor loom.Actor, in loom.CreateInput, lenient bool) (*change, *prepared, error) {
	quota, err := u.quotaUse(ctx, actor.Tenant)
	if err != nil {
		return nil, nil, err
	}
	// What is wrong with the request itself comes before what the tenant may
	// have, and that before what the catalog holds.
	if len(in.Validate(u.opts.MaxMachines)) == 0 {
		if err := quota.Check(1, in.Machines); err != nil {
			return nil, nil, err
		}
	}
	p, err := u.prepare(ctx, actor, in)
	if err != nil {
		if isNotFound(err) && len(p.errs) > 0 {
			err = loom.InvalidFields(append(p.errs, loom.AsError(err).Fields...))
		}
		return nil, p, err
	}
	if err := loom.InvalidFields(p.errs); err != nil {
		return nil, p, err
	}
	if err := missingError(p.fields.missing); err != nil && !lenient {
		return nil, p, err
	}
	solving, stop := u.startSearch(ctx, actor.Tenant, u.opts.SolveTime)
	problem, layout, unsat, err := u.solve(solving, p, quota)
	stop()
	if err != nil {
		return nil, p, err
	}
	if unsat != nil {
		return nil, p, &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
	}
	id, err := store.ReserveClusterID(ctx, u.q)
	if err != nil {
		return nil, p, err
	}
	c, err := p.change(actor, id, problem.Hash(), layout)
	if err != nil {
		return nil, p, err
	}
	tenant, err := store.Tenant(ctx, u.q, actor.Tenant)
	if err != nil {
		return nil, p, err
	}
	if tenant.Workers == 0 {
		c.Warnings = append(c.Warnings, noWorkers)
	}
	if err := u.warnOfPlugins(ctx, actor.Tenant, c); err != nil {
		return nil, p, err
	}
	return c, p, nil
}

// Create makes a cluster at once, as a preview that is applied would. It returns
// the operation, which is running when Create returns. Errors: those of Preview,
// and Invalid with the missing provider fields.
func (u *Clusters) Create(ctx context.Context, actor loom.Actor, in loom.CreateInput) (loom.OperationRef, error) {
	if err := actor.MayAtAll(loom.Create); err != nil {
		return loom.OperationRef{}, err
	}
	c, p, err := u.draftCreate(ctx, actor, in, false)
	if err != nil {
		return loom.OperationRef{}, err
	}
	if err := u.makePlan(ctx, actor.Tenant, c); err != nil {
		return loom.OperationRef{}, err
	}
	secrets, err := u.sealCluster(actor.Tenant, c.Cluster, c.Provider, p.fields.sealed)
	if err != nil {
		return loom.OperationRef{}, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
		if err := lockQuota(ctx, tx, actor.Tenant, len(c.After.Nodes)); err != nil {
			return loom.OperationRef{}, err
		}
		return u.insert(ctx, tx, actor, c, secrets, "create")
	})
}

// lockQuota queues the creates of a tenant and checks its quotas for one more
// cluster of so many nodes.
func lockQuota(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, nodes int) error {
	if _, err := store.LockTenant(ctx, tx, tenant); err != nil {
		return err
	}
	// A statement of its own: it sees what was committed while the lock was awaited.
	quota, err := store.QuotaUse(ctx, tx, tenant)
	if err != nil {
		return err
	}
	return quota.Check(1, nodes)
}

// insert stores a drafted cluster with its nodes, secrets and running plan.
func (u *Clusters) insert(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, c *change, secrets map[string][]byte, verb string) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := store.HoldActor(ctx, tx, actor); err != nil {
		return none, err
	}
	if err := actor.May(loom.Create, actor.FromTemplate(c.Template.Name)); err != nil { // a preview may be older than the role
		return none, err
	}
	// A preview may be older than the setting.
	settings, err := store.Settings(ctx, tx, actor.Tenant)
	if err != nil {
		return none, err
	}
	if err := loom.InvalidFields(settings.CheckLease("initialLeaseDuration", c.New.Lease == 0)); err != nil {
		return none, err
	}
	// Nobody deletes it in between.
	if err := store.ShareCatalogName(ctx, tx, actor.Tenant, loom.KindProvider, c.Provider.Name); err != nil {
		return none, err
	}
	present, err := currentProvider(ctx, tx, actor.Tenant, c.Provider.Name)
	if err != nil {
		return none, err
	}
	present = withFields(present, c.Input.Create.ProviderFields)
	if err := c.Building.checkUnchanged(ctx, tx, present); err != nil {
		return none, err
	}
	if err := checkPermitted(ctx, tx, actor.Tenant, present, c.plan); err != nil {
		return none, err
	}
	cluster, err := store.InsertCluster(ctx, tx, actor.Tenant, store.NewCluster{
		Cluster: loom.Cluster{
			ID: c.Cluster, Name: c.Name, Description: c.Input.Create.Description, Owner: actor.Account(), Status: loom.ClusterPending,
			Provider: present, ProviderFields: c.Input.Create.ProviderFields, Template: *c.After.Template, Services: c.After.Services, Types: c.Types, Config: c.After.Config, Labels: c.Input.Create.Labels, DNSSuffix: c.New.Suffix,
		},
		LeaseMillis: c.New.Lease,
	})
	if err != nil {
		return none, err
	}
	if err := store.InsertNodes(ctx, tx, actor.Tenant, cluster.ID, c.After.Nodes); err != nil {
		return none, err
	}
	if err := store.PutSecrets(ctx, tx, actor.Tenant, store.ClusterSecrets(cluster.ID), actor.User, secrets); err != nil {
		return none, err
	}
	request, err := encodeRequest(c.Input)
	if err != nil {
		return none, err
	}
	op, err := store.InsertPlan(ctx, tx, store.NewOperation{
		Tenant: actor.Tenant, Cluster: cluster.ID, Action: loom.ClusterCreate, RequestedBy: actor.User,
		OnFailure: c.OnFailure, Request: request,
	}, c.plan)
	if err != nil {
		return none, err
	}
	if err := store.InsertConfigRevision(ctx, tx, actor.Tenant, op.Ref, actor.User); err != nil {
		return none, err
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok",
		After: map[string]any{
			"name": cluster.Name, "clusterTemplate": c.Template.Name, "provider": c.Provider.Name, "numMachines": len(c.After.Nodes),
			"operationId": op.Ref.String(), "config": c.secrets().Mask(c.After.Config),
		},
	})
	if err != nil {
		return none, err
	}
	return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}

// asConflict turns an error that a change of the catalog or the cluster causes into Conflict, so
// that a caller who did nothing wrong learns that something changed.
func asConflict(err error, format string, args ...any) error {
	if e := loom.AsError(err); e.Kind == loom.Internal || errors.Is(err, loom.Unavailable) {
		return err
	}
	conflict := loom.NewError(loom.Conflict, format, args...)
	conflict.Err = err
	return conflict
}

func showCreate(v *PreviewView, c *change, list *changeList) error {
	v.Input, v.Layout, v.LeaseMillis, v.Price = c.Input.Create, c.New.Layout, c.New.Lease, c.New.Price
	v.Config = c.secrets().Mask(c.After.Config)
	v.After.Clusters++
	v.After.Nodes += len(c.After.Nodes)
	list.wholeNodes("create", c.After.Nodes)
	return nil
}

func summarizeCreate(v *PreviewView) string {
	return fmt.Sprintf("Creates %s, installs %s", count(len(v.Nodes), "node"), count(len(v.Services), "service"))
}

func (u *Clusters) applyCreate(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, c *change, secrets map[string][]byte) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := c.checkVersions(ctx, tx, actor.Tenant); err != nil {
		return none, err
	}
	quota, err := store.QuotaUse(ctx, tx, actor.Tenant)
	if err != nil {
		return none, err
	}
	if err := quota.Check(1, len(c.After.Nodes)); err != nil {
		return none, err
	}
	return u.insert(ctx, tx, actor, c, secrets, "apply")
}

// applyCreateFields takes the provider fields that come with Apply and seals the
// secrets of the new cluster. What the preview fixed cannot be changed.
func (u *Clusters) applyCreateFields(ctx context.Context, actor loom.Actor, c *change, given map[string]any) (map[string][]byte, error) {
	t, err := store.ProviderType(ctx, u.q, c.Provider.Type)
	if err != nil {
		if isNotFound(err) {
			return nil, &stale{[]string{fmt.Sprintf("The provider type “%s” is gone.", c.Provider.Type)}}
		}
		return nil, err
	}
	fields := takeFields(t, c.Provider, nil, given)
	for _, name := range sortedNames(fields.open) {
		if fixed, ok := c.Input.Create.ProviderFields[name]; ok && loom.FieldText(fixed) != loom.FieldText(fields.open[name]) {
			fields.errs = append(fields.errs, loom.FieldError{Field: "providerFields." + name,
				Message: "The preview was made with another value; make a new preview to change it."})
		}
	}
	if err := loom.InvalidFields(fields.errs); err != nil {
		return nil, err
	}
	if again := absentSensitive(t, c.Sensitive, fields.sealed); len(again) > 0 {
		return nil, missingError([]map[string]loom.FieldSchema{again})
	}
	if err := missingError(fields.missing); err != nil {
		return nil, err
	}
	if err := c.Building.checkUnchanged(ctx, u.q, c.Provider); err != nil {
		return nil, err
	}
	c.Provider = withFields(c.Provider, fields.open)
	if c.Input.Create.ProviderFields == nil {
		c.Input.Create.ProviderFields = map[string]any{}
	}
	maps.Copy(c.Input.Create.ProviderFields, fields.open)
	building := newMachineSpec(t, c.Provider)
	c.Building = &building
	return u.sealCluster(actor.Tenant, c.Cluster, c.Provider, fields.sealed)
}

// prepared is a create request with everything that is known before the search
// for a layout. Errs are collected, so that a form shows all of them at once.
type prepared struct {
	in     loom.CreateInput
	view   *catalogView
	fields providerFields
	lease  int64
	config map[string]any
	// pinned is the version of the template that the request names.
	pinned []store.EntryVersion
	// partly says that settings may be missing: a template is tried.
	partly bool
	errs   []loom.FieldError
	// hopeless are those of errs that make the search for a layout pointless.
	hopeless []loom.FieldError
}

// prepare checks a request against the catalog. The error is for errors that are
// not about fields; NotFound about a template or provider comes back as a error
// together with what else is known.
func (u *Clusters) prepare(ctx context.Context, actor loom.Actor, in loom.CreateInput) (*prepared, error) {
	p := &prepared{in: in, errs: in.Validate(u.opts.MaxMachines)}
	p.errs = append(append(p.errs, checkCount(in.Services)...), checkTexts(in)...)
	if in.Template == "" || len(checkTexts(in)) > 0 || len(checkCount(in.Services)) > 0 {
		return p, loom.InvalidFields(p.errs)
	}
	if err := actor.May(loom.Create.Reading(), actor.FromTemplate(in.Template)); err != nil {
		return p, err
	}
	settings, err := store.Settings(ctx, u.q, actor.Tenant)
	if err != nil {
		return p, err
	}
	named, err := u.templateVersion(ctx, actor, p)
	if err != nil {
		return p, err
	}
	cv, err := u.readCatalogWith(ctx, actor.Tenant, in.Template, named, in.Provider)
	if cv != nil {
		p.view = cv
		p.hopeless = append(checkNamed(in.Services, contains(cv.services)), cv.missing(in.Services)...)
		p.errs = append(slices.Clone(p.hopeless), p.errs...)
		p.checkLease(settings)
		p.config = cv.config(in)
		p.checkConfig()
		if in.DNSSuffix == "" {
			p.errs = append(p.errs, loom.CheckDNSSuffix("dnsSuffix", cv.template.Defaults.DNSSuffix)...)
		}
	}
	if err != nil {
		return p, err
	}
	p.fields = takeFields(cv.providerType, cv.provider, nil, in.ProviderFields)
	p.errs = append(p.errs, p.fields.errs...)
	may, err := store.Permits(ctx, u.q, actor.Tenant)
	if err != nil {
		return p, err
	}
	if refusal := may.Refusal("provider", withFields(cv.provider, p.fields.open)); refusal != nil {
		p.errs = append(p.errs, loom.AsError(refusal).Fields...)
	}
	if p.fields.incomplete != "" {
		p.errs = append(p.errs, loom.FieldError{Field: "provider", Message: p.fields.incomplete})
	}
	return p, nil
}

// templateVersion reads the version of a template that a request names, nil where it names none.
// Errors: NotFound about the field; Forbidden for one that is not released.
func (u *Clusters) templateVersion(ctx context.Context, actor loom.Actor, p *prepared) (*loom.Template, error) {
	in := p.in
	if in.TemplateVersion <= 0 {
		return nil, nil
	}
	stored, err := store.CatalogEntry(ctx, u.q, actor.Tenant, loom.KindTemplate, in.Template, in.TemplateVersion)
	if isNotFound(err) {
		return nil, missing("clusterTemplateVersion", "%s", loom.AsError(err).Message)
	}
	if err != nil {
		return nil, err
	}
	if !stored.Released && actor.May(loom.Publish.Reading(), actor.InTenant()) != nil {
		return nil, loom.NewError(loom.Forbidden, "Version %d of the template “%s” is not released. Only administrators can create clusters from it.", in.TemplateVersion, in.Template)
	}
	p.pinned = []store.EntryVersion{{Kind: loom.KindTemplate, Name: in.Template, Version: in.TemplateVersion, Unreleased: !stored.Released}}
	return stored.Entry.(*loom.Template), nil
}

func (p *prepared) checkLease(settings loom.Settings) {
	if p.in.LeaseMillis < loom.TemplateLease {
		return // Validate has said so
	}
	lease, errs := p.view.template.Administration.Lease.Grant(p.in.LeaseMillis)
	if len(errs) == 0 {
		errs = settings.CheckLease("initialLeaseDuration", lease == 0)
	}
	p.lease = lease
	p.errs = append(p.errs, errs...)
}

func (p *prepared) checkConfig() {
	field := "config"
	if p.in.ConfigPatch != nil {
		field = "configPatch"
	}
	if errs := loom.CheckConfigSize(field, p.config); len(errs) > 0 {
		p.errs = append(p.errs, errs...)
		return
	}
	if problems := macro.Validate(p.config); len(problems) > 0 {
		p.errs = append(p.errs, loom.AsError(macro.Error(field, problems)).Fields...)
	}
	// What only its nodes tell is checked with them.
	check := loom.SettingsCheck{Services: p.view.chosen(p.in.Services), Template: &p.view.template}
	p.errs = append(p.errs, check.Check(p.config)...)
}

// input is the question for the solver.
func (u *Clusters) input(p *prepared) solver.Input {
	return solver.Input{
		Template: p.view.template, Provider: p.view.provider.Name, Services: p.in.Services, Machines: p.in.Machines,
		HardwareType: p.in.HardwareType, ImageType: p.in.ImageType, Catalog: p.view.services,
		HardwareTypes: p.view.hardware, ImageTypes: p.view.images, MaxMachines: u.opts.MaxMachines,
		Providers: p.view.providers,
	}
}

// newCluster is what a create works out besides its nodes, services and config.
type newCluster struct {
	// Problem is the hash of the question that Layout answers.
	Problem string      `json:"problem"`
	Layout  loom.Layout `json:"layout"`
	Lease   int64       `json:"lease"`
	Suffix  string      `json:"suffix"`
	// Price of an hour, where all hardware types of the layout name one.
	Price *float64 `json:"price,omitempty"`
}

// change makes the rest of a cluster from its layout; the cluster number is
// filled in by name. Nodes get new ids.
func (p *prepared) change(actor loom.Actor, id loom.ClusterID, problem string, layout loom.Layout) (*change, error) {
	c := p.layoutChange(id, layout)
	cv := p.view
	c.Input.Create.ProviderFields = p.fields.open
	c.Provider = withFields(cv.provider, p.fields.open)
	building := newMachineSpec(cv.providerType, c.Provider)
	c.Building, c.New.Problem, c.New.Lease = &building, problem, p.lease
	c.Sensitive = slices.Sorted(maps.Keys(p.fields.sealed))
	c.OnFailure = cmp.Or(p.in.OnFailure, cv.template.Administration.OnFailure, loom.OnFailureKeep)
	c.After.Config = p.config
	c.price(cv)
	c.warnOfUses(sortedNames(c.After.Services))
	if len(c.After.Nodes) == 1 && len(c.After.Services) > 1 {
		c.warn("One node holds everything: when it fails, every service fails.")
	}
	c.partly = p.partly
	return c, c.checkConfig(actor.User, &cv.template, "config", c.After.Config)
}

// bare is a change with nothing but services and nodes: what a plan is made from.
func (p *prepared) layoutChange(id loom.ClusterID, layout loom.Layout) *change {
	cv := p.view
	c := newChange(PreviewInput{Kind: loom.ChangeCreate, Create: p.in}, kinds[loom.ChangeCreate])
	c.Cluster, c.Name, c.Template, c.After.Template = id, p.in.Name, cv.template.Base, &cv.template
	c.Provider, c.Versions = cv.provider, slices.Clone(cv.used)
	if len(p.pinned) > 0 {
		c.Pinned = p.pinned
		c.Versions = slices.DeleteFunc(c.Versions, func(v store.EntryVersion) bool { return v.Kind == loom.KindTemplate && v.Name == p.in.Template })
	}
	c.New = &newCluster{Layout: layout, Suffix: cmp.Or(p.in.DNSSuffix, cv.template.Defaults.DNSSuffix)}
	c.After.Services = map[string]loom.Service{}
	for _, name := range cv.serviceNames(p.in.Services) {
		service := cv.services[name]
		c.After.Services[name] = service
		c.version(loom.KindService, &service.Base)
	}
	c.makeNodes(cv)
	return c
}

// makeNodes numbers the machines in the order of the layout.
func (c *change) makeNodes(cv *catalogView) {
	number := loom.FirstNodeNumber
	for _, g := range c.New.Layout {
		hardware, image := cv.hardwareType(g.HardwareType), cv.imageType(g.ImageType)
		c.version(loom.KindHardwareType, &hardware.Base)
		c.version(loom.KindImageType, &image.Base)
		size, root := hardware.ProviderMap[c.Provider.Name], image.ProviderMap[c.Provider.Name]
		c.Types.Hardware[hardware.Name], c.Types.Image[image.Name] = size, root
		user := root["sshuser"]
		if user == "" {
			user = loom.DefaultSSHUser
		}
		services := slices.Sorted(slices.Values(g.Services))
		automators := automatorsOf(services, c.After.Services)
		for range g.Count {
			c.After.Nodes = append(c.After.Nodes, loom.Node{
				ID: loom.NodeID(uuid.NewString()), Cluster: c.Cluster, Number: number, Incarnation: 1, State: loom.NodePlanned,
				Hostname:     loom.Hostname(c.Name, c.Cluster, number, c.New.Suffix),
				HardwareType: g.HardwareType, ImageType: g.ImageType, Flavor: size["flavor"], Image: root["image"], SSHUser: user,
				Services: services, Automators: automators,
			})
			number++
		}
	}
}

func properties(nodes []loom.Node) map[loom.NodeID]loom.NodeProperties {
	out := make(map[loom.NodeID]loom.NodeProperties, len(nodes))
	for i := range nodes {
		out[nodes[i].ID] = nodes[i].Properties()
	}
	return out
}

func (c *change) price(cv *catalogView) {
	total := 0.0
	for _, g := range c.New.Layout {
		cost, known := hourCost(cv.hardwareType(g.HardwareType).ProviderMap[c.Provider.Name])
		if !known {
			return
		}
		total += cost * float64(g.Count)
	}
	c.New.Price = &total
}

// hourCost is what a node costs an hour by the settings of its hardware type for a provider.
func hourCost(settings map[string]string) (cost float64, known bool) {
	cost, err := strconv.ParseFloat(settings["cost"], 64)
	return cost, err == nil && cost >= 0 && cost <= 1e9
}

// unexpandedWarnings says of macros of a config that they stay as written, of the first
// macro.MaxProblems each.
func unexpandedWarnings(macros []macro.Problem) []string {
	var warnings []string
	for i, m := range macros {
		if i == macro.MaxProblems {
			return append(warnings, fmt.Sprintf("In the config, %d more macros stay as written.", len(macros)-i))
		}
		warnings = append(warnings, fmt.Sprintf("In the config, %s stays as written: %s.", m.Macro, strings.TrimSuffix(m.Reason, ".")))
	}
	return warnings
}

// solve looks for a layout of a new cluster. What it suggests instead of one keeps
// within the quota as well, which is the tenant's before the cluster is made. Errors
// are those of solver.Solve.
func (u *Clusters) solve(ctx context.Context, p *prepared, quota loom.QuotaUse) (solver.Problem, loom.Layout, *loom.Unsat, error) {
	in := u.input(p)
	problem, layout, unsat, err := solver.Create(ctx, in)
	if unsat == nil {
		return problem, layout, unsat, err
	}
	free := quota.MaxNodes - quota.Nodes
	for _, s := range unsat.Suggestions {
		if max(s.Machines, in.Machines) > free {
			unsat.Suggestions = u.suggestWithinQuota(ctx, p, quota)
			break
		}
	}
	return problem, layout, unsat, err
}

// suggestWithinQuota suggests changes of a request that keep within the quota of nodes; none
// where the request does, or where the tenant may have no further cluster.
func (u *Clusters) suggestWithinQuota(ctx context.Context, p *prepared, quota loom.QuotaUse) []loom.Suggestion {
	in := u.input(p)
	free := quota.MaxNodes - quota.Nodes
	if free < 1 || quota.Clusters >= quota.MaxClusters {
		return nil
	}
	in.MaxMachines = min(in.MaxMachines, free)
	_, _, unsat, err := solver.Create(ctx, in)
	if err != nil || unsat == nil {
		return nil // a search that takes too long helps nobody
	}
	return unsat.Suggestions
}
