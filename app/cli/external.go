package cli

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

// pluginHost runs plugins in other languages as the options say.
func (e *environment) pluginHost() (*external.Host, error) {
	h := &external.Host{Environ: os.Environ(), Level: e.values.Text("LOOM_LOG_LEVEL"), Log: e.log}
	if os.Geteuid() == 0 && e.values.Text("LOOM_PLUGIN_USER") == "root" {
		e.log.Warn("plugins in other languages run as root (LOOM_PLUGIN_USER): a fault in one is a fault of the host")
		return h, nil
	}
	user, err := e.confinedUser()
	h.User = user
	return h, err
}

// usualUser is who does what needs no rights where Loom runs as root.
const usualUser = "nobody"

// confinedUser returns the user who unpacks what others sent and runs plugins in other
// languages; nil is the user of this process.
func (e *environment) confinedUser() (*confine.User, error) {
	name := e.values.Text("LOOM_PLUGIN_USER")
	switch {
	case name == "postgres":
		return nil, errors.New("LOOM_PLUGIN_USER is “postgres”, who may read the private database; name a user without rights of its own")
	case os.Geteuid() == 0 && (name == "" || name == "root"):
		name = usualUser
	case name == "":
		return nil, nil
	}
	user, err := confine.LookupUser(name)
	if err != nil {
		return nil, fmt.Errorf("LOOM_PLUGIN_USER: %w", err)
	}
	return user, nil
}

// findPlugins searches for plugins in other languages beside the built-in ones.
func (e *environment) findPlugins(h *external.Host, built external.Carried) *external.Found {
	return h.Discover(external.SearchPath(e.values.Text("LOOM_PLUGIN_PATH")), built)
}

// builtIn are the types that this binary carries, without making anything ready.
func (e *environment) builtIn() external.Carried {
	built := external.Carried{Providers: []string{local.TypeName}, Automators: []string{"shell"}}
	for _, p := range e.carriedProviders() {
		built.Providers = append(built.Providers, p.Type().Name)
	}
	for _, a := range carriedAutomators() {
		built.Automators = append(built.Automators, a.Type().Name)
	}
	if e.values.Switch("LOOM_MOCK") {
		built.Providers, built.Automators = append(built.Providers, "mock"), append(built.Automators, "mock")
	}
	return built
}

// addExternal puts the plugins that are found beside the built-in ones, in place of
// those found before. What cannot be used is logged and stops nothing.
func (e *environment) addExternal(p *plugins) error {
	h, err := e.pluginHost()
	if err != nil {
		return err
	}
	found := e.findPlugins(h, e.builtIn())
	if err := p.providers.Extend(h.Providers(found)...); err != nil {
		return err
	}
	if err := p.automators.Extend(h.Automators(found)...); err != nil {
		return err
	}
	p.external = found
	p.noteReleases(found)
	if e.toldPlugins {
		return nil
	}
	e.toldPlugins = true
	for _, t := range found.Refused {
		e.log.Warn("a plugin is not used", "plugin", t.Name, "dir", t.Dir, "error", t.Err.Error())
	}
	for _, warning := range found.Warnings {
		e.log.Warn("a plugin is used with a warning", "warning", warning)
	}
	for _, one := range found.Plugins {
		e.log.Info("plugin found", "plugin", one.Manifest.Name, "version", one.Manifest.Version, "dir", one.Dir,
			"manifest_sha256", one.ManifestSHA256, "program_sha256", one.ProgramSHA256)
	}
	return nil
}

// pluginRecord is what is known of a plugin where it was registered last.
type pluginRecord struct {
	Version  string `json:"version"`
	Manifest string `json:"manifest_sha256"`
	Program  string `json:"program_sha256"`
	Host     string `json:"host"`
}

// register writes all plugin types to the database and records which files the
// external ones are. A plugin that differs from what another host registered is
// logged: the same task would do something else there.
func (e *environment) register(ctx context.Context, s *system, p *plugins) error {
	if err := s.catalog.RegisterTypes(ctx, p.providers.Types(), p.automators.Types()); err != nil {
		return err
	}
	if p.external == nil || len(p.external.Plugins) == 0 {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, one := range p.external.Plugins {
		key := "plugin " + one.Manifest.Name
		mine := pluginRecord{one.Manifest.Version, one.ManifestSHA256, one.ProgramSHA256, host}
		text, err := json.Marshal(mine)
		if err != nil {
			return err
		}
		err = store.Exec(ctx, s.db, func(tx *sqlx.Tx) error {
			before, err := store.InstanceValue(ctx, tx, key)
			if err != nil || before == string(text) {
				return err
			}
			var other pluginRecord
			if json.Unmarshal([]byte(before), &other) == nil && other.Host != host && (other.Manifest != mine.Manifest || other.Program != mine.Program) {
				e.log.Warn("a plugin differs between provisioners; install the same version on all of them", "plugin", one.Manifest.Name,
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

// rescanOnHangup looks for plugins again whenever the process gets SIGHUP, until ctx
// ends. Running tasks keep the plugins they began with.
func (e *environment) rescanOnHangup(ctx context.Context, s *system, p *plugins) {
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
			if err := errors.Join(e.addExternal(p), e.register(ctx, s, p)); err != nil {
				e.log.Error("the plugins could not be read again; those of before stay", "error", err.Error())
				continue
			}
			s.metrics.Plugins(p.names())
			e.log.Info("plugins are read again", "types", p.names())
		}
	}()
}
