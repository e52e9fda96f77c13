package catalog

import (
	"bytes"
	"context"
	"io"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// maxShownText is the largest text that is shown, in bytes.
	maxShownText = 256 << 10
	// maxListed bounds the files of an archive that are listed.
	maxListed = 1000
)

// ResourceContent is what can be shown of a version of a plugin resource.
type ResourceContent struct {
	// Secret content is never shown.
	Secret bool
	// Text is that of a text file; Binary files and those that are too Large have none.
	Text          string
	Binary, Large bool
	// Files are those of an archive, More says that there are more of them; Odd is what
	// is not as provisioners expect it.
	Files []ArchiveFile
	More  bool
	Odd   string
}

// ArchiveFile is a file or folder of an archive; Size is in bytes.
type ArchiveFile struct {
	Name string
	Size int64
	Mode string
}

// ResourceContent reads what can be shown of a version: the text of a text file, the
// list of files of an archive. Errors: Forbidden for those who may not change it,
// NotFound.
func (c *Catalog) ResourceContent(ctx context.Context, actor loom.Actor, r loom.Resource) (ResourceContent, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return ResourceContent{}, err
	}
	if r.Sealed {
		return ResourceContent{Secret: true}, nil
	}
	content, err := c.Open(ctx, r)
	if err != nil {
		return ResourceContent{}, err
	}
	defer content.Close()
	if r.Format == "archive" {
		return c.listObject(ctx, r, content)
	}
	text, err := io.ReadAll(io.LimitReader(content, maxShownText+1))
	switch {
	case err != nil:
		return ResourceContent{}, err
	case bytes.IndexByte(text, 0) >= 0 || len(text) <= maxShownText && !utf8.Valid(text):
		return ResourceContent{Binary: true}, nil
	case len(text) > maxShownText:
		return ResourceContent{Large: true}, nil
	}
	return ResourceContent{Text: string(text)}, nil
}

// ResourceFetch is the newest set of plugin resources that a host has fetched.
type ResourceFetch = store.ResourceFetch

// NoteFetched notes that a host of provisioners has a set of a tenant, for
// provisioners.
func (c *Catalog) NoteFetched(ctx context.Context, tenant loom.TenantID, host string, set int) error {
	return store.NoteResourceFetch(ctx, c.db, tenant, host, set)
}

// Fetched gives the number of the actor's tenant's newest set, and which hosts have
// fetched what. Forbidden.
func (c *Catalog) Fetched(ctx context.Context, actor loom.Actor) (set int, fetches []ResourceFetch, err error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return 0, nil, err
	}
	if set, _, err = store.LiveResources(ctx, c.db, actor.Tenant); err != nil {
		return 0, nil, err
	}
	fetches, err = store.ResourceFetches(ctx, c.db, actor.Tenant)
	return set, fetches, err
}
