package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
	"loom/planner/macro"
	"loom/solver"
)

// prepared is a create request with everything that is known before the search
// for a layout. Errs are collected, so that a form shows all of them at once.
type prepared struct {
	in     loom.CreateInput
	world  *world
	fields providerFields
	lease  int64
	config map[string]any
	errs   []loom.FieldError
	// lost are those of errs that make the search for a layout pointless.
	lost []loom.FieldError
}

// prepare checks a request against the catalog. The error is for trouble that is
// not about fields; NotFound about a template or provider comes back as a error
// together with what else is known.
func (u *Clusters) prepare(ctx context.Context, actor loom.Actor, in loom.CreateInput) (*prepared, error) {
	p := &prepared{in: in, errs: in.Validate(u.opts.MaxMachines)}
	p.errs = append(append(p.errs, checkCount(in.Services)...), checkTexts(in)...)
	if in.Template == "" || len(checkTexts(in)) > 0 || len(checkCount(in.Services)) > 0 {
		return p, loom.InvalidFields(p.errs)
	}
	settings, err := store.Settings(ctx, u.db, actor.Tenant)
	if err != nil {
		return p, err
	}
	w, err := u.readWorld(ctx, actor.Tenant, in.Template, in.Provider)
	if w != nil {
		p.world = w
		p.lost = append(checkNamed(in.Services, has(w.services)), w.lost(in.Services)...)
		p.errs = append(slices.Clone(p.lost), p.errs...)
		p.weighLease(settings)
		p.config = w.config(in)
		p.checkConfig()
		if in.DNSSuffix == "" {
			p.errs = append(p.errs, loom.CheckDNSSuffix("dnsSuffix", w.template.Defaults.DNSSuffix)...)
		}
	}
	if err != nil {
		return p, err
	}
	p.fields = takeFields(w.providerType, w.provider, nil, in.ProviderFields)
	p.errs = append(p.errs, p.fields.errs...)
	may, err := store.Permits(ctx, u.db, actor.Tenant)
	if err != nil {
		return p, err
	}
	if refusal := may.Refusal("provider", withFields(w.provider, p.fields.open)); refusal != nil {
		p.errs = append(p.errs, loom.AsError(refusal).Fields...)
	}
	if p.fields.incomplete != "" {
		p.errs = append(p.errs, loom.FieldError{Field: "provider", Message: p.fields.incomplete})
	}
	return p, nil
}

func (p *prepared) weighLease(settings loom.Settings) {
	if p.in.LeaseMillis < loom.TemplateLease {
		return // Validate has said so
	}
	lease, errs := p.world.template.Administration.Lease.Grant(p.in.LeaseMillis)
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
}

// input is the question for the solver.
func (u *Clusters) input(p *prepared) solver.Input {
	return solver.Input{
		Template: p.world.template, Provider: p.world.provider.Name, Services: p.in.Services, Machines: p.in.Machines,
		HardwareType: p.in.HardwareType, ImageType: p.in.ImageType, Catalog: p.world.services,
		HardwareTypes: p.world.hardware, ImageTypes: p.world.images, MaxMachines: u.opts.MaxMachines,
		Providers: p.world.providers,
	}
}

// draft is a create that could be carried out: the body of a preview. It holds
// copies of all the plan is computed from, and no secret.
type draft struct {
	// Input is the request, its sensitive provider fields left out.
	Input    loom.CreateInput `json:"input"`
	Problem  string           `json:"problem"`
	Layout   loom.Layout      `json:"layout"`
	Cluster  loom.ClusterID   `json:"cluster"`
	Template loom.Template    `json:"template"`
	// Provider is as it is now, with the open fields of the request.
	Provider loom.Provider           `json:"-"`
	Building building                `json:"provider"`
	Services map[string]loom.Service `json:"services"`
	Types    store.TypeSettings      `json:"types"`
	Config   map[string]any          `json:"config"`
	Lease    int64                   `json:"lease"`
	Suffix   string                  `json:"suffix"`
	Nodes    []loom.Node             `json:"nodes"`
	// Versions are the catalog entries that must still be the newest ones.
	Versions []store.EntryVersion `json:"versions"`
	// Sensitive names the sensitive fields that the request brought; they were
	// not stored and must come again.
	Sensitive []string `json:"sensitive"`
	Warnings  []string `json:"warnings"`
	// Price of an hour, where all hardware types of the layout name one.
	Price *float64 `json:"price,omitempty"`
}

// draft makes the rest of a cluster from its layout; the cluster number is
// filled in by name. Nodes get new ids.
func (p *prepared) draft(actor loom.Actor, id loom.ClusterID, problem string, layout loom.Layout) (*draft, error) {
	w := p.world
	d := &draft{
		Input: p.in, Problem: problem, Layout: layout, Cluster: id, Template: w.template,
		Provider: withFields(w.provider, p.fields.open), Services: map[string]loom.Service{}, Config: p.config, Lease: p.lease,
		Types:    store.TypeSettings{Hardware: map[string]map[string]string{}, Image: map[string]map[string]string{}},
		Versions: slices.Clone(w.used), Sensitive: slices.Sorted(maps.Keys(p.fields.sealed)), Warnings: []string{},
	}
	d.Building = newBuilding(w.providerType, d.Provider)
	d.Input.ProviderFields = p.fields.open
	d.Suffix = p.in.DNSSuffix
	if d.Suffix == "" {
		d.Suffix = w.template.Defaults.DNSSuffix
	}
	for _, name := range w.serviceNames(p.in.Services) {
		service := w.services[name]
		d.Services[name] = service
		d.version(loom.KindService, &service.Base)
	}
	d.makeNodes(w)
	d.price(w)
	facts := macro.NewFacts(string(actor.User), properties(d.Nodes))
	problems, stays := macro.Split(facts.Check(d.Config))
	if len(problems) > 0 {
		return nil, macro.Error("config", problems)
	}
	d.warn()
	d.Warnings = append(d.Warnings, staying(stays)...)
	return d, nil
}

func (d *draft) version(kind loom.EntityKind, e *loom.Base) {
	v := store.EntryVersion{Kind: kind, Name: e.Name, Version: e.Version}
	if !slices.Contains(d.Versions, v) {
		d.Versions = append(d.Versions, v)
	}
}

// makeNodes numbers the machines in the order of the layout (planner.md 9).
func (d *draft) makeNodes(w *world) {
	number := loom.FirstNodeNumber
	for _, g := range d.Layout {
		hardware, image := w.hardwareType(g.HardwareType), w.imageType(g.ImageType)
		d.version(loom.KindHardwareType, &hardware.Base)
		d.version(loom.KindImageType, &image.Base)
		size, root := hardware.ProviderMap[d.Provider.Name], image.ProviderMap[d.Provider.Name]
		d.Types.Hardware[hardware.Name], d.Types.Image[image.Name] = size, root
		user := root["sshuser"]
		if user == "" {
			user = loom.DefaultSSHUser
		}
		services := slices.Sorted(slices.Values(g.Services))
		automators := automatorsOf(services, d.Services)
		for range g.Count {
			d.Nodes = append(d.Nodes, loom.Node{
				ID: loom.NodeID(uuid.NewString()), Cluster: d.Cluster, Number: number, Incarnation: 1, State: loom.NodePlanned,
				Hostname:     loom.Hostname(d.Input.Name, d.Cluster, number, d.Suffix),
				HardwareType: g.HardwareType, ImageType: g.ImageType, Flavor: size["flavor"], Image: root["image"], SSHUser: user,
				Services: services, Automators: automators,
			})
			number++
		}
	}
}

// automatorsOf gives the automator types that any action of the services uses.
func automatorsOf(names []string, services map[string]loom.Service) []string {
	used := map[string]bool{}
	for _, name := range names {
		for _, action := range services[name].Provisioner.Actions {
			used[action.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}

func properties(nodes []loom.Node) map[loom.NodeID]loom.NodeProperties {
	out := make(map[loom.NodeID]loom.NodeProperties, len(nodes))
	for i := range nodes {
		out[nodes[i].ID] = nodes[i].Properties()
	}
	return out
}

func (d *draft) price(w *world) {
	total := 0.0
	for _, g := range d.Layout {
		cost, err := strconv.ParseFloat(w.hardwareType(g.HardwareType).ProviderMap[d.Provider.Name]["cost"], 64)
		if err != nil || cost < 0 || cost > 1e9 {
			return
		}
		total += cost * float64(g.Count)
	}
	d.Price = &total
}

// warn lists what a person should know before it happens.
func (d *draft) warn() {
	here := map[string]bool{}
	for name, s := range d.Services {
		here[name] = true
		for _, also := range s.Dependencies.Provides {
			here[also] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Services)) {
		s := d.Services[name]
		uses := append(slices.Clone(s.Dependencies.Install.Uses), s.Dependencies.Runtime.Uses...)
		slices.Sort(uses)
		for _, used := range slices.Compact(uses) {
			if !here[used] {
				d.Warnings = append(d.Warnings, fmt.Sprintf("“%s” can use “%s”, which is not on the cluster.", name, used))
			}
		}
	}
	if len(d.Nodes) == 1 && len(d.Services) > 1 {
		d.Warnings = append(d.Warnings, "One node holds everything: when it fails, every service fails.")
	}
}

// staying says of macros of a config that they stay as written, of the first
// macro.MaxProblems each.
func staying(macros []macro.Problem) []string {
	var warnings []string
	for i, m := range macros {
		if i == macro.MaxProblems {
			return append(warnings, fmt.Sprintf("In the config, %d more macros stay as written.", len(macros)-i))
		}
		warnings = append(warnings, fmt.Sprintf("In the config, %s stays as written: %s.", m.Macro, strings.TrimSuffix(m.Reason, ".")))
	}
	return warnings
}

// plan is pure: the same draft always gives the same plan.
func (d *draft) plan() (loom.Plan, error) {
	return planner.Make(loom.ClusterCreate, d.Nodes, d.Services, planner.Scope{})
}
