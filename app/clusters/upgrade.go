package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// draftUpgrade takes the newest versions of services from the catalog, and sets up again
// those whose files are others: of those named, or of all.
func draftUpgrade(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	if err := checkOnCluster(cluster, in.Services); err != nil {
		return err
	}
	catalog, err := store.Services(ctx, u.q, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	files, err := u.changedFiles(ctx, cluster)
	if err != nil {
		return err
	}
	c.After.Services = maps.Clone(cluster.Services)
	for _, name := range sortedNames(cluster.Services) {
		if len(in.Services) > 0 && !slices.Contains(in.Services, name) {
			continue
		}
		newest, there := catalog[name]
		present := cluster.Services[name]
		newer := there && newest.Version != present.Version && !newest.SameWork(&present)
		if len(files[name]) > 0 {
			if c.Files == nil {
				c.Files = map[string][]string{}
			}
			c.Files[name] = files[name]
		}
		switch {
		case newer || len(files[name]) > 0 && (there || len(in.Services) == 0):
			c.Services = append(c.Services, name)
			if newer {
				c.After.Services[name] = newest
				c.version(loom.KindService, &newest.Base)
			}
		case !there && len(in.Services) > 0:
			return invalid("services", "The service “%s” is no longer in the catalog, so it has no newer version.", name)
		case !there:
			c.warn("The service “%s” is no longer in the catalog and stays unchanged.", name)
		}
	}
	if len(c.Services) == 0 {
		return invalid("services", "Nothing is newer: the cluster has the newest versions of these services and their files.")
	}
	if err := u.checkRules(ctx, cluster, c.After.Nodes, c.After.Services); err != nil {
		return err
	}
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		if slices.ContainsFunc(n.Services, func(name string) bool { return slices.Contains(c.Services, name) }) {
			n.Automators = automatorsOf(n.Services, c.After.Services)
		}
	}
	c.warnOfUses(c.Services)
	config, err := c.mergeDefaults(cluster, c.Services)
	if err != nil {
		return err
	}
	return c.checkConfig(cluster.Owner.User, &cluster.Template, "config", config)
}

// changedFiles gives, by service of a cluster, the files that its actions ran and that are
// others now, such as “web.sh v3”.
func (u *Clusters) changedFiles(ctx context.Context, cluster loom.Cluster) (map[string][]string, error) {
	if u.fleet != nil {
		return changedIn(cluster, u.fleet.files[cluster.ID]), nil
	}
	all, err := store.ChangedFiles(ctx, u.q, cluster.Owner.Tenant, false, cluster.ID)
	if err != nil {
		return nil, err
	}
	return changedIn(cluster, all), nil
}

// changedIn picks the changed files of what the services of a cluster do now.
func changedIn(cluster loom.Cluster, all []store.ChangedFile) map[string][]string {
	changed := map[string][]string{}
	for _, f := range all {
		s, there := cluster.Services[f.Service]
		text := fmt.Sprintf("%s v%d", f.Name, f.Version)
		// What an action ran that there is no more, or by another automator, is past.
		if there && s.Provisioner.Actions[f.Action].Type == f.Plugin && !slices.Contains(changed[f.Service], text) {
			changed[f.Service] = append(changed[f.Service], text)
		}
	}
	return changed
}

// ReleasedFile is a file of a service that came into use after the service failed.
type ReleasedFile = store.ReleasedFile

// ReleasedFiles lists the files of services that failed in an operation and that came into
// use since, each once for a service: a retry runs them. NotFound.
func (u *Clusters) ReleasedFiles(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]ReleasedFile, error) {
	cluster, _, err := u.load(ctx, actor, ref.Cluster)
	if err != nil {
		return nil, err
	}
	all, err := store.ReleasedFiles(ctx, u.q, cluster.Owner.Tenant, ref)
	if err != nil {
		return nil, err
	}
	plugins := map[string]loom.PluginType{}
	var released []ReleasedFile
	for _, f := range all {
		plugin, known := plugins[f.Plugin]
		if !known {
			if plugin, err = store.AutomatorType(ctx, u.q, f.Plugin); err != nil && !errors.Is(err, loom.NotFound) {
				return nil, err
			}
			plugins[f.Plugin] = plugin
		}
		listed := slices.ContainsFunc(released, func(r ReleasedFile) bool { return r.Service == f.Service && r.ResourceRef == f.ResourceRef })
		if action := cluster.Services[f.Service].Provisioner.Actions[f.Action]; !listed && f.UsedBy(&plugin, action) {
			released = append(released, f)
		}
	}
	return released, nil
}

func summarizeUpgrade(v *PreviewView) string {
	return "Brings " + count(len(v.Changed), "service") + " to the newest version" + v.reconfigures()
}
