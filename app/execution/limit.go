package execution

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// timeoutsFor is how long the time limits of plugin types are taken for what they
// were: they change rarely, and every attempt asks.
const timeoutsFor = 10 * time.Second

// LongestLimit is the longest limit set here or by default; plugin types may set
// longer ones, up to loom.MaxTaskLimit.
func (o *Operations) LongestLimit() time.Duration { return o.opts.Limits.Longest() }

// pluginTimeouts gives the time limits that plugin types set, by plugin.
func (o *Operations) pluginTimeouts(ctx context.Context) (map[string]loom.PluginTimeouts, error) {
	return o.timeouts.Get(ctx, struct{}{}, time.Now, func(ctx context.Context) (map[string]loom.PluginTimeouts, error) {
		return store.PluginTimeouts(ctx, o.db)
	})
}

// limit is how long an attempt may take, by what carries it out.
func (o *Operations) limit(ctx context.Context, f *SpecFacts) (time.Duration, error) {
	timeouts, err := o.pluginTimeouts(ctx)
	return o.opts.Limits.Of(f.Action, timeouts, pluginsOf(f)...), err
}

// pluginsOf names the plugins that carry out an action (provisioner.md 4.1).
func pluginsOf(f *SpecFacts) []string {
	switch {
	case f.Action == loom.ActionBootstrap:
		return f.Node.Automators
	case f.Action.OfNode():
		return []string{f.Provider.Type}
	case f.ServiceCopy != nil:
		return []string{f.ServiceCopy.Provisioner.Actions[f.Action].Type}
	}
	return nil
}
