package catalog_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/diskspace"
	"loom/app/loom"
)

// TestBytesOfATenant: what the resources of a tenant take together is limited, also for
// uploads at the same moment; other tenants have their own.
func TestBytesOfATenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	b.MaxBytes = 10
	b.upload(t, script, "123456")
	if _, err := b.Upload(b.ctx, b.admin, script, strings.NewReader("12345"), 0); !errors.Is(err, loom.Exhausted) || !strings.Contains(loom.AsError(err).Message, "LOOM_RESOURCE_BYTES") {
		t.Errorf("more than is left: %v", err)
	}
	var wg sync.WaitGroup
	stored := make([]error, 4)
	for i := range stored {
		wg.Go(func() { _, stored[i] = b.Upload(b.ctx, b.admin, script, strings.NewReader("1234"), 0) })
	}
	wg.Wait()
	took := 0
	for _, err := range stored {
		if err == nil {
			took++
		} else if !errors.Is(err, loom.Exhausted) {
			t.Error(err)
		}
	}
	if took != 1 {
		t.Errorf("%d of four uploads were taken where one fits: %v", took, stored)
	}
	if _, err := b.Upload(b.ctx, b.admin, script, strings.NewReader("1"), 0); !errors.Is(err, loom.Exhausted) {
		t.Errorf("when nothing is left: %v", err)
	}
	other := b.admin
	other.Tenant = "t-2"
	if _, err := b.Upload(b.ctx, other, script, strings.NewReader("1234567890"), 0); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// TestKeptArchivesCount: archives that wait to be imported count for the tenant, whoever
// uploaded them.
func TestKeptArchivesCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	random := make([]byte, 20_000) // so that it does not get smaller by compression
	rand.Read(random)
	body := packedResources(t, "automatortypes/shell/scripts/a.sh", string(random))
	b.MaxBytes = int64(len(body)) * 3 / 2
	if err := b.KeepResources(b.ctx, b.admin, bytes.NewReader(body), time.Now()); err != nil {
		t.Fatal(err)
	}
	second := b.admin
	second.User = "second"
	if err := b.KeepResources(b.ctx, second, bytes.NewReader(body), time.Now()); !errors.Is(err, loom.Exhausted) || !strings.Contains(loom.AsError(err).Message, "of space is left") {
		t.Errorf("more than is left: %v", err)
	}
	b.MaxBytes = int64(len(body))
	if err := b.KeepResources(b.ctx, second, bytes.NewReader(body), time.Now()); !errors.Is(err, loom.Exhausted) || !strings.Contains(loom.AsError(err).Message, "LOOM_RESOURCE_BYTES") {
		t.Errorf("when nothing is left: %v", err)
	}
	other := b.admin
	other.Tenant = "t-2"
	if err := b.KeepResources(b.ctx, other, bytes.NewReader(body), time.Now()); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// TestUploadsKeepTheReserve: nothing is stored when the disk of the bucket is nearly full.
func TestUploadsKeepTheReserve(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plugins(t)
	b.Reserve = diskspace.Reserve{Bytes: 1 << 50}
	if _, err := b.Upload(b.ctx, b.admin, script, strings.NewReader("1"), 0); !errors.Is(err, loom.Exhausted) || !strings.Contains(loom.AsError(err).Message, "The file is not stored: the disk of this host has ") {
		t.Errorf("upload: %v", err)
	}
	if err := b.KeepResources(b.ctx, b.admin, strings.NewReader(""), time.Now()); !errors.Is(err, loom.Exhausted) || !strings.Contains(loom.AsError(err).Message, "The archive is not stored: the disk") {
		t.Errorf("archive: %v", err)
	}
}

// TestImagesAllTenants: the newest image types of all tenants, whatever is in them.
func TestImagesAllTenants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.admin
	other.Tenant = "t-2"
	b.save(t, b.admin, loom.KindImageType, `{"name":"deb","providermap":{"lab":{"image":"bookworm:one"},"cloud":{"image":"ami-1"}}}`)
	b.save(t, other, loom.KindImageType, `{"name":"deb","providermap":{"lab":{"image":"bookworm:two"},"else":{"flavor":"x"}}}`)
	b.save(t, other, loom.KindImageType, `{"name":"bare"}`)
	images, err := b.ImagesAllTenants(b.ctx)
	slices.Sort(images)
	if err != nil || !slices.Equal(images, []string{"ami-1", "bookworm:one", "bookworm:two"}) {
		t.Errorf("%q, %v", images, err)
	}
}
