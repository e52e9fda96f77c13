package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// ApplyInput names a preview, the hash its maker saw, and the provider fields
// that were not stored with it.
type ApplyInput struct {
	ID             loom.PreviewID
	Hash           string
	ProviderFields map[string]any
}

// stale says that a preview can no longer be executed as it was shown.
type stale struct{ differs []string }

func (s *stale) Error() string { return "stale preview: " + strings.Join(s.differs, " ") }

// Apply executes exactly what a preview showed, at most once. A sync has no
// operation: its reference has the number 0. Errors: Invalid
// (another hash, provider fields missing), NotFound (expired, not the actor's),
// Exhausted, and Conflict: for a second apply, naming the operation of the
// first; for a world that moved, with what differs and the id of a fresh
// preview, as far as one can be made.
func (u *Clusters) Apply(ctx context.Context, actor loom.Actor, in ApplyInput) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return none, err
	}
	if in.Hash == "" {
		return none, loom.InvalidFields([]loom.FieldError{{Field: "hash", Message: "Send the hash of the preview that you saw."}})
	}
	if errs := checkStorable("providerFields", in.ProviderFields); len(errs) > 0 {
		return none, loom.InvalidFields(errs)
	}
	p, data, body, err := u.loadPreview(ctx, actor, in.ID)
	if err != nil {
		return none, err
	}
	if !p.AppliedAt.IsZero() {
		return none, alreadyApplied(p)
	}
	if in.Hash != p.Hash {
		return none, loom.NewError(loom.Conflict, "This is not the hash of the preview as it is stored; load it again.")
	}
	ref, err := u.applyBody(ctx, actor, p, data, body, in.ProviderFields)
	var old *stale
	if errors.As(err, &old) {
		return none, u.refresh(ctx, actor, p, body, in.ProviderFields, old)
	}
	return ref, err
}

func alreadyApplied(p loom.Preview) error {
	if p.Applied.Number == 0 {
		return loom.NewError(loom.Conflict, "This preview was applied already.")
	}
	return loom.NewError(loom.Conflict, "This preview was applied already: it became operation %s.", p.Applied)
}

// applyBody computes the plan anew, outside the transaction, and executes it
// when it is what the hash promises.
func (u *Clusters) applyBody(ctx context.Context, actor loom.Actor, p loom.Preview, data []byte, body *previewBody, given map[string]any) (loom.OperationRef, error) {
	var none loom.OperationRef
	plan, err := body.plan()
	if err != nil {
		return none, err
	}
	hash, err := digest(data, plan, p.Revision)
	if err != nil {
		return none, err
	}
	if hash != p.Hash {
		return none, &stale{[]string{"Loom itself was updated and plans differently now."}}
	}
	var secrets map[string][]byte
	switch {
	case body.Create != nil:
		secrets, err = u.lateFields(ctx, actor, body.Create, given)
	case body.Live != nil:
		given, err = u.lateLive(ctx, body.Live, given)
	}
	if err != nil {
		return none, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
		var err error
		switch {
		case body.Create != nil:
			_, err = store.LockTenant(ctx, tx, actor.Tenant)
		case body.Live != nil:
			err = body.Live.lockFirst(ctx, tx, actor.Tenant)
		}
		if err != nil {
			return none, err
		}
		// Whoever waited for the lock sees what the one before him did.
		locked, _, err := store.LockPreview(ctx, tx, actor.Tenant, actor.User, p.ID)
		if err != nil {
			return none, noPreview(err)
		}
		if !locked.AppliedAt.IsZero() {
			return none, alreadyApplied(locked)
		}
		ref := loom.OperationRef{Cluster: p.Cluster}
		seen := loom.Cluster{ID: p.Cluster, Revision: p.Revision}
		switch {
		case body.Create != nil:
			ref, err = u.applyCreate(ctx, tx, actor, body.Create, plan, secrets)
		case body.Live != nil:
			ref, err = u.begin(ctx, tx, actor, seen, body.Live, plan, given, "apply")
		case body.Sync != nil:
			err = u.sync(ctx, tx, actor, seen, body.Sync, "sync")
		}
		if errors.Is(err, errMoved) {
			err = &stale{[]string{"The cluster changed after the preview was made."}}
		}
		if err != nil {
			return none, err
		}
		return ref, store.MarkPreviewApplied(ctx, tx, actor.Tenant, p.ID, ref.Number)
	})
}

func (u *Clusters) applyCreate(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, d *draft, plan loom.Plan, secrets map[string][]byte) (loom.OperationRef, error) {
	var none loom.OperationRef
	now, err := store.NewestVersions(ctx, tx, actor.Tenant, d.Versions)
	if err != nil {
		return none, err
	}
	if differs := compareVersions(d.Versions, now); len(differs) > 0 {
		return none, &stale{differs}
	}
	quota, err := store.QuotaUse(ctx, tx, actor.Tenant)
	if err != nil {
		return none, err
	}
	if err := quota.Check(1, len(d.Nodes)); err != nil {
		return none, err
	}
	return u.insert(ctx, tx, actor, d, plan, secrets, "apply")
}

// lateFields takes the provider fields that come with Apply and seals the
// secrets of the new cluster. What the preview fixed cannot be changed.
func (u *Clusters) lateFields(ctx context.Context, actor loom.Actor, d *draft, given map[string]any) (map[string][]byte, error) {
	t, err := store.ProviderType(ctx, u.db, d.Provider.Type)
	if err != nil {
		if isNotFound(err) {
			return nil, &stale{[]string{fmt.Sprintf("The provider type “%s” is gone.", d.Provider.Type)}}
		}
		return nil, err
	}
	fields := takeFields(t, d.Provider, nil, given)
	for _, name := range sortedNames(fields.open) {
		if fixed, ok := d.Input.ProviderFields[name]; ok && loom.FieldText(fixed) != loom.FieldText(fields.open[name]) {
			fields.errs = append(fields.errs, loom.FieldError{Field: "providerFields." + name,
				Message: "The preview was made with another value; make a new preview to change it."})
		}
	}
	if err := loom.InvalidFields(fields.errs); err != nil {
		return nil, err
	}
	if again := absentSensitive(t, d.Sensitive, fields.sealed); len(again) > 0 {
		return nil, missingError([]map[string]loom.FieldSchema{again})
	}
	if err := missingError(fields.missing); err != nil {
		return nil, err
	}
	if err := d.Building.stillBuilds(ctx, u.db, d.Provider); err != nil {
		return nil, err
	}
	d.Provider = withFields(d.Provider, fields.open)
	if d.Input.ProviderFields == nil {
		d.Input.ProviderFields = map[string]any{}
	}
	maps.Copy(d.Input.ProviderFields, fields.open)
	d.Building = newBuilding(t, d.Provider)
	return u.sealCluster(actor.Tenant, d.Cluster, d.Provider, fields.sealed)
}

// compareVersions says in sentences which entries are no longer what they were.
func compareVersions(then, now []store.EntryVersion) []string {
	newest := map[store.EntryVersion]int{}
	for _, v := range now {
		newest[store.EntryVersion{Kind: v.Kind, Name: v.Name}] = v.Version
	}
	var differs []string
	for _, v := range then {
		n := newest[store.EntryVersion{Kind: v.Kind, Name: v.Name}]
		switch {
		case n == 0:
			differs = append(differs, fmt.Sprintf("The %s “%s” is gone.", v.Kind.Word(), v.Name))
		case n != v.Version:
			differs = append(differs, fmt.Sprintf("The %s “%s” is now version %d, not %d.", v.Kind.Word(), v.Name, n, v.Version))
		}
	}
	return differs
}

// refresh makes a new preview of the same request and answers with it.
func (u *Clusters) refresh(ctx context.Context, actor loom.Actor, p loom.Preview, body *previewBody, given map[string]any, old *stale) error {
	in := body.asked(p)
	if d := body.Create; d != nil {
		in.Create.ProviderFields = maps.Clone(given)
		if in.Create.ProviderFields == nil {
			in.Create.ProviderFields = map[string]any{}
		}
		maps.Copy(in.Create.ProviderFields, d.Input.ProviderFields)
	}
	if d := body.Live; d != nil {
		in.ProviderFields = map[string]any{}
		maps.Copy(in.ProviderFields, d.Fields)
		maps.Copy(in.ProviderFields, given)
	}
	message := strings.Join(slices.Concat([]string{"Things changed after this preview was made."}, old.differs), " ")
	conflict := &loom.Error{Kind: loom.Conflict, Message: message, Err: old}
	fresh, err := u.Preview(ctx, actor, in)
	if err != nil {
		// The request no longer works at all; say so instead of a new preview.
		e := loom.AsError(err)
		if e.Kind == loom.Internal || e.Kind == loom.Unavailable {
			return err
		}
		conflict.Message += " It cannot be done any more: " + e.Message
		conflict.Unsat, conflict.Fields, conflict.Missing = e.Unsat, e.Fields, e.Missing
		return conflict
	}
	conflict.Preview = fresh.ID
	return conflict
}
