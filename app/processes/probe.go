package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// ProbeRun is a probe that was asked for.
type ProbeRun struct {
	ID int64
	// Provider is its name, "" for a draft that has none yet; Draft says that it is not saved.
	Provider string
	Draft    bool
	// Asked is when, Now the time of the database. Started says that a provisioner works it,
	// Ended that Answer is the last word; until then it has the steps so far.
	Asked, Now     time.Time
	Started, Ended bool
	Answer         loom.Probe
}

func probeRunOf(r store.ProviderRequest) ProbeRun {
	return ProbeRun{ID: r.ID, Provider: r.Provider, Draft: r.Purpose == store.PurposeDraft, Asked: r.Asked, Now: r.Now, Started: !r.Started.IsZero(), Ended: !r.Ended.IsZero(), Answer: r.Probe}
}

// Probe asks a provider of the actor's tenant, through a provisioner, whether it
// works as it is set up, and waits for the answer, which is kept until the next.
// A provider that does not work is an answer, not an error. Errors: those of BeginProbe,
// Unavailable when there is no answer in time.
func (f *Processes) Probe(ctx context.Context, actor loom.Actor, provider string) (ProbeRun, error) {
	id, err := f.BeginProbe(ctx, actor, provider)
	if err != nil {
		return ProbeRun{}, err
	}
	r, done, err := f.awaitRequest(ctx, actor.Tenant, id, "the probe")
	if err != nil || done {
		return probeRunOf(r), err
	}
	// Its own answer is gone, since one is newer still.
	return f.LastProbe(ctx, actor, provider)
}

// BeginProbe asks for a probe as Probe does and does not wait: ProbeByID follows it. Errors:
// Forbidden, NotFound for the provider, Unavailable when no provisioner runs, Throttled when
// the tenant has too many probes.
func (f *Processes) BeginProbe(ctx context.Context, actor loom.Actor, provider string) (int64, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return 0, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return 0, err
	}
	return f.insertRequest(ctx, actor.Tenant, store.ProviderRequest{Provider: provider, Purpose: store.PurposeProbe, By: actor.User},
		loom.AuditEntry{Actor: actor, Verb: "probe", Kind: loom.KindProvider.Word(), Object: provider}, nil)
}

// sealedDraft is what is stored of a draft, sealed.
type sealedDraft struct {
	Name, Type string
	Fields     map[string]any
	Secrets    map[string]string
}

func draftField(id int64) string { return "draft:" + strconv.FormatInt(id, 10) }

// BeginDraft is BeginProbe for a provider that is not saved. What it holds is stored sealed
// until the probe has ended. Errors as BeginProbe.
func (f *Processes) BeginDraft(ctx context.Context, actor loom.Actor, d loom.ProviderDraft) (int64, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return 0, err
	}
	if f.opts.Ring == nil {
		return 0, errors.New("seal a draft: this process has no keys")
	}
	body := sealedDraft{Name: d.Provider.Name, Type: d.Provider.Type, Fields: d.Provider.Fields, Secrets: map[string]string{}}
	for field, secret := range d.Secrets {
		body.Secrets[field] = secret.Reveal()
	}
	data, err := json.Marshal(body)
	if err != nil {
		return 0, fmt.Errorf("write down a draft: %w", err)
	}
	return f.insertRequest(ctx, actor.Tenant, store.ProviderRequest{Provider: d.Provider.Name, Purpose: store.PurposeDraft, By: actor.User, Digest: d.Digest},
		loom.AuditEntry{Actor: actor, Verb: "probe", Kind: loom.KindProvider.Word(), Object: d.Provider.Name, After: map[string]any{"providertype": d.Provider.Type, "saved": false}},
		func(id int64) ([]byte, error) {
			return f.opts.Ring.Seal(actor.Tenant, "provider_requests", draftField(id), loom.NewSecret(string(data)))
		})
}

// ProbeByID returns a probe that the actor's tenant asked for, with the steps so far. Drafts are
// shown to whoever asked for them. NotFound, also once there are newer ones.
func (f *Processes) ProbeByID(ctx context.Context, actor loom.Actor, id int64) (ProbeRun, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return ProbeRun{}, err
	}
	r, err := store.RequestByID(ctx, f.db, actor.Tenant, id)
	if err == nil && r.Purpose != store.PurposeProbe && (r.Purpose != store.PurposeDraft || r.By != actor.User) || errors.Is(err, loom.NotFound) {
		return ProbeRun{}, loom.NewError(loom.NotFound, "There is no such test, or newer ones have taken its place. Test the connection again.")
	}
	return probeRunOf(r), err
}

// OpenProbe returns the newest probe of a provider that has no answer yet; ok is false when there
// is none.
func (f *Processes) OpenProbe(ctx context.Context, actor loom.Actor, provider string) (run ProbeRun, ok bool, err error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return ProbeRun{}, false, err
	}
	r, ok, err := store.OpenProbeOf(ctx, f.db, actor.Tenant, provider)
	return probeRunOf(r), ok, err
}

// LastProbe returns the newest answer of a provider. NotFound for the provider, and
// for one that was never probed.
func (f *Processes) LastProbe(ctx context.Context, actor loom.Actor, provider string) (ProbeRun, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return ProbeRun{}, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return ProbeRun{}, err
	}
	r, err := store.NewestProbe(ctx, f.db, actor.Tenant, provider)
	if errors.Is(err, loom.NotFound) {
		return ProbeRun{}, &loom.Error{Kind: loom.NotFound, Message: "This provider was never probed; POST to the same path probes it.", Err: err}
	}
	return probeRunOf(r), err
}

// draftCall is call for a provider that is not saved.
func (f *Processes) draftCall(ctx context.Context, r store.ProviderRequest) (*loom.ProviderCall, loom.Permits, error) {
	sealed, err := store.SealedDraft(ctx, f.db, r.Tenant, r.ID)
	if err != nil {
		return nil, loom.Permits{}, err
	}
	owner, err := store.Tenant(ctx, f.db, r.Tenant)
	if err != nil {
		return nil, loom.Permits{}, err
	}
	if f.opts.Ring == nil {
		return nil, loom.Permits{}, fmt.Errorf("open draft %d: this process has no keys", r.ID)
	}
	plain, err := f.opts.Ring.Open(r.Tenant, "provider_requests", draftField(r.ID), sealed)
	if err != nil {
		return nil, loom.Permits{}, &loom.Error{Kind: loom.Unavailable, Message: "The provisioner cannot decrypt the form; does it have the keys of this installation (LOOM_MASTER_KEY)?", Err: err}
	}
	var d sealedDraft
	if err := json.Unmarshal([]byte(plain.Reveal()), &d); err != nil {
		return nil, loom.Permits{}, fmt.Errorf("read draft %d: %w", r.ID, err)
	}
	c := &loom.ProviderCall{Tenant: r.Tenant, ResourceSet: owner.ResourceSet, Reach: owner.Permits.Reach(),
		Provider: loom.Provider{Base: loom.Base{Name: d.Name}, Type: d.Type, Fields: map[string]any{}}}
	maps.Copy(c.Provider.Fields, d.Fields)
	for field, secret := range d.Secrets {
		c.Provider.Fields[field] = secret
		c.Sensitive = append(c.Sensitive, secret)
	}
	return c, owner.Permits, nil
}

// probeProgress stores what is known of a probe while it goes on; what is slow to be stored holds
// nothing up.
type probeProgress struct {
	mu    sync.Mutex
	known loom.Probe
	over  bool
	more  chan struct{}
	done  chan struct{}
}

func (f *Processes) followProbe(ctx context.Context, process loom.ProcessID, r store.ProviderRequest) *probeProgress {
	s := &probeProgress{more: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for range s.more {
			s.mu.Lock()
			known := s.known
			known.Checks = slices.Clone(known.Checks)
			s.mu.Unlock()
			// That a step is shown late is no reason to give up: the answer has all of them.
			_ = store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
				if err := store.ProgressProbe(ctx, tx, r.Tenant, r.ID, process, known); err != nil || r.Purpose != store.PurposeProbe {
					return err
				}
				return store.InsertEvents(ctx, tx, probed(r.Tenant, r.Provider))
			})
		}
	}()
	return s
}

// add adds a step; what comes after end is dropped.
func (s *probeProgress) add(c loom.ProbeCheck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.known.Checks = append(s.known.Checks, c)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *probeProgress) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	close(s.more)
	<-s.done
}

func probed(tenant loom.TenantID, provider string) loom.Event {
	return loom.Event{Tenant: tenant, Topic: "tenant", IDs: []string{"providers/" + provider}}
}

// probe carries out a probe. What hinders asking at all is its answer.
func (f *Processes) probe(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, asker Asker) error {
	prepare := func() (*loom.ProviderCall, loom.Permits, error) { return f.providerCall(ctx, r.Tenant, r.Provider) }
	if r.Purpose == store.PurposeDraft {
		prepare = func() (*loom.ProviderCall, loom.Permits, error) { return f.draftCall(ctx, r) }
	}
	call, may, err := prepare()
	if err == nil {
		err = may.Refusal("provider", call.Provider)
	}
	var answer loom.Probe
	var known *loom.Error
	switch {
	case errors.As(err, &known):
		answer = loom.FailedProbe("provider", known.Message)
	case err != nil:
		return err
	default:
		call.Ask = r.Offer
		if r.Purpose != store.PurposeVerify {
			told := f.followProbe(ctx, process, r)
			call.Told = told.add
			answer, err = asker.Probe(ctx, call)
			told.end()
		} else {
			answer, err = asker.Probe(ctx, call)
		}
		if err != nil {
			return err
		}
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		held, err := store.EndRequest(ctx, tx, r.Tenant, r.ID, process, &answer, "", false)
		if err != nil || !held {
			return err
		}
		switch r.Purpose { //nolint:exhaustive // the others are no probes
		case store.PurposeVerify:
			return nil // whoever asked waits for it
		case store.PurposeDraft:
			return store.TrimDraftProbes(ctx, tx, r.Tenant)
		}
		if err := store.TrimProbes(ctx, tx, r.Tenant, r.Provider); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, probed(r.Tenant, r.Provider))
	})
}

// probeAge is how long a probe may wait for a provisioner, and be worked.
const probeAge = time.Minute

// endLostProbes ends probes that no provisioner will, and wipes their sealed forms.
func endLostProbes(ctx context.Context, tx *sqlx.Tx) error {
	lost, err := store.LostProbesAllTenants(ctx, tx, probeAge)
	if err != nil {
		return err
	}
	for _, l := range lost {
		text := "No provisioner took the test within a minute. Look at the processes and at the queue “" + jobs.ProbeQueue + "”, then test again."
		if l.Started {
			text = "The provisioner that ran the test has stopped. Test again."
		}
		answer := loom.Probe{Checks: l.Probe.Checks}
		answer.Check("provisioner", false, text)
		answer.OK = false
		if err := store.EndLostProbe(ctx, tx, l.Tenant, l.ID, answer); err != nil {
			return err
		}
		if l.Draft {
			continue
		}
		if err := store.InsertEvents(ctx, tx, probed(l.Tenant, l.Provider)); err != nil {
			return err
		}
	}
	return nil
}

// Offers returns what the providers of the actor's tenant answered when they were
// last asked, by name: the sizes and images that forms suggest. It asks nobody.
func (f *Processes) Offers(ctx context.Context, actor loom.Actor) (map[string]loom.Probe, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.NewestProbes(ctx, f.db, actor.Tenant)
}

// ProbeOutcomes returns how the newest probes of the providers of the actor's tenant went, by
// name. Those never probed are left out.
func (f *Processes) ProbeOutcomes(ctx context.Context, actor loom.Actor) (map[string]store.ProbeOutcome, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	rows, err := store.ProbeOutcomes(ctx, f.db, actor.Tenant)
	found := make(map[string]store.ProbeOutcome, len(rows))
	for _, r := range rows {
		found[r.Provider] = r
	}
	return found, err
}

// maxOfferID is the longest id of a size or an image that is asked for, in bytes.
const maxOfferID = 1000

// Verify asks a provider of the actor's tenant, through a provisioner, whether it has
// one size or image, and waits for the answer, which is kept for a while. That it has
// none is an answer, not an error. Errors: Forbidden, NotFound for the provider,
// Invalid for an id that is empty or too long, Unavailable when there is no answer in
// time.
func (f *Processes) Verify(ctx context.Context, actor loom.Actor, provider string, offer loom.Offer) (loom.Probe, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return loom.Probe{}, err
	}
	if err := checkOffer(offer); err != nil {
		return loom.Probe{}, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return loom.Probe{}, err
	}
	id, err := f.insertRequest(ctx, actor.Tenant, store.ProviderRequest{Provider: provider, Purpose: store.PurposeVerify, Offer: offer, By: actor.User},
		loom.AuditEntry{Actor: actor, Verb: "verify", Kind: loom.KindProvider.Word(), Object: provider, After: offer}, nil)
	if err != nil {
		return loom.Probe{}, err
	}
	if _, _, err := f.awaitRequest(ctx, actor.Tenant, id, "the look-up"); err != nil {
		return loom.Probe{}, err
	}
	v, err := store.VerificationByID(ctx, f.db, actor.Tenant, id)
	if errors.Is(err, loom.NotFound) {
		return loom.Probe{}, loom.NewError(loom.Unavailable, "The answer of the provider has expired. Verify again.")
	}
	return v.Answer, err
}

func checkOffer(offer loom.Offer) error {
	field := string(offer.Kind)
	switch {
	case offer.Kind != loom.OfferFlavor && offer.Kind != loom.OfferImage:
		return loom.InvalidFields([]loom.FieldError{{Field: "kind", Message: "What can be verified is flavor or image."}})
	case strings.TrimSpace(offer.ID) == "":
		return loom.InvalidFields([]loom.FieldError{{Field: field, Message: "Give the provider's id of the " + offer.Kind.Noun() + " first."}})
	case len(offer.ID) > maxOfferID || !utf8.ValidString(offer.ID) || strings.ContainsRune(offer.ID, 0):
		return loom.InvalidFields([]loom.FieldError{{Field: field, Message: "The id is longer than 1000 bytes, or holds characters that no id has."}})
	}
	return nil
}

// Verified returns what providers of the actor's tenant said of late about sizes or about
// images, by provider and id.
func (f *Processes) Verified(ctx context.Context, actor loom.Actor, kind loom.OfferKind) (map[string]map[string]loom.Probe, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	all, err := store.Verifications(ctx, f.db, actor.Tenant, kind)
	found := map[string]map[string]loom.Probe{}
	for _, v := range all {
		if found[v.Provider] == nil {
			found[v.Provider] = map[string]loom.Probe{}
		}
		found[v.Provider][v.ID] = v.Answer
	}
	return found, err
}
