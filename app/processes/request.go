package processes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// Asker asks providers what no task is about. Package provisioner has the real
// one; no secret is in what it gives.
type Asker interface {
	// Probe says whether the provider works as it is set up.
	Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error)
	// Machines lists the machines with Loom's labels; listed is false where that
	// cannot be had.
	Machines(ctx context.Context, call *loom.ProviderCall) (machines []loom.TaggedMachine, listed bool, err error)
	// Remove deletes a machine, and with it whatever else carries its key, unless alone
	// says that it is to go alone; loom.Unavailable says why it could not.
	Remove(ctx context.Context, call *loom.ProviderCall, m loom.TaggedMachine, alone bool) error
}

// ErrNotForUs says that a request waits for another provisioner: this process
// works for one tenant only, or lost its lease.
var ErrNotForUs = errors.New("this request is for another provisioner")

// ErrRecorded says that a request failed and that this is on record: nothing is
// to be tried again, only the log may want to know.
var ErrRecorded = errors.New("a request to a provider failed")

// WorkRequest carries out a request for a provisioner. When ctx ends before it is
// done, the request goes back and the error is the cause; ErrNotForUs leaves it
// where it is, ErrRecorded is for the log. A request that is gone or done is no error.
func (f *Processes) WorkRequest(ctx context.Context, process loom.ProcessID, id int64, asker Asker) error {
	var taken, open bool
	r, err := store.InTx(ctx, f.db, func(tx *sqlx.Tx) (r store.ProviderRequest, err error) {
		r, taken, open, err = store.TakeRequestAllTenants(ctx, tx, id, process)
		return r, err
	})
	switch {
	case err != nil:
		return err
	case !open:
		return nil
	case !taken:
		return ErrNotForUs
	}
	switch r.Purpose {
	case store.PurposeProbe, store.PurposeVerify, store.PurposeDraft:
		err = f.probe(ctx, process, r, asker)
	case store.PurposeSweep:
		err = f.sweep(ctx, process, r, asker)
	case store.PurposeRemove:
		err = f.remove(ctx, process, r, asker)
	case store.PurposeLeftover:
		err = f.removeLeftover(ctx, process, r, asker)
	default:
		err = fmt.Errorf("request %d asks for %q, which nobody knows", id, r.Purpose)
	}
	if ctx.Err() == nil {
		return err
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	given := store.Exec(back, f.db, func(tx *sqlx.Tx) error { return store.GiveBackRequestAllTenants(back, tx, id, process) })
	return errors.Join(context.Cause(ctx), given)
}

// providerCall builds what is needed to ask a provider: its newest version with the sealed fields
// opened, and what the tenant may do with providers. A *loom.Error is for people.
func (f *Processes) providerCall(ctx context.Context, tenant loom.TenantID, name string) (*loom.ProviderCall, loom.Permits, error) {
	var provider loom.Provider
	var owner loom.Tenant
	// The fields and the sealed ones of the same version.
	opened, err := store.AtOneMoment(ctx, f.db, func(tx *sqlx.Tx) (map[string]loom.Secret, error) {
		var err error
		provider, err = store.Provider(ctx, tx, tenant, name)
		if errors.Is(err, loom.NotFound) {
			return nil, loom.ProviderGone(name)
		}
		if err != nil {
			return nil, err
		}
		if owner, err = store.Tenant(ctx, tx, tenant); err != nil {
			return nil, err
		}
		return f.openFields(ctx, tx, tenant, store.ProviderSecrets(name), name)
	})
	if err != nil {
		return nil, loom.Permits{}, err
	}
	c := &loom.ProviderCall{Tenant: tenant, Provider: provider, ResourceSet: owner.ResourceSet, Reach: owner.Permits.Reach()}
	fields := make(map[string]any, len(provider.Fields)+len(opened))
	maps.Copy(fields, provider.Fields)
	for field, plain := range opened {
		fields[field] = plain.Reveal()
		c.Sensitive = append(c.Sensitive, plain.Reveal())
	}
	c.Provider.Fields = fields
	return c, owner.Permits, nil
}

// openFields opens the sealed fields of a provider, or of a cluster of that provider, by
// field. Errors: Unavailable where the key does not fit.
func (f *Processes) openFields(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, entity, provider string) (map[string]loom.Secret, error) {
	sealed, err := store.Secrets(ctx, q, tenant, entity)
	if err != nil {
		return nil, err
	}
	opened := make(map[string]loom.Secret, len(sealed))
	for field, value := range sealed {
		if f.opts.Ring == nil {
			return nil, fmt.Errorf("open %s of %s: this process has no keys", field, entity)
		}
		plain, err := f.opts.Ring.Open(tenant, entity, field, value)
		if err != nil {
			e := loom.NewError(loom.Unavailable, "The sealed field %s of the provider “%s” cannot be opened; was the key of this installation changed? Give the field again.", field, provider)
			e.Err = err
			return nil, e
		}
		opened[field] = plain
	}
	return opened, nil
}

// maxProbes is how many probes of a tenant run or wait at once.
const maxProbes = 3

// insertRequest stores a request with its River job, or finds the one that waits already,
// and records the act. It gives the id of the request. seal, unless nil, makes what is stored
// sealed with it. Errors: Unavailable when no provisioner runs, Throttled for too many probes.
func (f *Processes) insertRequest(ctx context.Context, tenant loom.TenantID, r store.ProviderRequest, audit loom.AuditEntry, seal func(id int64) ([]byte, error)) (int64, error) {
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (int64, error) {
		anybody, err := store.AnyProvisioner(ctx, tx, tenant)
		if err != nil {
			return 0, err
		}
		if !anybody {
			return 0, loom.NewError(loom.Unavailable, "No provisioner is running. Start one with “loom provisioner”, or ask whoever runs Loom to.")
		}
		open, probe := 0, r.Purpose == store.PurposeProbe || r.Purpose == store.PurposeDraft || r.Purpose == store.PurposeVerify
		if probe {
			if open, err = store.CountOpenProbes(ctx, tx, tenant); err != nil {
				return 0, err
			}
		}
		if r.Purpose != store.PurposeDraft {
			id, err := store.WaitingRequest(ctx, tx, tenant, r)
			if err != nil {
				return 0, err
			}
			if id != 0 {
				return id, store.InsertAudit(ctx, tx, audit)
			}
		}
		if probe && open >= maxProbes {
			e := loom.NewError(loom.Throttled, "%d connections of this tenant are being tested. Wait until one test ends.", open)
			e.RetryAfter = 10 * time.Second
			return 0, e
		}
		if err := store.InsertAudit(ctx, tx, audit); err != nil {
			return 0, err
		}
		id, err := store.InsertRequest(ctx, tx, tenant, r)
		if err != nil {
			return 0, err
		}
		if seal != nil {
			sealed, err := seal(id)
			if err != nil {
				return 0, err
			}
			if err := store.SealDraft(ctx, tx, tenant, id, sealed); err != nil {
				return 0, err
			}
		}
		return id, store.Enqueue(ctx, tx, jobs.ProbeProvider{RequestID: id, Slow: r.Purpose == store.PurposeRemove})
	})
}

// awaitRequest waits until a request has ended. done is false when it was trimmed since.
// Unavailable when nobody took it, or who did is not done in time.
func (f *Processes) awaitRequest(ctx context.Context, tenant loom.TenantID, id int64, what string) (r store.ProviderRequest, done bool, err error) {
	limit := time.NewTimer(f.opts.AskTimeout)
	defer limit.Stop()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		r, err = store.RequestByID(ctx, f.db, tenant, id)
		switch {
		case errors.Is(err, loom.NotFound):
			return r, false, nil
		case err != nil:
			return r, false, err
		case !r.Ended.IsZero():
			return r, true, nil
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-limit.C:
			pause.Stop()
			return r, false, f.timeoutError(ctx, tenant, id, what)
		case <-ctx.Done():
			pause.Stop()
			return r, false, context.Cause(ctx)
		}
	}
}

// timeoutError says why there is no answer and takes back a request that nobody took:
// whoever waited is gone then.
func (f *Processes) timeoutError(ctx context.Context, tenant loom.TenantID, id int64, what string) error {
	dropped, err := store.InTx(ctx, f.db, func(tx *sqlx.Tx) (bool, error) { return store.DropRequest(ctx, tx, tenant, id) })
	if err != nil {
		return err
	}
	seconds := f.opts.AskTimeout.Seconds()
	e := loom.NewError(loom.Unavailable, "The provider did not answer within %g s; %s continues. Check again later.", seconds, what)
	if dropped {
		e = loom.NewError(loom.Unavailable, "No provisioner answered within %g s, so nothing was done. Start one with “loom provisioner”, or look at the processes why none takes work, and try again.", seconds)
	}
	e.RetryAfter = 30 * time.Second
	return e
}
