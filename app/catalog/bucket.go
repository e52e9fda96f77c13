package catalog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // the scheme "file"
	"gocloud.dev/gcerrors"

	"loom/app/loom"
	"loom/app/store"
)

// openBucket opens a bucket by URL. For files it makes the directory, keeps
// temporary files on the same file system and writes no side files. Errors do not repeat
// the URL, which may hold what nobody else should read.
func openBucket(text string) (*blob.Bucket, *s3Bucket, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "":
		return nil, nil, badURL("is no URL. Enter one such as file:///var/lib/loom/bucket or s3://loom?region=us-east-1")
	case u.Scheme == "s3":
		return openS3(u)
	case u.Scheme != "file":
		return nil, nil, badURL("has the scheme “%s”. Use file or s3", u.Scheme)
	}
	q := u.Query()
	for key, value := range map[string]string{"create_dir": "true", "no_tmp_dir": "true", "metadata": "skip", "dir_file_mode": "0700"} {
		if !q.Has(key) {
			q.Set(key, value)
		}
	}
	u.RawQuery = q.Encode()
	bucket, err := blob.OpenBucket(context.Background(), u.String())
	if err != nil {
		return nil, nil, fmt.Errorf("open the bucket of files (LOOM_RESOURCES_URL): %w", err)
	}
	return bucket, nil, nil
}

const noBucket = "The bucket of the file store does not exist. Create or mount it, or correct LOOM_RESOURCES_URL."

// failure makes of an error of the bucket one that says what to do. NotFound: the store
// answers, and the object is not in it. All else is Unavailable: it may pass, and says
// nothing of the object. Where ctx was canceled, the error is that.
func (c *Catalog) failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); errors.Is(ended, context.Canceled) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		// S3 says so of a bucket as well, and a disk that is not mounted has no files.
		if away := c.CheckBucket(ctx); away != nil {
			return away
		}
		return &loom.Error{Kind: loom.NotFound, Message: "The file is no longer in the file store.", Err: err}
	}
	return c.away(ctx, err)
}

// away is Unavailable with what to do about an error of the bucket as a whole.
func (c *Catalog) away(ctx context.Context, err error) error {
	message := ""
	switch {
	case c.s3 != nil:
		message = c.s3.remedy(ctx, err)
	case errors.Is(err, fs.ErrNotExist):
		message = noBucket
	}
	if message == "" {
		message = "The file store does not work: " + short(err) + ". Check it and LOOM_RESOURCES_URL, then try again."
	}
	return &loom.Error{Kind: loom.Unavailable, Message: message, Err: err}
}

// short says what an error is without addresses and requests, which are for the log.
func short(err error) string {
	var late interface{ Timeout() bool }
	var lookup *net.DNSError
	var refused syscall.Errno
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &lookup):
		return "its name does not resolve"
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &untrusted):
		return untrusted.Err.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "it does not answer in time"
	}
	return "it does not answer as it should"
}

// errTooLarge ends an upload over its limit.
var errTooLarge = errors.New("upload is over the limit")

// writeObject stores a stream of at most limit bytes and gives its size and
// SHA-256, both of the plain content. On an error no object is left; one of r is returned
// unchanged, one of the bucket as failure says.
func (c *Catalog) writeObject(ctx context.Context, key string, r io.Reader, limit int64, sealed bool) (size int64, sum string, err error) {
	// Canceling before Close is how a half-written object is given up.
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	// Parts are held in memory until they are sent.
	w, err := c.bucket.NewWriter(writing, key, &blob.WriterOptions{ContentType: "application/octet-stream", MaxConcurrency: 2})
	if err != nil {
		return 0, "", c.failure(ctx, err)
	}
	from := &source{r: r}
	hash := sha256.New()
	size, err = c.fill(ctx, w, key, io.TeeReader(io.LimitReader(from, limit+1), hash), sealed)
	switch {
	case from.err != nil:
		err = from.err
	case err == nil && size > limit:
		err = errTooLarge
	}
	if err != nil {
		cancel()
		w.Close() //nolint:errcheck // given up
	} else if err = w.Close(); err != nil {
		err = c.failure(ctx, err)
	}
	if err != nil {
		c.giveUp(ctx, key)
		return 0, "", err
	}
	return size, hex.EncodeToString(hash.Sum(nil)), nil
}

// giveUp deletes the parts of an object that was not written to its end, also where ctx
// is over. The sweep finds what is left: where the store is away, and a part that was
// under way and comes later.
func (c *Catalog) giveUp(ctx context.Context, key string) {
	if c.s3 == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, _ = c.s3.dropParts(ctx, key, time.Now().Add(uploadSkew))
}

// uploadSkew is how far the clock of a store may be ahead: the key is that of one upload.
const uploadSkew = 24 * time.Hour

// source keeps what went wrong where an upload comes from: that is not the bucket's fault.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (c *Catalog) fill(ctx context.Context, w io.Writer, key string, r io.Reader, sealed bool) (int64, error) {
	if !sealed {
		n, err := io.Copy(w, r)
		return n, c.failure(ctx, err)
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
	return int64(len(plain)), c.failure(ctx, err)
}

// object reads an object of the bucket; errors are as failure says, also those of reading.
type object struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the one call that reads
	c   *Catalog
}

func (c *Catalog) openObject(ctx context.Context, key string, at, length int64) (io.ReadCloser, error) {
	r, err := c.bucket.NewRangeReader(ctx, key, at, length, nil)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	return &object{r, ctx, c}, nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = o.c.failure(o.ctx, err)
	}
	return n, err
}

// Open gives the content of a version, unsealed. NotFound when the object is
// gone from the bucket; Unavailable when the bucket cannot be read. Close it.
func (c *Catalog) Open(ctx context.Context, r loom.Resource) (io.ReadCloser, error) {
	reader, err := c.openObject(ctx, r.Object, 0, -1)
	if errors.Is(err, loom.NotFound) {
		return nil, &loom.Error{Kind: loom.NotFound, Message: fmt.Sprintf("Version %d of “%s” is no longer in the file store (LOOM_RESOURCES_URL). Upload it again.", r.Version, r.Name), Err: err}
	}
	if err != nil || !r.Sealed {
		return reader, err
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
		return "", fmt.Errorf("copy version %d of %s: the object in the bucket differs from the upload", r.Version, r.Name)
	}
	return key, nil
}

// SweepBucket deletes objects that no row knows and that are older than age, which
// leaves out uploads under way, and says how many there were. Parts of uploads that broke
// off go as well.
func (c *Catalog) SweepBucket(ctx context.Context, age time.Duration) (int, error) {
	before := time.Now().Add(-age)
	var old []string
	objects := c.bucket.List(nil)
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("list the bucket: %w", c.failure(ctx, err))
		}
		if object.ModTime.Before(before) {
			old = append(old, object.Key)
		}
	}
	// Rows are read after the objects: a row made between is seen.
	known, err := store.ResourceObjectsAllTenants(ctx, c.db)
	if err != nil {
		return 0, err
	}
	keep := make(map[string]bool, len(known))
	for _, key := range known {
		keep[key] = true
	}
	swept := 0
	for _, key := range old {
		if keep[key] {
			continue
		}
		if err := c.failure(ctx, c.bucket.Delete(ctx, key)); err != nil && !errors.Is(err, loom.NotFound) {
			return swept, fmt.Errorf("sweep the bucket: %w", err)
		}
		swept++
	}
	if c.s3 != nil {
		n, err := c.s3.dropParts(ctx, "", before)
		return swept + n, c.failure(ctx, err)
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

// CheckBucket reports whether the bucket of files can be reached: Unavailable with what to
// do where it cannot.
func (c *Catalog) CheckBucket(ctx context.Context) error {
	_, _, err := c.bucket.ListPage(ctx, blob.FirstPageToken, 1, nil)
	if err == nil && c.bucketDir != "" {
		_, err = os.Stat(c.bucketDir) // its list is empty where it is not there
	}
	if err != nil {
		return c.away(ctx, err)
	}
	return nil
}
