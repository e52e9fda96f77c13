package clusters

import (
	"context"
	"maps"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// viewLive shows an operation on a cluster that is there.
func (u *Clusters) viewLive(ctx context.Context, actor loom.Actor, v *PreviewView, d *liveDraft, list *changeList) error {
	v.Name, v.Nodes, v.Services = d.Name, d.Nodes, sortedNames(d.Services)
	v.Template, v.Provider, v.Warnings, v.OnFailure = d.Template, d.Provider.Base, d.Warnings, d.OnFailure
	switch {
	case d.Kind == loom.ChangeDelete:
		v.After.Clusters--
		v.After.Nodes -= len(d.Nodes)
		list.wholeNodes("remove", d.Nodes)
	case d.Altered != nil:
		v.Layout = layoutOf(d.Nodes)
		if err := v.alter(d, list); err != nil {
			return err
		}
	default:
		v.Layout = layoutOf(d.Nodes)
		list.live(d, v.Plan)
	}
	if f := d.Followed; f != nil {
		v.Of, v.Skipped, v.Mends, v.Newest, v.Removed = f.Of, len(f.skipped), f.Mends, f.Newest, f.Removed
		if d.Action == loom.ClusterDelete || d.Kind == loom.ChangeRollback && len(d.Nodes) == 0 {
			v.After.Clusters--
		}
	}
	if d.Added != nil {
		v.Added, v.AddedTo = d.Added.New, len(d.Added.Nodes)
	}
	if d.setsConfig() {
		v.Config, _ = loom.MaskSecrets(d.After).(map[string]any)
	}
	var err error
	v.Missing, err = u.missingLive(ctx, actor, v.Cluster, d)
	return err
}

// missingLive lists what Apply must be given, beside what the cluster has stored.
func (u *Clusters) missingLive(ctx context.Context, actor loom.Actor, id loom.ClusterID, d *liveDraft) ([]map[string]loom.FieldSchema, error) {
	t, err := store.ProviderType(ctx, u.db, d.Provider.Type)
	if err != nil {
		if isNotFound(err) {
			return nil, nil // Apply will say so
		}
		return nil, err
	}
	if again := absentSensitive(t, d.Sensitive, nil); len(again) > 0 {
		return []map[string]loom.FieldSchema{again}, nil
	}
	stored, err := store.Secrets(ctx, u.db, actor.Tenant, store.ClusterSecrets(id))
	if err != nil {
		return nil, err
	}
	return takeFields(t, withFields(d.Provider, d.Fields), sortedNames(stored), nil).missing, nil
}

// lateLive joins the provider fields of a preview with those that come with
// Apply. Invalid, with missing fields, unless the sensitive ones come again.
func (u *Clusters) lateLive(ctx context.Context, d *liveDraft, given map[string]any) (map[string]any, error) {
	if len(d.Fields) == 0 && len(d.Sensitive) == 0 {
		return given, nil
	}
	t, err := store.ProviderType(ctx, u.db, d.Provider.Type)
	if err != nil {
		return nil, err
	}
	fields := takeFields(t, d.Provider, nil, given)
	if err := loom.InvalidFields(fields.errs); err != nil {
		return nil, err
	}
	if again := absentSensitive(t, d.Sensitive, fields.sealed); len(again) > 0 {
		return nil, missingError([]map[string]loom.FieldSchema{again})
	}
	all := maps.Clone(d.Fields)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, given)
	return all, nil
}

// expect estimates how long the plan takes from how long such tasks took before.
func (u *Clusters) expect(ctx context.Context, actor loom.Actor, v *PreviewView, body *previewBody) error {
	if len(v.Plan.Tasks) == 0 {
		return nil
	}
	tenant, err := store.Tenant(ctx, u.db, actor.Tenant)
	if err != nil {
		return err
	}
	provider := ""
	switch {
	case body.Create != nil:
		provider = body.Create.Provider.Type
	case body.Live != nil:
		provider = body.Live.Provider.Type
	}
	byKind, byAction, err := store.TypicalDurations(ctx, u.db, actor.Tenant, provider)
	if err != nil {
		return err
	}
	v.Expected, v.Known = planner.EstimateDuration(v.Plan, tenant.Workers, func(service string, action loom.TaskAction, _ loom.NodeID) (time.Duration, bool) {
		if d, ok := byKind[store.TaskKind{Service: service, Action: action}]; ok {
			return d, true
		}
		d, ok := byAction[action]
		return d, ok
	})
	return nil
}
