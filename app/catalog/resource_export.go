package catalog

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// ExportableResources gives what an archive of the plugin resources of the actor's tenant
// can hold: of each name the version that is live, else the one that goes live with the
// next sync. Secrets are never among them; sealed counts those. Forbidden.
func (c *Catalog) ExportableResources(ctx context.Context, actor loom.Actor) (found []loom.Resource, sealed int, err error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, 0, err
	}
	all, err := store.Resources(ctx, c.db, actor.Tenant, loom.ResourceRef{})
	for _, r := range all {
		last := len(found) - 1
		switch {
		case !r.Live && !r.Slated:
		case r.Sealed || loom.SecretResource(r.Type):
			if r.Live {
				sealed++
			}
		case last >= 0 && found[last].ResourceRef == r.ResourceRef:
			if r.Live {
				found[last] = r
			}
		default:
			found = append(found, r)
		}
	}
	return found, sealed, err
}

// ExportResources writes resources, which ExportableResources gave, as a gzipped tar:
// files <kind>/<plugin>/<type>/<name>. It streams them; an archive that broke off has no
// end, which whoever reads it notices. Forbidden.
func (c *Catalog) ExportResources(ctx context.Context, actor loom.Actor, resources []loom.Resource, w io.Writer) error {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return err
	}
	// What the actor may have is decided here, whoever made the list.
	mine, _, err := c.ExportableResources(ctx, actor)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	for _, r := range mine {
		if !slices.ContainsFunc(resources, func(wanted loom.Resource) bool { return wanted.Object == r.Object }) {
			continue
		}
		if err := c.packResource(ctx, archive, r); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return packed.Close()
}

func (c *Catalog) packResource(ctx context.Context, archive *tar.Writer, r loom.Resource) error {
	content, err := c.Open(ctx, r)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // read to the end or given up
	header := &tar.Header{Typeflag: tar.TypeReg, Name: resourcePath(r.ResourceRef), Size: r.Size, Mode: 0o644, ModTime: r.Created, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("pack %s: %w", r.Name, err)
	}
	if _, err := io.Copy(archive, content); err != nil {
		return fmt.Errorf("pack version %d of %s: %w", r.Version, r.Name, err)
	}
	return nil
}

func resourcePath(ref loom.ResourceRef) string {
	return ref.Kind + "/" + ref.Plugin + "/" + ref.Type + "/" + ref.Name
}
