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

// ResourceContent reads what can be shown of a version: the text of a text file, the
// list of files of an archive. Errors: Forbidden for those who may not change it,
// NotFound.
func (c *Catalog) ResourceContent(ctx context.Context, actor loom.Actor, r loom.Resource) (loom.ResourceContent, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return loom.ResourceContent{}, err
	}
	if r.Sealed {
		return loom.ResourceContent{Secret: true}, nil
	}
	content, err := c.Open(ctx, r)
	if err != nil {
		return loom.ResourceContent{}, err
	}
	defer content.Close()
	if r.Format == "archive" {
		return c.listObject(ctx, r, content)
	}
	text, err := io.ReadAll(io.LimitReader(content, maxShownText+1))
	switch {
	case err != nil:
		return loom.ResourceContent{}, err
	case bytes.IndexByte(text, 0) >= 0 || len(text) <= maxShownText && !utf8.Valid(text):
		return loom.ResourceContent{Binary: true}, nil
	case len(text) > maxShownText:
		return loom.ResourceContent{Large: true}, nil
	}
	return loom.ResourceContent{Text: string(text)}, nil
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
