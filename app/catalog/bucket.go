package catalog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // the scheme "file"

	"loom/app/loom"
	"loom/app/store"
)

// openBucket opens a bucket by URL. For files it makes the directory, keeps
// temporary files on the same file system and writes no side files.
func openBucket(text string) (*blob.Bucket, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return nil, loom.NewError(loom.Invalid, "LOOM_RESOURCES_URL is no URL; give one such as “file:///var/lib/loom/bucket”.")
	}
	if u.Scheme == "file" {
		q := u.Query()
		for key, value := range map[string]string{"create_dir": "true", "no_tmp_dir": "true", "metadata": "skip", "dir_file_mode": "0700"} {
			if !q.Has(key) {
				q.Set(key, value)
			}
		}
		u.RawQuery = q.Encode()
	}
	bucket, err := blob.OpenBucket(context.Background(), u.String())
	if err != nil {
		return nil, fmt.Errorf("open the bucket of plugin resources (LOOM_RESOURCES_URL, scheme %s): %w", u.Scheme, err)
	}
	return bucket, nil
}

// errTooLarge ends an upload over its limit.
var errTooLarge = errors.New("upload is over the limit")

// writeObject stores a stream of at most limit bytes and gives its size and
// SHA-256, both of the plain content. On an error no object is left.
func (c *Catalog) writeObject(ctx context.Context, key string, r io.Reader, limit int64, sealed bool) (size int64, sum string, err error) {
	// Cancelling before Close is how a half-written object is given up.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return 0, "", fmt.Errorf("write to the bucket: %w", err)
	}
	hash := sha256.New()
	size, err = c.fill(w, key, io.TeeReader(io.LimitReader(r, limit+1), hash), sealed)
	if err == nil && size > limit {
		err = errTooLarge
	}
	if err != nil {
		cancel()
		w.Close() //nolint:errcheck // given up
		return 0, "", err
	}
	if err := w.Close(); err != nil {
		return 0, "", fmt.Errorf("write to the bucket: %w", err)
	}
	return size, hex.EncodeToString(hash.Sum(nil)), nil
}

func (c *Catalog) fill(w io.Writer, key string, r io.Reader, sealed bool) (int64, error) {
	if !sealed {
		return io.Copy(w, r)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	bytes, err := c.ring.SealBytes(key, plain)
	if err != nil {
		return 0, err
	}
	_, err = w.Write(bytes)
	return int64(len(plain)), err
}

// Open gives the content of a version, unsealed. NotFound when the object is
// gone from the bucket. Close it.
func (c *Catalog) Open(ctx context.Context, r loom.Resource) (io.ReadCloser, error) {
	reader, err := c.bucket.NewReader(ctx, r.Object, nil)
	if err != nil {
		return nil, &loom.Error{Kind: loom.NotFound, Message: fmt.Sprintf("Version %d of the resource “%s” cannot be read from the bucket.", r.Version, r.Name), Err: err}
	}
	if !r.Sealed {
		return reader, nil
	}
	defer reader.Close() //nolint:errcheck // read to the end or given up
	sealed, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("read version %d of %s: %w", r.Version, r.Name, err)
	}
	plain, err := c.ring.OpenBytes(r.Object, sealed)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(string(plain))), nil
}

// CopyObject copies the content of a version for another tenant, sealed anew
// where it is sealed, and gives the key of the copy. A copy that no row comes to
// know is swept.
func (c *Catalog) CopyObject(ctx context.Context, r loom.Resource, to loom.TenantID) (string, error) {
	content, err := c.Open(ctx, r)
	if err != nil {
		return "", err
	}
	defer content.Close() //nolint:errcheck // read to the end or given up
	key := objectKey(to, r.ResourceRef, r.Version)
	size, sum, err := c.writeObject(ctx, key, content, r.Size, r.Sealed)
	if err != nil {
		return "", err
	}
	if size != r.Size || sum != r.SHA256 {
		return "", fmt.Errorf("copy version %d of %s: the object in the bucket is not what was uploaded", r.Version, r.Name)
	}
	return key, nil
}

// SweepBucket deletes objects that no row knows and that are older than age, which
// leaves out uploads under way, and says how many there were.
func (c *Catalog) SweepBucket(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	before := time.Now().Add(-age)
	var old []string
	objects := c.bucket.List(nil)
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("list the bucket: %w", err)
		}
		if object.ModTime.Before(before) {
			old = append(old, object.Key)
		}
	}
	// Rows are read after the objects: a row made meanwhile is seen.
	known, err := store.ResourceObjectsAllTenants(ctx, c.db)
	if err != nil {
		return 0, err
	}
	keep := make(map[string]bool, len(known))
	for _, key := range known {
		keep[key] = true
	}
	for _, key := range old {
		if keep[key] {
			continue
		}
		if err := c.bucket.Delete(ctx, key); err != nil {
			return swept, fmt.Errorf("sweep the bucket: %w", err)
		}
		swept++
	}
	return swept, nil
}

// objectKey makes the place of a version in the bucket; the random part keeps an
// upload that failed from being taken for another.
func objectKey(tenant loom.TenantID, ref loom.ResourceRef, version int) string {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
	return fmt.Sprintf("%s/%s/%s/%s/%s/%d-%s", tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name, version, hex.EncodeToString(b[:]))
}

// CheckBucket reports whether the bucket of plugin resources can be reached.
func (c *Catalog) CheckBucket(ctx context.Context) error {
	there, err := c.bucket.IsAccessible(ctx)
	if err != nil {
		return fmt.Errorf("reach the bucket of plugin resources: %w", err)
	}
	if !there {
		return loom.NewError(loom.Unavailable, "The bucket of plugin resources is not there, or may not be read.")
	}
	return nil
}
