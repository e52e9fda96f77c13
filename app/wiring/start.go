package wiring

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/store"
	"loom/seeds"
)

// seededKey marks in the database that the starter catalog was loaded once;
// later starts leave what administrators made of it alone.
const seededKey = "seeded"

// FirstStart makes what a fresh database lacks: plugin types, the tenants
// superadmin and demo with their users, the starter catalog. Later calls find
// everything there and change nothing.
func (e *Environment) FirstStart(ctx context.Context, s *System) error {
	p, err := e.Plugins()
	if err != nil {
		return err
	}
	if err := s.Catalog.RegisterTypes(ctx, p.Providers.Types(), p.Automators.Types()); err != nil {
		return err
	}
	made, err := s.Accounts.EnsureSuperadmin(ctx)
	if err != nil {
		return err
	}
	// Passwords are kept before anything else can fail: they are known only here.
	if err := e.KeepSignIns(ctx, made); err != nil {
		return err
	}
	seeded, err := store.InstanceValue(ctx, s.DB, seededKey)
	if err != nil {
		return err
	}
	if seeded == "" {
		actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
		if _, err := s.Load(ctx, actor, StarterCatalog(), StarterScripts()); err != nil {
			return fmt.Errorf("load the starter catalog: %w", err)
		}
		err := store.Exec(ctx, s.DB, func(tx *sqlx.Tx) error {
			return store.SetInstanceValue(ctx, tx, seededKey, "1")
		})
		if err != nil {
			return err
		}
	}
	// The superadmin keeps one worker, and half of one provisioner stays free for further
	// tenants.
	capacity := e.Values.Number("LOOM_PROVISIONER_CAPACITY")
	made, err = s.Accounts.EnsureDemo(ctx, max(1, capacity/2))
	if err != nil {
		return err
	}
	return e.KeepSignIns(ctx, made)
}

// Load imports a catalog folder by merging and makes scripts live.
func (s *System) Load(ctx context.Context, actor loom.Actor, folder, scripts fs.FS) (catalog.Report, error) {
	bundle, err := catalog.DecodeFolder(folder)
	if err != nil {
		return catalog.Report{}, err
	}
	report, err := s.Catalog.Import(ctx, actor, bundle, catalog.Merge)
	if err != nil || scripts == nil {
		return report, err
	}
	files, err := fs.ReadDir(scripts, ".")
	if err != nil {
		return report, err
	}
	sync := false
	for _, f := range files {
		content, err := fs.ReadFile(scripts, f.Name())
		if err != nil {
			return report, err
		}
		ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: path.Base(f.Name())}
		changed, err := s.Catalog.EnsureResource(ctx, actor, ref, content)
		if err != nil {
			return report, fmt.Errorf("script %s: %w", f.Name(), err)
		}
		sync = sync || changed
	}
	if sync {
		err = s.Catalog.Sync(ctx, actor)
	}
	return report, err
}

// starter loads the starter catalog and its scripts into the actor's tenant.
func (s *System) starter(ctx context.Context, actor loom.Actor) error {
	_, err := s.Load(ctx, actor, StarterCatalog(), StarterScripts())
	return err
}

// StarterCatalog is the folder of the starter catalog.
func StarterCatalog() fs.FS { return Sub(seeds.Catalog, "catalog") }

// StarterScripts is the folder of its scripts.
func StarterScripts() fs.FS { return Sub(seeds.Scripts, "scripts") }

// Sub returns a folder of an embedded file system; the names are constants.
func Sub(files fs.FS, dir string) fs.FS {
	folder, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return folder
}

var _ account.ResourceCopier = (*catalog.Catalog)(nil)
