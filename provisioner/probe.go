package provisioner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"loom/app/loom"
	"loom/provisioner/provider"
)

const (
	// ListLimit is how long it may take to list its machines.
	ListLimit = 10 * time.Minute
)

// Probe asks a provider whether it works as it is set up, or with call.Ask whether it
// has that size or image. What hinders it is in the checks; no secret of call is in any text,
// and what a provider says is bounded. The checks of a provider that does not end in time are
// those that it told. An error is the cause with which ctx ended.
func (r *Runner) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	limited, cancel := context.WithTimeoutCause(ctx, loom.ProbeLimit, errTimedOut)
	defer cancel()
	clean := cleaner{NewRedactor(call.Sensitive...)}
	var mu sync.Mutex
	var told []loom.ProbeCheck
	over, next := false, call.Told
	call = r.reaching(call)
	call.Told = func(c loom.ProbeCheck) {
		mu.Lock()
		defer mu.Unlock()
		if over || len(told) == loom.MaxProbeChecks {
			return
		}
		c = clean.check(c)
		told = append(told, c)
		if next != nil {
			next(c)
		}
	}
	type answer struct {
		probe loom.Probe
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		probe, err := r.probe(limited, call, clean.Redactor)
		answered <- answer{probe, err}
	}()
	var got answer
	select {
	case got = <-answered:
	case <-limited.Done():
		select { // it may say more of why
		case got = <-answered:
		case <-time.After(time.Second):
		}
	}
	mu.Lock()
	over = true
	mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return loom.Probe{}, context.Cause(ctx)
	case limited.Err() != nil:
		got.probe = loom.Probe{Checks: told}
		if _, failed := got.probe.Failed(); !failed {
			got.probe.Checks = append(got.probe.Checks, loom.ProbeCheck{Name: "time", Message: fmt.Sprintf("The provider did not answer within %s; look whether its API can be reached from the provisioner.", loom.ProbeLimit)})
		}
	case got.err != nil:
		got.probe = loom.FailedProbe("probe", "The provisioner could not ask the provider: "+said(got.err))
	}
	return clean.probe(got.probe), nil
}

func (r *Runner) probe(ctx context.Context, call *loom.ProviderCall, redactor *Redactor) (loom.Probe, error) {
	p, ok := r.Providers.Get(call.Provider.Type)
	if !ok {
		return loom.FailedProbe("plugin", r.Providers.Missing(call.Provider.Type)), nil
	}
	prober, ok := p.(provider.Prober)
	if !ok {
		return loom.FailedProbe("probe", fmt.Sprintf("The plugin “%s” cannot say whether it works; make a small cluster to find out.", call.Provider.Type)), nil
	}
	ctx, release, err := r.ask(ctx, call, redactor)
	if err != nil {
		return loom.Probe{}, err
	}
	defer release()
	if call.Ask.Kind != "" {
		return guarded(r, call, func() (loom.Probe, error) { return verify(ctx, prober, call) })
	}
	probe, err := guarded(r, call, func() (loom.Probe, error) { return prober.Probe(ctx, call) })
	// Last: what the fields can be set to is known by then.
	if absent := p.Type().Parameters["admin"].Missing(call.Provider.Fields); err == nil && ctx.Err() == nil && probe.OK && len(absent) > 0 {
		probe.Check("settings", false, "The provider is incomplete: set "+labels(absent[0])+".")
	}
	return probe, err
}

// Machines lists the machines of a provider that carry Loom's labels. listed is
// false for a type that cannot list them, or whose plugin is not here: then
// nothing is known. Errors hold no secret of call.
func (r *Runner) Machines(ctx context.Context, call *loom.ProviderCall) (machines []loom.TaggedMachine, listed bool, err error) {
	p, _ := r.Providers.Get(call.Provider.Type)
	lister, ok := p.(provider.Lister)
	if !ok {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ListLimit, errTimedOut)
	defer cancel()
	redactor := NewRedactor(call.Sensitive...)
	call = r.reaching(call)
	ctx, release, err := r.ask(ctx, call, redactor)
	if err != nil {
		return nil, false, hush(redactor, err)
	}
	defer release()
	machines, err = guarded(r, call, func() ([]loom.TaggedMachine, error) { return lister.List(ctx, call) })
	if err != nil {
		return nil, false, hush(redactor, err)
	}
	for i, m := range machines {
		if machines[i], err = (cleaner{redactor}).machine(m); err != nil {
			return nil, false, err
		}
	}
	return machines, true, nil
}

// Remove deletes a machine that no node claims, as the DELETE task of its node
// would have; with alone, nothing but the machine of m's id. Errors of kind loom.Unavailable say why it could not, without
// secrets; others are those of ctx and of this process.
func (r *Runner) Remove(ctx context.Context, call *loom.ProviderCall, m loom.TaggedMachine, alone bool) error {
	spec := &loom.TaskSpec{
		Tenant: call.Tenant, Action: loom.ActionDelete, Attempt: 1, Deadline: time.Now().Add(loom.DefaultTaskLimit(loom.ActionDelete)),
		IdempotencyKey: m.Key, Alone: alone, Node: m.Node, Hostname: m.Name, Provider: call.Provider,
		Results: map[string]any{}, ResourceSet: call.ResourceSet, Sensitive: call.Sensitive, PrivateKey: call.PrivateKey, Reach: call.Reach,
	}
	maps.Copy(spec.Results, call.Facts)
	spec.Results["providerid"] = m.ID
	if cluster, ok := loom.ParseClusterID(m.Cluster); ok {
		spec.Ref.Operation.Cluster = cluster
	}
	result := r.Run(ctx, spec, silent{})
	switch {
	case result.Status == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return loom.NewError(loom.Unavailable, "%s", strings.TrimSuffix(result.Message, ".")+".")
}

// reaching is a call with what the installation says of what may be connected to.
func (r *Runner) reaching(call *loom.ProviderCall) *loom.ProviderCall {
	given := *call
	given.Reach = r.reach(call.Reach)
	return &given
}

// ask lends a provider what it may need to be asked outside of a task.
func (r *Runner) ask(ctx context.Context, call *loom.ProviderCall, redactor *Redactor) (context.Context, func(), error) {
	set, release := "", func() {}
	if r.Cache != nil && call.ResourceSet > 0 {
		dir, _, done, err := r.Cache.Set(ctx, call.Tenant, call.ResourceSet)
		if err != nil {
			return nil, nil, err
		}
		set, release = dir, done
		redactor.Add(secretFiles(set, &loom.TaskSpec{Provider: call.Provider})...)
	}
	return provider.WithEnv(ctx, r.env(call.Provider.Type, set)), release, nil
}

// guarded turns a panic of a plugin into an error; the stack goes to the
// process's log.
func guarded[T any](r *Runner, call *loom.ProviderCall, do func() (T, error)) (result T, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			logger := r.Log
			if logger == nil {
				logger = slog.Default()
			}
			logger.Error("plugin panicked", "tenant_id", call.Tenant, "provider", call.Provider.Name, "stack", string(debug.Stack()))
			err = loom.NewError(loom.Unavailable, "The plugin crashed: %v.", trouble)
		}
	}()
	return do()
}

// hush makes an error without secrets, also for what is logged of it.
func hush(redactor *Redactor, err error) error {
	var e *loom.Error
	if errors.As(err, &e) {
		return loom.NewError(e.Kind, "%s", redactor.Text(e.Message))
	}
	return errors.New(redactor.Text(err.Error()))
}

// said is the part of an error for people.
func said(err error) string {
	var e *loom.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

func labels(fields map[string]loom.FieldSchema) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		names = append(names, "“"+fields[name].Label+"”")
	}
	return strings.Join(names, ", ")
}

// silent drops what a task says.
type silent struct{}

// Log drops the line.
func (silent) Log(string, string) {}

// Fact drops the results: there is no node.
func (silent) Fact(map[string]any) error { return nil }

// verify looks up the one size or image that a call asks for. Providers that cannot do
// that list what they have.
func verify(ctx context.Context, prober provider.Prober, call *loom.ProviderCall) (loom.Probe, error) {
	if v, ok := prober.(provider.Verifier); ok {
		if probe, err := v.Verify(ctx, call); !errors.Is(err, errors.ErrUnsupported) {
			return probe, err
		}
	}
	listed, err := prober.Probe(ctx, call)
	if err != nil {
		return loom.Probe{}, err
	}
	return listedOffer(listed, call.Ask), nil
}

// listedOffer says whether what a probe lists has a size or image.
func listedOffer(listed loom.Probe, ask loom.Offer) loom.Probe {
	name := string(ask.Kind)
	offers := make([]loom.ProbeImage, len(listed.Flavors), len(listed.Flavors)+len(listed.Images))
	for i, f := range listed.Flavors {
		offers[i] = loom.ProbeImage{ID: f.ID, Name: f.Name}
	}
	if ask.Kind == loom.OfferImage {
		offers = listed.Images
	}
	probe := loom.Probe{OK: true}
	for _, o := range offers {
		if o.ID == ask.ID {
			probe.Check(name, true, there(ask, o.Name))
			return probe
		}
	}
	for _, o := range offers {
		if o.Name == ask.ID {
			probe.Check(name, false, fmt.Sprintf("“%s” is what people call it; machines are asked for by id: give %s.", ask.ID, o.ID))
			return probe
		}
	}
	for _, c := range listed.Checks {
		if !c.OK && len(offers) == 0 {
			probe.Check(c.Name, false, c.Message)
			return probe
		}
	}
	if len(offers) == 0 {
		probe.Check(name, false, fmt.Sprintf("The provider lists no %ss, so whether it has this one cannot be said.", ask.Kind.Noun()))
		return probe
	}
	probe.Check(name, false, fmt.Sprintf("It is not among the %d %ss that the provider lists; test the provider and choose one of those it offers.", len(offers), ask.Kind.Noun()))
	return probe
}

// there says that a size or image was found, with its name where that tells more.
func there(ask loom.Offer, name string) string {
	if name == "" || name == ask.ID {
		return "The provider has it."
	}
	return "The provider has it: " + name + "."
}

// cleaner makes an answer fit to be stored and shown: without secrets and control
// characters, and no longer than answers may be. A provider, and even more a cloud, may say
// anything.
type cleaner struct{ *Redactor }

func (c cleaner) text(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, c.Text(strings.ToValidUTF8(text, "")))
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func (c cleaner) check(check loom.ProbeCheck) loom.ProbeCheck {
	check.Name, check.Message = c.text(check.Name, loom.MaxProbeName), c.text(check.Message, loom.MaxProbeMessage)
	check.Millis = max(check.Millis, 0)
	return check
}

// offer gives id and name of what is offered; ok is false for an id that cannot be given
// back to the provider as it is.
func (c cleaner) offer(id, name string) (cleanID, cleanName string, ok bool) {
	cleanID = c.text(id, loom.MaxProbeID)
	return cleanID, c.text(name, loom.MaxProbeMessage), cleanID == id && len(id) <= loom.MaxProbeID && strings.TrimSpace(id) != ""
}

// machine returns what a list says of a machine without what nobody can store or show.
// Addresses come out sorted, so that lists can be compared. An id that cannot be given back
// as it is makes the whole list useless: the machine would seem to be gone.
func (c cleaner) machine(m loom.TaggedMachine) (loom.TaggedMachine, error) {
	if m.ID != plain(m.ID) {
		return m, loom.NewError(loom.Unavailable, "The provider lists a machine with the id %.100q, which Loom cannot store; mend the plugin, or remove that machine.", m.ID)
	}
	clean := loom.TaggedMachine{ID: m.ID, Name: c.text(m.Name, loom.MaxMachineText), Node: loom.NodeID(plain(string(m.Node))), Key: plain(m.Key),
		Cluster: plain(m.Cluster), Tenant: loom.TenantID(plain(string(m.Tenant))), State: m.State,
		Flavor: c.text(m.Flavor, loom.MaxMachineText), Image: c.text(m.Image, loom.MaxMachineText)}
	switch m.State {
	case "", loom.StateRunning, loom.StateStopped:
	default:
		clean.State = loom.StateOther
	}
	for _, text := range m.Addresses {
		if a, err := netip.ParseAddr(text); err == nil && len(clean.Addresses) < loom.MaxMachineAddresses {
			clean.Addresses = append(clean.Addresses, a.WithZone("").String())
		}
	}
	slices.Sort(clean.Addresses)
	clean.Addresses = slices.Compact(clean.Addresses)
	return clean, nil
}

// plain returns a word that a provider gives a machine by, "" for what is none.
func plain(word string) string {
	if len(word) > loom.MaxMachineText || !utf8.ValidString(word) || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return ""
	}
	return word
}

func (c cleaner) probe(p loom.Probe) loom.Probe {
	clean := loom.Probe{Time: p.Time, OK: p.OK && len(p.Checks) > 0}
	for _, check := range p.Checks[:min(len(p.Checks), loom.MaxProbeChecks)] {
		clean.Checks = append(clean.Checks, c.check(check))
	}
	if failed, there := p.Failed(); there { // never left out
		clean.OK = false
		if _, shown := clean.Failed(); !shown {
			clean.Checks[len(clean.Checks)-1] = c.check(failed)
		}
	}
	for _, f := range p.Flavors[:min(len(p.Flavors), loom.MaxProbeOffers)] {
		if id, name, ok := c.offer(f.ID, f.Name); ok {
			clean.Flavors = append(clean.Flavors, loom.ProbeFlavor{ID: id, Name: name, VCPU: f.VCPU, RAM: f.RAM})
		}
	}
	for _, i := range p.Images[:min(len(p.Images), loom.MaxProbeOffers)] {
		if id, name, ok := c.offer(i.ID, i.Name); ok {
			clean.Images = append(clean.Images, loom.ProbeImage{ID: id, Name: name})
		}
	}
	for field, choices := range p.Choices {
		if len(clean.Choices) == loom.MaxProbeFields {
			break
		}
		if _, _, ok := c.offer(field, ""); !ok || len(field) > loom.MaxProbeName {
			continue
		}
		if clean.Choices == nil {
			clean.Choices = map[string][]loom.ProbeChoice{}
		}
		for _, choice := range choices[:min(len(choices), loom.MaxProbeChoices)] {
			if id, name, ok := c.offer(choice.ID, choice.Name); ok {
				clean.Choices[field] = append(clean.Choices[field], loom.ProbeChoice{ID: id, Name: name})
			}
		}
	}
	return clean
}
