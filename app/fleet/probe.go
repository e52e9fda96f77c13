package fleet

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Probe asks a provider of the actor's tenant, through a provisioner, whether it
// works as it is set up, and waits for the answer, which is kept until the next.
// A provider that does not work is an answer, not an error. Errors: Forbidden,
// NotFound for the provider, Unavailable when there is no answer in time.
func (f *Fleet) Probe(ctx context.Context, actor loom.Actor, provider string) (loom.Probe, error) {
	if err := actor.RequireAdmin(loom.ScopeCatalogWrite); err != nil {
		return loom.Probe{}, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return loom.Probe{}, err
	}
	id, err := f.ask(ctx, actor.Tenant, store.ProviderRequest{Provider: provider, Purpose: store.PurposeProbe, By: actor.User},
		loom.AuditEntry{Actor: actor, Verb: "probe", Kind: loom.KindProvider.Word(), Object: provider})
	if err != nil {
		return loom.Probe{}, err
	}
	if _, _, err := f.await(ctx, actor.Tenant, id, "the probe"); err != nil {
		return loom.Probe{}, err
	}
	// Its own answer, or one that is newer still.
	return store.NewestProbe(ctx, f.db, actor.Tenant, provider)
}

// BeginProbe asks for a probe as Probe does and does not wait: OpenProbe tells that it is
// under way, LastProbe its answer. Errors: Forbidden, NotFound for the provider.
func (f *Fleet) BeginProbe(ctx context.Context, actor loom.Actor, provider string) error {
	if err := actor.RequireAdmin(loom.ScopeCatalogWrite); err != nil {
		return err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return err
	}
	_, err := f.ask(ctx, actor.Tenant, store.ProviderRequest{Provider: provider, Purpose: store.PurposeProbe, By: actor.User},
		loom.AuditEntry{Actor: actor, Verb: "probe", Kind: loom.KindProvider.Word(), Object: provider})
	return err
}

// OpenProbe is a probe that was asked for and has no answer yet.
type OpenProbe = store.OpenProbe

// OpenProbe tells of a probe of a provider that has no answer yet; ok is false when there
// is none.
func (f *Fleet) OpenProbe(ctx context.Context, actor loom.Actor, provider string) (probe OpenProbe, ok bool, err error) {
	if err := actor.RequireAdmin(loom.ScopeRead); err != nil {
		return OpenProbe{}, false, err
	}
	return store.OpenProbeOf(ctx, f.db, actor.Tenant, provider)
}

// LastProbe gives the newest answer of a provider. NotFound for the provider, and
// for one that was never probed.
func (f *Fleet) LastProbe(ctx context.Context, actor loom.Actor, provider string) (loom.Probe, error) {
	if err := actor.RequireAdmin(loom.ScopeRead); err != nil {
		return loom.Probe{}, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return loom.Probe{}, err
	}
	probe, err := store.NewestProbe(ctx, f.db, actor.Tenant, provider)
	if errors.Is(err, loom.NotFound) {
		return probe, &loom.Error{Kind: loom.NotFound, Message: "This provider was never probed; POST to the same path probes it.", Err: err}
	}
	return probe, err
}

// probe carries out a probe. What hinders asking at all is its answer.
func (f *Fleet) probe(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, asker Asker) error {
	call, may, err := f.call(ctx, r.Tenant, r.Provider)
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
		if answer, err = asker.Probe(ctx, call); err != nil {
			return err
		}
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		held, err := store.EndRequest(ctx, tx, r.Tenant, r.ID, process, &answer, "", false)
		if err != nil || !held {
			return err
		}
		if r.Purpose == store.PurposeVerify {
			return nil // whoever asked waits for it
		}
		if err := store.TrimProbes(ctx, tx, r.Tenant, r.Provider); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, loom.Event{Tenant: r.Tenant, Topic: "tenant", IDs: []string{"providers/" + r.Provider}})
	})
}
