package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jmoiron/sqlx"

	"loom/app/store"
	"loom/provisioner/confine"
	"loom/provisioner/external"
	"loom/provisioner/provider/local"
)

// PluginHost runs plugins in other languages as the options say.
func (e *Environment) PluginHost() (*external.Host, error) {
	h := &external.Host{Environ: os.Environ(), Level: e.Values.Text("LOOM_LOG_LEVEL"), Log: e.Log}
	if os.Geteuid() == 0 && e.Values.Text("LOOM_PLUGIN_USER") == "root" {
		e.Log.Warn("plugins in other languages run as root (LOOM_PLUGIN_USER): a fault in one is a fault of the host")
		return h, nil
	}
	user, err := e.confinedUser()
	h.User = user
	return h, err
}

// UsualUser is who does what needs no rights where Loom runs as root.
const UsualUser = "nobody"

// confinedUser returns the user who unpacks what others sent and runs plugins in other
// languages; nil is the user of this process.
func (e *Environment) confinedUser() (*confine.User, error) {
	name := e.Values.Text("LOOM_PLUGIN_USER")
	switch {
	case name == "postgres":
		return nil, errors.New("LOOM_PLUGIN_USER is “postgres”, who may read the private database; name a user without rights of its own")
	case os.Geteuid() == 0 && (name == "" || name == "root"):
		name = UsualUser
	case name == "":
		return nil, nil
	}
	user, err := confine.LookupUser(name)
	if err != nil {
		return nil, fmt.Errorf("LOOM_PLUGIN_USER: %w", err)
	}
	return user, nil
}

// FindPlugins searches for plugins in other languages beside the built-in ones.
func (e *Environment) FindPlugins(h *external.Host, built external.Carried) *external.Found {
	return h.Discover(external.SearchPath(e.Values.Text("LOOM_PLUGIN_PATH")), built)
}

// BuiltIn are the types that this binary carries, without making anything ready.
func (e *Environment) BuiltIn() external.Carried {
	built := external.Carried{Providers: []string{local.TypeName}, Automators: []string{"shell"}}
	for _, p := range e.builtInProviders() {
		built.Providers = append(built.Providers, p.Type().Name)
	}
	for _, a := range builtInAutomators() {
		built.Automators = append(built.Automators, a.Type().Name)
	}
	if e.Values.Switch("LOOM_MOCK") {
		built.Providers, built.Automators = append(built.Providers, "mock"), append(built.Automators, "mock")
	}
	return built
}

// addExternal puts the plugins that are found beside the built-in ones, in place of
// those found before. What cannot be used is logged and stops nothing.
func (e *Environment) addExternal(p *Plugins) error {
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	found := e.FindPlugins(h, e.BuiltIn())
	if err := p.Providers.Extend(h.Providers(found)...); err != nil {
		return err
	}
	if err := p.Automators.Extend(h.Automators(found)...); err != nil {
		return err
	}
	p.External = found
	p.noteReleases(found)
	if e.toldPlugins {
		return nil
	}
	e.toldPlugins = true
	for _, t := range found.Refused {
		e.Log.Warn("a plugin is not used", "plugin", t.Name, "dir", t.Dir, "error", t.Err.Error())
	}
	for _, warning := range found.Warnings {
		e.Log.Warn("a plugin is used with a warning", "warning", warning)
	}
	for _, one := range found.Plugins {
		e.Log.Info("plugin found", "plugin", one.Manifest.Name, "version", one.Manifest.Version, "dir", one.Dir,
			"manifest_sha256", one.ManifestSHA256, "program_sha256", one.ProgramSHA256)
	}
	return nil
}

// PluginRecord is what is known of a plugin where it was registered last.
type PluginRecord struct {
	Version  string `json:"version"`
	Manifest string `json:"manifest_sha256"`
	Program  string `json:"program_sha256"`
	Host     string `json:"host"`
}

// Register writes all plugin types to the database and records which files the
// external ones are. A plugin that differs from what another host registered is
// logged: the same task would do something else there.
func (e *Environment) Register(ctx context.Context, s *System, p *Plugins) error {
	if err := s.Catalog.RegisterTypes(ctx, p.Providers.Types(), p.Automators.Types()); err != nil {
		return err
	}
	if p.External == nil || len(p.External.Plugins) == 0 {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, one := range p.External.Plugins {
		key := "plugin " + one.Manifest.Name
		mine := PluginRecord{one.Manifest.Version, one.ManifestSHA256, one.ProgramSHA256, host}
		text, err := json.Marshal(mine)
		if err != nil {
			return err
		}
		err = store.Exec(ctx, s.DB, func(tx *sqlx.Tx) error {
			before, err := store.InstanceValue(ctx, tx, key)
			if err != nil || before == string(text) {
				return err
			}
			var other PluginRecord
			if json.Unmarshal([]byte(before), &other) == nil && other.Host != host && (other.Manifest != mine.Manifest || other.Program != mine.Program) {
				e.Log.Warn("a plugin differs between provisioners; install the same version on all of them", "plugin", one.Manifest.Name,
					"version", mine.Version, "host", host, "other_version", other.Version, "other_host", other.Host)
			}
			return store.SetInstanceValue(ctx, tx, key, string(text))
		})
		if err != nil {
			return fmt.Errorf("record the plugin %s: %w", one.Manifest.Name, err)
		}
	}
	return nil
}

// hasTerminal reports whether SIGHUP would say that the terminal of this process is
// gone, which ends it as usual.
func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// RescanOnHangup looks for plugins again whenever the process gets SIGHUP, until ctx
// ends. Running tasks keep the plugins they began with.
func (e *Environment) RescanOnHangup(ctx context.Context, s *System, p *Plugins) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			}
			e.toldPlugins = false
			if err := errors.Join(e.addExternal(p), e.Register(ctx, s, p)); err != nil {
				e.Log.Error("the plugins could not be read again; those of before stay", "error", err.Error())
				continue
			}
			s.metrics.Plugins(p.Names())
			e.Log.Info("plugins are read again", "types", p.Names())
		}
	}()
}
