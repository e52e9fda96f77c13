package catalog

import (
	"context"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"loom/app/loom"
	"loom/app/store"
)

// Limits of what is read to find out which files name another one.
const (
	// maxNaming is how many files of a plugin are read, the first by type and name.
	maxNaming = 500
	// readingAtOnce is how many of them are read at a time, keptTexts how many bytes of those
	// that were read are kept.
	readingAtOnce = 8
	keptTexts     = 8 << 20
)

// ResourceUsers gives what names plugin resources. Of the files of their plugins those are
// read that are in use or staged and can be shown as text; secrets and archives are not.
// Forbidden.
func (c *Catalog) ResourceUsers(ctx context.Context, actor loom.Actor, refs ...loom.ResourceRef) (map[loom.ResourceRef]loom.ResourceUse, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	f, err := c.finder(ctx, c.db, actor.Tenant, []loom.EntityKind{loom.KindService, loom.KindProvider})
	if err != nil {
		return nil, err
	}
	f.asked, f.users = refs, map[loom.ResourceRef][]loom.ResourceUser{}
	if _, err := f.find(ctx, func(loom.EntityKind, string) bool { return true }); err != nil {
		return nil, err
	}
	files, err := c.naming(ctx, actor.Tenant, refs)
	if err != nil {
		return nil, err
	}
	uses := make(map[loom.ResourceRef]loom.ResourceUse, len(refs))
	for _, ref := range refs {
		uses[ref] = loom.ResourceUse{Entries: f.users[ref], Files: files[ref]}
	}
	return uses, nil
}

// naming gives, for each of some resources, the files of its plugin that have its name in
// their text.
func (c *Catalog) naming(ctx context.Context, tenant loom.TenantID, refs []loom.ResourceRef) (map[loom.ResourceRef][]loom.Resource, error) {
	found, read := map[loom.ResourceRef][]loom.Resource{}, map[[2]string]bool{}
	for _, ref := range refs {
		plugin := [2]string{ref.Kind, ref.Plugin}
		if read[plugin] || loom.SecretResource(ref.Type) { // the plugin takes secrets by its own fields
			continue
		}
		read[plugin] = true
		files, texts, err := c.texts(ctx, tenant, ref)
		if err != nil {
			return nil, err
		}
		for _, named := range refs {
			if named.Kind != ref.Kind || named.Plugin != ref.Plugin || loom.SecretResource(named.Type) {
				continue
			}
			for i, file := range files {
				if file.ResourceRef != named && loom.Mentions(texts[i], named.Name) {
					found[named] = addNaming(found[named], file)
				}
			}
		}
	}
	return found, nil
}

// addNaming adds a version of a file, one of each: that in use.
func addNaming(files []loom.Resource, file loom.Resource) []loom.Resource {
	last := len(files) - 1
	if last < 0 || files[last].ResourceRef != file.ResourceRef {
		return append(files, file)
	}
	if file.Live { // the other one is staged in its place
		files[last] = file
	}
	return files
}

// texts reads the files of a plugin that are in use or staged and that are texts.
func (c *Catalog) texts(ctx context.Context, tenant loom.TenantID, of loom.ResourceRef) ([]loom.Resource, []string, error) {
	all, err := store.Resources(ctx, c.db, tenant, loom.ResourceRef{Kind: of.Kind, Plugin: of.Plugin})
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(r loom.Resource) bool {
		return !r.Live && !r.Slated || r.Sealed || r.Format == "archive" || r.Size > maxShownText
	})
	all = all[:min(len(all), maxNaming)]
	texts := make([]string, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readingAtOnce)
	for i, r := range all {
		group.Go(func() error {
			text, err := c.read.Get(ctx, textKey{r.Object, r.Size}, time.Now, func(ctx context.Context) (string, error) {
				content, err := c.Open(ctx, r)
				if err != nil {
					return "", err
				}
				defer content.Close() //nolint:errcheck // read to the end or given up
				text, err := io.ReadAll(io.LimitReader(content, maxShownText))
				return string(text), err
			})
			texts[i] = text
			return err
		})
	}
	return all, texts, group.Wait()
}

// textKey is an object of the bucket, which never changes, with its size in bytes.
type textKey struct {
	object string
	size   int64
}
