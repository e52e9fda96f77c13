package clusters

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// ConfigureInput gives a cluster another config: exactly one of Config, which
// replaces the whole, ConfigPatch (a merge patch, RFC 7386, over the present one)
// and Revision, one it has had before.
type ConfigureInput struct {
	Config      map[string]any `json:"config"`
	ConfigPatch map[string]any `json:"configPatch"`
	Revision    *int           `json:"revision,omitempty"`
	// Restart stops services before they are configured, and starts them again.
	Restart bool `json:"restart"`
}

// oneConfig says what a configure takes.
const oneConfig = "Give exactly one of config, configPatch and revision."

// check finds what is wrong with the request itself.
func (in *ConfigureInput) check() []loom.FieldError {
	if in == nil {
		return []loom.FieldError{{Field: "config", Message: oneConfig}}
	}
	errs := append(checkStorable("config", in.Config), checkStorable("configPatch", in.ConfigPatch)...)
	var given []string
	if in.Config != nil {
		given = append(given, "config")
	}
	if in.ConfigPatch != nil {
		given = append(given, "configPatch")
	}
	if in.Revision != nil {
		given = append(given, "revision")
		if *in.Revision < 1 {
			errs = append(errs, loom.FieldError{Field: "revision", Message: "Revisions of a config count from 1."})
		}
	}
	switch {
	case len(given) == 0:
		errs = append(errs, loom.FieldError{Field: "config", Message: oneConfig})
	case len(given) > 1:
		errs = append(errs, loom.FieldError{Field: given[1], Message: oneConfig})
	}
	return errs
}

func (in *ConfigureInput) field() string {
	switch {
	case in.ConfigPatch != nil:
		return "configPatch"
	case in.Revision != nil:
		return "revision"
	}
	return "config"
}

// draftConfig works out the config that a request comes to.
func (u *Clusters) draftConfig(ctx context.Context, d *liveDraft, cluster loom.Cluster, in *ConfigureInput) error {
	d.Configure, d.Before = in, cluster.Config
	switch {
	case in.Config != nil:
		d.After = in.Config
	case in.ConfigPatch != nil:
		d.After = loom.MergePatch(cluster.Config, in.ConfigPatch)
	default:
		config, err := store.ConfigOfRevision(ctx, u.db, cluster.Owner.Tenant, cluster.ID, *in.Revision)
		if isNotFound(err) {
			return missing("revision", "Cluster %s has had no config %d.", cluster.ID, *in.Revision)
		}
		if err != nil {
			return err
		}
		d.After = config
	}
	// A patch may nest what was fine by itself deeper than can be kept.
	if errs := checkStorable(in.field(), d.After); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if errs := loom.CheckConfigSize(in.field(), d.After); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if err := d.checkMacros(cluster.Owner.User, in.field(), d.After); err != nil {
		return err
	}
	if sameJSON(d.Before, d.After) {
		d.Warnings = append(d.Warnings, "The config is the same as now.")
	}
	return nil
}

// checkMacros returns Invalid for a config whose macros cannot be expanded on the
// draft's nodes, and warns of those that stay as written.
func (d *liveDraft) checkMacros(owner loom.UserID, field string, config map[string]any) error {
	if problems := macro.Validate(config); len(problems) > 0 {
		return macro.Error(field, problems)
	}
	problems, stays := macro.Split(macro.NewFacts(string(owner), properties(d.Nodes)).Check(config))
	if len(problems) > 0 {
		return macro.Error(field, problems)
	}
	d.Warnings = append(d.Warnings, staying(stays)...)
	return nil
}

// Configure replaces the config of a cluster at once, and configures its services
// again. The config is stored before any task runs, and a failure does not bring
// the old one back. Errors: Invalid, also with missing provider fields; NotFound,
// also for a revision; Conflict.
func (u *Clusters) Configure(ctx context.Context, actor loom.Actor, id loom.ClusterID, in ConfigureInput, fields map[string]any) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	ref, _, err := u.atOnce(ctx, actor, PreviewInput{Kind: loom.PreviewConfigure, Cluster: id, Configure: &in, ProviderFields: fields}, nil)
	return ref, err
}

// ConfigVersions lists the configs that a cluster has had, the newest first.
func (u *Clusters) ConfigVersions(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]loom.ConfigRevision, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	return store.ConfigRevisions(ctx, u.db, actor.Tenant, id)
}

// ConfigVersion reads one config that a cluster has had. NotFound.
func (u *Clusters) ConfigVersion(ctx context.Context, actor loom.Actor, id loom.ClusterID, revision int) (map[string]any, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	config, err := store.ConfigOfRevision(ctx, u.db, actor.Tenant, id, revision)
	if isNotFound(err) {
		return nil, loom.NewError(loom.NotFound, "Cluster %s has had no config %d.", id, revision)
	}
	return config, err
}
