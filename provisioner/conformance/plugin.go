package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/external"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// PluginTarget is a whole external plugin.
type PluginTarget struct {
	Host     *external.Host
	Plugin   *external.Plugin
	Settings Settings
	// Type limits the checks to one type; empty: all.
	Type string
	// Live tries what costs something too: machines are made and removed.
	Live bool
	// Files has the tenant's resources as “<providertypes|automatortypes>/<type>/
	// <resource type>/<name>”; empty for none.
	Files func(kind, typeName string) string
	// Conn is the machine for automators, or nil.
	Conn *remote.Conn
}

// Plugin checks every type of an external plugin: the protocol, and what its
// actions do where the settings say that they are harmless, or Live.
func Plugin(ctx context.Context, r Reporter, t PluginTarget) error {
	names := slices.Sorted(maps.Keys(t.Plugin.Manifest.Types))
	if t.Type != "" && !slices.Contains(names, t.Type) {
		return loom.NewError(loom.NotFound, "The plugin %s has no type “%s”; it has %s.", t.Plugin.Manifest.Name, t.Type, strings.Join(names, ", "))
	}
	for name := range t.Settings.Types {
		if !slices.Contains(names, name) {
			return loom.NewError(loom.Invalid, "%s: types.%s: the plugin has no type of that name; it has %s.", SettingsName, name, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		if t.Type != "" && name != t.Type {
			continue
		}
		if err := t.typed(ctx, named{r, name}, name); err != nil {
			return err
		}
	}
	return nil
}

// named puts the type before each check.
type named struct {
	Reporter
	name string
}

// Pass passes on.
func (n named) Pass(check string) { n.Reporter.Pass(n.name + ": " + check) }

// Fail passes on.
func (n named) Fail(check, finding string) { n.Reporter.Fail(n.name+": "+check, finding) }

// Skip passes on.
func (n named) Skip(check, why string) { n.Reporter.Skip(n.name+": "+check, why) }

// typed checks one type in a directory of its own.
func (t PluginTarget) typed(ctx context.Context, r Reporter, name string) (err error) {
	dir, err := os.MkdirTemp("", "loom-plugin-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if t.Host.User != nil && os.Geteuid() == 0 {
		if err := os.Chown(dir, t.Host.User.UID, t.Host.User.GID); err != nil {
			return err
		}
	}
	kind, s := t.Plugin.Manifest.Types[name], t.Settings.Types[name].in(dir)
	files := ""
	if t.Files != nil {
		files = t.Files(kind.Kind, name)
	}
	if kind.Kind == external.KindProvider {
		t.provider(ctx, r, name, s, files)
		return nil
	}
	t.automator(ctx, r, name, s, files)
	return nil
}

func (t PluginTarget) live(s TypeSettings) bool { return t.Live || s.Harmless }

const notLive = "it would do real work; --live does, or “harmless” in " + SettingsName

func (t PluginTarget) provider(ctx context.Context, r Reporter, name string, s TypeSettings, files string) {
	described := t.Plugin.Manifest.Types[name].Describes
	fields := s.fields(described)
	run := os.Getpid()
	spec := func(n int) *loom.TaskSpec {
		return &loom.TaskSpec{
			Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: n + 1}, Tenant: "conformance", Attempt: 1,
			IdempotencyKey: loom.IdempotencyKey(loom.NodeID(fmt.Sprintf("conformance-%d-%d", run, n)), 0), Node: loom.NodeID(fmt.Sprintf("conformance-%d-%d", run, n)),
			NodeNumber: 1000 + n, Hostname: fmt.Sprintf("conformance1-%d.local", 1000+n), Flavor: s.Flavor, Image: s.Image,
			Provider:  loom.Provider{Base: loom.Base{Name: "conformance"}, Type: name, Fields: maps.Clone(fields)},
			Sensitive: secrets(described, fields), Config: map[string]any{}, Results: map[string]any{}, Reach: loom.Anywhere(),
		}
	}
	full := t.Plugin.Manifest.Types[name].CloudConfirm
	target := ProviderTarget{Provider: t.Host.Provider(t.Plugin, name), Spec: spec, Secrets: secrets(described, fields), NoConfirm: s.NoConfirm || full && !t.Live,
		NoRetryHint: t.Plugin.Manifest.Revision < external.ThrottlingRevision,
		Context:     provider.WithEnv(context.Background(), provider.Env{Files: files})}
	if len(s.Wrong) > 0 {
		target.Refused = func(spec *loom.TaskSpec) { maps.Copy(spec.Provider.Fields, s.Wrong) }
	}
	if len(s.Machines) > 0 {
		target.Machines = func(ctx context.Context) (map[string][]string, error) {
			out, err := command(ctx, t.Plugin, s.Machines)
			found := map[string][]string{}
			for line := range strings.Lines(out) {
				if key, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
					found[key] = append(found[key], id)
				}
			}
			return found, err
		}
	}
	if len(s.Faults) > 0 {
		target.Arrange = func(ctx context.Context, fault Fault, n int) error {
			words := s.Faults[fault]
			if len(words) == 0 {
				return Unknown()
			}
			_, err := command(ctx, t.Plugin, words, fmt.Sprint(n))
			return err
		}
	}
	External(ctx, r, ExternalTarget{Host: t.Host, Plugin: t.Plugin, Type: name, Spec: func(n int) *loom.TaskSpec { return spec(100_000 + n) },
		Files: files, Secrets: target.Secrets})
	if !t.live(s) {
		r.Skip("create, confirm, delete, faults, credentials, cancellation", notLive)
		return
	}
	Provider(ctx, r, target)
}

func (t PluginTarget) automator(ctx context.Context, r Reporter, name string, s TypeSettings, files string) {
	kind := t.Plugin.Manifest.Types[name]
	texts := func(overlay map[string]any) map[string]string {
		all := s.fields(kind.Describes)
		maps.Copy(all, overlay)
		out := map[string]string{}
		for field, value := range all {
			out[field] = loom.FieldText(value)
		}
		return out
	}
	hidden := append(secrets(kind.Describes, s.fields(kind.Describes)), "planted-secret-of-the-provider")
	spec := func(action loom.TaskAction) *loom.TaskSpec {
		one := &loom.TaskSpec{
			Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: 1}, Tenant: "conformance", Attempt: 1, Action: action,
			Node: "conformance", NodeNumber: 1000, Hostname: "conformance1-1000.local", Addresses: map[string]string{loom.AccessV4: "127.0.0.1", loom.BindV4: "127.0.0.1"},
			Provider: loom.Provider{Base: loom.Base{Name: "conformance"}, Type: "conformance", Fields: map[string]any{"api_password": "planted-secret-of-the-provider"}, Sealed: []string{"api_password"}},
			Service:  &loom.TaskService{Name: "conformance", Action: loom.ServiceAction{Type: name, Fields: texts(nil)}}, Services: []string{"conformance"}, Automators: []string{name},
			Sensitive: hidden, Config: map[string]any{}, Results: map[string]any{}, Reach: loom.Anywhere(),
		}
		one.Nodes = map[loom.NodeID]loom.NodeProperties{one.Node: {Hostname: one.Hostname, Addresses: one.Addresses, Number: 1000}}
		return one
	}
	change := func(overlay map[string]any) func(*loom.TaskSpec) {
		if len(overlay) == 0 {
			return nil
		}
		return func(spec *loom.TaskSpec) {
			service := *spec.Service
			service.Action.Fields = texts(overlay)
			spec.Service = &service
		}
	}
	var machine *remote.Target
	if t.Conn != nil {
		target := t.Conn.Target()
		if len(target.HostKeys) == 0 {
			target.HostKeys = t.Conn.HostKeys()
		}
		machine = &target
	}
	External(ctx, r, ExternalTarget{Host: t.Host, Plugin: t.Plugin, Type: name, Spec: func(int) *loom.TaskSpec { return spec("") }, Files: files,
		Target: machine, Secrets: hidden, Slow: change(s.Slow)})
	if !t.live(s) {
		r.Skip("its actions, failures, cancellation", notLive)
		return
	}
	actions := s.Actions
	if len(actions) == 0 {
		actions = kind.Actions
	}
	var do []loom.TaskAction
	for _, action := range actions {
		if action != string(loom.ActionBootstrap) {
			do = append(do, loom.TaskAction(action))
		}
	}
	Automator(ctx, r, AutomatorTarget{Automator: t.Host.Automator(t.Plugin, name), Spec: spec, Actions: do, Conn: t.Conn, Files: files,
		Broken: change(s.Broken), Slow: change(s.Slow), Secrets: hidden})
}
