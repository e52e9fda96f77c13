package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jmoiron/sqlx"
	"gocloud.dev/blob"

	"loom/app/loom"
	"loom/app/store"
)

// bytesLeft tells how much more plugin resources of a tenant may take: what its limit and
// the disk of the bucket leave. Exhausted when that is nothing.
func (c *Catalog) bytesLeft(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (left int64, err error) {
	left = 1 << 62
	if c.MaxBytes > 0 {
		taken, err := store.ResourceBytes(ctx, q, tenant)
		if err != nil {
			return 0, err
		}
		if left = c.MaxBytes - taken; left <= 0 {
			return 0, c.noBytesLeft()
		}
	}
	free, err := c.diskLeft("The file is not stored")
	return min(left, free), err
}

// diskLeft tells how much more the disk of the bucket takes. Exhausted when that is
// nothing.
func (c *Catalog) diskLeft(what string) (int64, error) {
	if c.bucketDir == "" {
		return 1 << 62, nil
	}
	if err := c.Reserve.Check(c.bucketDir, what, 0); err != nil {
		return 0, err
	}
	free, err := c.Reserve.Look(c.bucketDir)
	return max(free.Bytes-free.Kept, 1), err
}

// importFolder is where the bucket has archives between their upload and their import.
func importFolder(tenant loom.TenantID) string { return string(tenant) + "/import/" }

// archiveLeft tells how much an archive of plugin resources may take until it is imported:
// what the disk leaves, and the limit of the tenant with the archives that it keeps so.
func (c *Catalog) archiveLeft(ctx context.Context, tenant loom.TenantID) (int64, error) {
	left, err := c.diskLeft("The archive is not stored")
	if err != nil || c.MaxBytes <= 0 {
		return left, err
	}
	taken, err := store.ResourceBytes(ctx, c.db, tenant)
	if err != nil {
		return 0, err
	}
	kept := c.bucket.List(&blob.ListOptions{Prefix: importFolder(tenant)})
	for {
		object, err := kept.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("list the archives of tenant %s: %w", tenant, c.failure(ctx, err))
		}
		taken += object.Size
	}
	if taken >= c.MaxBytes {
		return 0, c.noBytesLeft()
	}
	return min(left, c.MaxBytes-taken), nil
}

func (c *Catalog) noBytesLeft() error {
	return loom.NewError(loom.Exhausted, "The file is not stored: the files of the tenant may take %s in all versions together (LOOM_RESOURCE_BYTES). Delete old versions.", size(c.MaxBytes))
}

// withinBytes refuses the files stored in this transaction when they are too large together
// with what others stored at the same moment.
func (c *Catalog) withinBytes(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	if c.MaxBytes <= 0 {
		return nil
	}
	taken, err := store.ResourceBytes(ctx, tx, tenant)
	if err == nil && taken > c.MaxBytes {
		return c.noBytesLeft()
	}
	return err
}

// ImagesAllTenants lists the images that the image types of all tenants name, for hosts
// that keep them.
func (c *Catalog) ImagesAllTenants(ctx context.Context) ([]string, error) {
	return store.ImagesAllTenants(ctx, c.db)
}
