package catalog

import (
	"context"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"loom/app/loom"
	"loom/app/store"
)

// Limits of what is read to find out which files name another one.
const (
	// maxNaming is how many files of a plugin are read, the first by type and name.
	maxNaming = 500
	// readingAtOnce is how many of them are read at a time.
	readingAtOnce = 8
)

// ResourceUse is what names a plugin resource: services and providers in their fields, by
// kind and name, and other files of its plugin in their text. Of those the version that is
// in use, or else the staged one.
type ResourceUse struct {
	Entries []EntryName
	Files   []loom.Resource
}

// ResourceUsers gives what names a plugin resource. Of the files of its plugin those are
// read that are in use or staged and can be shown as text; secrets and archives are not.
// Forbidden.
func (c *Catalog) ResourceUsers(ctx context.Context, actor loom.Actor, ref loom.ResourceRef) (ResourceUse, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return ResourceUse{}, err
	}
	f, err := c.finder(ctx, c.db, actor.Tenant, []loom.EntityKind{loom.KindService, loom.KindProvider})
	if err != nil {
		return ResourceUse{}, err
	}
	f.asked = &ref
	if _, err := f.find(ctx, func(loom.EntityKind, string) bool { return true }); err != nil {
		return ResourceUse{}, err
	}
	files, err := c.naming(ctx, actor.Tenant, ref)
	return ResourceUse{Entries: f.users, Files: files}, err
}

// naming gives the files of a plugin that have the name of one of them in their text.
func (c *Catalog) naming(ctx context.Context, tenant loom.TenantID, ref loom.ResourceRef) ([]loom.Resource, error) {
	if loom.SecretResource(ref.Type) {
		return nil, nil // the plugin takes secrets by its own fields
	}
	all, err := store.Resources(ctx, c.db, tenant, loom.ResourceRef{Kind: ref.Kind, Plugin: ref.Plugin})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r loom.Resource) bool {
		return r.ResourceRef == ref || !r.Live && !r.Slated || r.Sealed || r.Format == "archive" || r.Size > maxShownText
	})
	all = all[:min(len(all), maxNaming)]
	names := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readingAtOnce)
	for i, r := range all {
		group.Go(func() error {
			content, err := c.Open(ctx, r)
			if err != nil {
				return err
			}
			defer content.Close() //nolint:errcheck // read to the end or given up
			text, err := io.ReadAll(io.LimitReader(content, maxShownText))
			names[i] = loom.Mentions(string(text), ref.Name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var found []loom.Resource
	for i, r := range all {
		switch last := len(found) - 1; {
		case !names[i]:
		case last >= 0 && found[last].ResourceRef == r.ResourceRef: // staged in its place
			if r.Live {
				found[last] = r
			}
		default:
			found = append(found, r)
		}
	}
	return found, nil
}
