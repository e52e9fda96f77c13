package clusters

import (
	"context"
	"fmt"
	"slices"

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
const oneConfig = "Set exactly one of config, configPatch and revision."

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

func checkConfigure(in PreviewInput) []loom.FieldError { return in.Configure.check() }

// draftConfigure gives a cluster another config; after an operation that failed it is a
// retry with that, where there is anything to continue.
func draftConfigure(ctx context.Context, u *Clusters, r request, c *change) error {
	if r.in.Configure.Restart {
		c.Action = loom.ClusterConfigureWithRestart
	}
	if r.cluster.Status == loom.ClusterActive {
		return u.draftConfig(ctx, c, r.cluster, r.in.Configure)
	}
	op, err := lastBegun(ctx, u.q, r.cluster)
	if err != nil {
		return err
	}
	half, err := u.halfDone(ctx, r.cluster)
	if err != nil {
		return err
	}
	if half != nil && half.Ref == op.Ref && !op.Undone && op.Action != loom.ClusterDelete {
		return u.draftAmended(ctx, r, c, *op, amendment{Config: r.in.Configure})
	}
	if r.cluster.Status == loom.ClusterIncomplete {
		return loom.NewError(loom.Conflict, "The cluster is incomplete, and no operation is left to go on with; repair or delete it.")
	}
	return u.draftConfig(ctx, c, r.cluster, r.in.Configure) // there is nothing to go on with
}

// draftConfig works out the config that a request comes to, and checks it.
func (u *Clusters) draftConfig(ctx context.Context, c *change, cluster loom.Cluster, in *ConfigureInput) error {
	if err := u.readConfig(ctx, c, cluster, in); err != nil {
		return err
	}
	return c.checkConfig(cluster.Owner.User, &cluster.Template, in.field(), c.After.Config)
}

// readConfig works out the config that a request comes to.
func (u *Clusters) readConfig(ctx context.Context, c *change, cluster loom.Cluster, in *ConfigureInput) error {
	c.SetsConfig, c.Before.Config = true, cluster.Config
	switch {
	case in.Config != nil:
		c.After.Config = in.Config
	case in.ConfigPatch != nil:
		c.After.Config = loom.MergePatch(cluster.Config, in.ConfigPatch)
	default:
		config, err := store.ConfigOfRevision(ctx, u.q, cluster.Owner.Tenant, cluster.ID, *in.Revision)
		if isNotFound(err) {
			return missing("revision", "Cluster %s has had no config %d.", cluster.ID, *in.Revision)
		}
		if err != nil {
			return err
		}
		c.After.Config = config
	}
	// A patch may nest what was fine by itself deeper than can be kept.
	if errs := checkStorable(in.field(), c.After.Config); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if errs := loom.CheckConfigSize(in.field(), c.After.Config); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if sameJSON(c.Before.Config, c.After.Config) {
		c.Warnings = append(c.Warnings, "The config is the same as now.")
	}
	return nil
}

// checkConfig returns Invalid for a config whose macros cannot be expanded on the draft's
// nodes, and for settings that its services cannot run with. It warns of macros that stay as
// written. Macro errors are about the field.
func (c *change) checkConfig(owner loom.UserID, t *loom.Template, field string, config map[string]any) error {
	if problems := macro.Validate(config); len(problems) > 0 {
		return macro.Error(field, problems)
	}
	facts := macro.NewFacts(string(owner), properties(c.After.Nodes))
	problems, stays := macro.Split(facts.Check(config))
	if len(problems) > 0 {
		return macro.Error(field, problems)
	}
	check := loom.SettingsCheck{Services: c.After.Services, Template: t, Partly: c.partly, Expand: func(text string) []string {
		return expansions(facts, text, c.After.Nodes)
	}}
	if err := loom.InvalidFields(check.Check(config)); err != nil {
		return err
	}
	c.Warnings = append(c.Warnings, unexpandedWarnings(stays)...)
	return nil
}

// expansions are the texts that a text becomes on nodes, none while that is not known: many
// addresses are known only once machines run.
func expansions(facts *macro.Facts, text string, nodes []loom.Node) []string {
	expanded, problems := facts.ExpandText(text, "")
	if wrong, _ := macro.Split(problems); len(wrong) == 0 {
		return []string{expanded}
	}
	var texts []string
	for i := range nodes { // it may be about the node itself
		expanded, problems := facts.ExpandText(text, nodes[i].ID)
		if wrong, _ := macro.Split(problems); len(wrong) == 0 && !slices.Contains(texts, expanded) {
			texts = append(texts, expanded)
		}
	}
	return texts
}

// ConfigVersions lists the configs that a cluster has had, the newest first.
func (u *Clusters) ConfigVersions(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]loom.ConfigRevision, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	return store.ConfigRevisions(ctx, u.q, actor.Tenant, id)
}

// ConfigVersion reads one config that a cluster has had. NotFound.
func (u *Clusters) ConfigVersion(ctx context.Context, actor loom.Actor, id loom.ClusterID, revision int) (map[string]any, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	config, err := store.ConfigOfRevision(ctx, u.q, actor.Tenant, id, revision)
	if isNotFound(err) {
		return nil, loom.NewError(loom.NotFound, "Cluster %s has had no config %d.", id, revision)
	}
	return config, err
}

func summarizeConfigure(v *PreviewView) string {
	return fmt.Sprintf("Changes the config and configures the services of %s", count(len(v.Nodes), "node"))
}
