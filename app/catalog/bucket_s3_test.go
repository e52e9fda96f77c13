package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/archive/archivetest"
	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/testkit/s3test"
)

// stored is what the database and the bucket hold of uploads: versions, objects, and
// uploads in parts.
func (b bundle) stored(t *testing.T, s *s3test.Server) string {
	t.Helper()
	list, err := b.Resources(b.ctx, b.admin, catalog.ResourceFilter{})
	if err != nil {
		t.Fatal(err)
	}
	uploads, _ := s.Uploads()
	return fmt.Sprintf("%d versions, %d objects, %d in parts", len(list), len(s.Objects()), len(uploads))
}

// random is content that is longer than one part.
func random(size int) []byte {
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content) //nolint:errcheck // never fails
	return content
}

const (
	oneMB = 1 << 20
	large = 40 * oneMB
)

func TestS3Files(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	b := setupAt(t, server.URL()+"&prefix=here/files")
	b.plugins(t)
	if err := b.CheckBucket(b.ctx); err != nil {
		t.Fatal(err)
	}
	small, secret := b.upload(t, script, "echo 1"), b.upload(t, key, "the secret key")
	whole := random(large)
	big, err := b.Upload(b.ctx, b.admin, script, bytes.NewReader(whole), 0)
	if err != nil || big.Size != large {
		t.Fatal(big, err)
	}
	if b.content(t, small) != "echo 1" || b.content(t, secret) != "the secret key" || b.content(t, big) != string(whole) {
		t.Error("other content came back")
	}
	for _, object := range server.Objects() {
		if !strings.HasPrefix(object, "here/files/t-1/") {
			t.Errorf("%s lies outside of the prefix", object)
		}
	}
	for _, step := range []error{b.Stage(b.ctx, b.admin, script, small.Version), b.Sync(b.ctx, b.admin), b.DeleteResource(b.ctx, b.admin, script, big.Version)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if text, err := b.ResourceContent(b.ctx, b.admin, small); err != nil || text.Text != "echo 1" {
		t.Errorf("shown: %+v, %v", text, err)
	}
	copied, err := b.CopyObject(b.ctx, secret, "t-2")
	if err != nil || b.content(t, loom.Resource{Object: copied, Sealed: true}) != "the secret key" {
		t.Errorf("copied: %v", err)
	}
	if got := b.stored(t, server); got != "2 versions, 4 objects, 0 in parts" {
		t.Error(got)
	}
	if _, err := b.Upload(b.ctx, b.admin, script, bytes.NewReader(whole), 20*oneMB); !errors.Is(err, loom.Invalid) {
		t.Errorf("more than the limit: %v", err)
	}
	// A part that was under way when the upload was given up may have come after that.
	if swept, err := b.SweepBucket(b.ctx, -time.Hour); err != nil || swept < 2 || swept > 3 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if got := b.stored(t, server); got != "2 versions, 2 objects, 0 in parts" || b.content(t, small) != "echo 1" {
		t.Error(got)
	}
}

// TestS3Archives: archives are looked through where they lie, a zip with its list at the end
// as well.
func TestS3Archives(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	b := setupAt(t, server.URL())
	site := loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "archives", Name: "site"}
	err := b.RegisterTypes(b.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"archives": {Format: "archive"}}}})
	if err != nil {
		t.Fatal(err)
	}
	entries := []archivetest.Entry{{Name: "site/"}, {Name: "site/noise", Content: string(random(3 * oneMB))}, {Name: "site/x", Content: "x"}}
	for name, content := range map[string][]byte{"tar": archivetest.TarGz(t, entries...), "zip": archivetest.Zip(t, entries...)} {
		r, err := b.UploadAs(b.ctx, b.admin, site, bytes.NewReader(content), catalog.UploadOptions{Folder: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if shown, err := b.ResourceContent(b.ctx, b.admin, r); err != nil || len(shown.Files) == 0 || shown.Odd != "" {
			t.Errorf("%s: %+v, %v", name, shown, err)
		}
	}
	if _, err := b.UploadAs(b.ctx, b.admin, site, strings.NewReader("no archive"), catalog.UploadOptions{Folder: true}); !errors.Is(err, loom.Invalid) {
		t.Errorf("no archive: %v", err)
	}
	if got := b.stored(t, server); got != "2 versions, 2 objects, 0 in parts" {
		t.Error(got)
	}
}

// TestResourcesURL: a URL that cannot work is refused with the remedy, and never repeated.
func TestResourcesURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "is no URL", "/var/bucket": "is no URL", "s3://bad url:secret": "is no URL",
		"gs://loom?key=secret":                       "has the scheme “gs”. Use file or s3",
		"s3://me:secret@loom?region=us-east-1":       "AWS_ACCESS_KEY_ID",
		"s3://secret@loom?region=us-east-1":          "AWS_ACCESS_KEY_ID",
		"s3://?region=us-east-1":                     "names no bucket",
		"s3://loom/secret?region=us-east-1":          "prefix=",
		"s3://loom":                                  "names no region",
		"s3://loom?region=x&secret_key=secret":       "Correct its parameters",
		"s3://loom?region=x&use_path_style=secretly": "Correct its parameters",
		"s3://loom?region=x&endpoint=https%3A%2F%2Fme%3Asecret%40s3.example.org": "AWS_ACCESS_KEY_ID",
		"s3://loom?region=x&endpoint=localhost:7070":                             "endpoint that is no URL",
	} {
		c, err := catalog.New(nil, nil, text)
		if !errors.Is(err, loom.Invalid) || !strings.HasPrefix(err.Error(), "LOOM_RESOURCES_URL ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && (strings.Contains(err.Error(), "=secret") || strings.Contains(err.Error(), ":secret") || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%q is repeated: %v", text, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// TestS3Refused: what is set up wrong is said with the remedy by everything that needs the
// store, is never “not found”, and names no secret.
func TestS3Refused(t *testing.T) {
	t.Parallel()
	server, others, strangers := s3test.New(t), s3test.NewFor(t, s3test.Key, "another secret"), s3test.NewFor(t, "someone", "another secret")
	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for name, c := range map[string]struct{ url, want string }{
		"bucket":   {s3test.URL("http://"+server.Address, "another"), "The bucket of the file store does not exist. Create or mount it, or correct LOOM_RESOURCES_URL."},
		"secret":   {others.URL(), "refuses Loom's credentials (SignatureDoesNotMatch). Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		"key":      {strangers.URL(), "The file store answers XAdminUserNotFound. Check it, and LOOM_RESOURCES_URL with its region, endpoint and credentials."},
		"rights":   {server.URL() + "&anonymous=true", "denies Loom access (AccessDenied). Let its credentials list the bucket of LOOM_RESOURCES_URL"},
		"region":   {strings.Replace(server.URL(), s3test.Region, "mars-1", 1), "The file store answers AuthorizationHeaderMalformed. Check it, and LOOM_RESOURCES_URL with its region"},
		"port":     {s3test.URL("http://"+nobody.Addr().String(), s3test.Bucket), "The file store does not work: connection refused. Check it and LOOM_RESOURCES_URL, then try again."},
		"name":     {s3test.URL("http://nowhere.invalid", s3test.Bucket), "its name does not resolve"},
		"no S3":    {s3test.URL(site.URL, s3test.Bucket), "LOOM_RESOURCES_URL"},
		"no files": {"file://" + filepath.Join(t.TempDir(), "gone"), "The bucket of the file store does not exist."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAt(t, c.url)
			b.plugins(t)
			if dir, ok := strings.CutPrefix(c.url, "file://"); ok {
				if err := os.RemoveAll(dir); err != nil { // such as a disk that is not mounted
					t.Fatal(err)
				}
			}
			lost := loom.Resource{ResourceRef: script, Version: 3, Object: "t-1/lost"}
			read, opened := b.Open(b.ctx, lost)
			if opened == nil {
				read.Close()
			}
			all := map[string]error{"check": b.CheckBucket(b.ctx), "open": opened}
			if name != "no files" { // whose folder an upload makes
				_, all["sweep"] = b.SweepBucket(b.ctx, -time.Hour)
				_, all["upload"] = b.Upload(b.ctx, b.admin, key, strings.NewReader("the key"), 0)
			}
			for what, err := range all {
				if !errors.Is(err, loom.Unavailable) || errors.Is(err, loom.NotFound) || !strings.Contains(loom.AsError(err).Message, c.want) {
					t.Errorf("%s: %v", what, err)
				}
				if err != nil && (strings.Contains(err.Error(), s3test.Secret) || strings.Contains(loom.AsError(err).Message, "127.0.0.1")) {
					t.Errorf("%s tells too much: %v", what, err)
				}
			}
			if list, err := b.Resources(b.ctx, b.admin, catalog.ResourceFilter{}); err != nil || len(list) != 0 {
				t.Errorf("stored all the same: %v, %v", list, err)
			}
		})
	}
}

// halfway gives content and calls do after the first half.
type halfway struct {
	left, half int
	do         func() error
}

func (h *halfway) Read(p []byte) (int, error) {
	if h.left <= h.half && h.do != nil {
		do := h.do
		h.do = nil
		if err := do(); err != nil {
			return 0, err
		}
	}
	if h.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), h.left, oneMB)
	h.left -= n
	return n, nil
}

// TestS3BrokenUploads: of an upload that does not come to its end nothing is stored, whoever
// ended it, and no parts are left that somebody pays for.
func TestS3BrokenUploads(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	b := setupAt(t, server.URL())
	b.plugins(t)
	cut := errors.New("the client broke off")
	upload := func(ctx context.Context, do func() error) error {
		_, err := b.Upload(ctx, b.admin, script, &halfway{large, large / 2, do}, 0)
		return err
	}
	// Waits until the server has every part that it was sent: one that arrives after the end of
	// its upload stays until a sweep.
	begun := func() {
		for deadline := time.Now().Add(time.Minute); ; {
			if _, parts := server.Uploads(); parts == large/2/(8*oneMB) {
				return
			}
			if time.Now().After(deadline) {
				t.Error("no parts are stored")
				return
			}
			runtime.Gosched()
		}
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	err := upload(ctx, func() error { begun(); cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if got := b.stored(t, server); got != "0 versions, 0 objects, 0 in parts" {
		t.Errorf("after a canceled upload: %s", got)
	}
	if err := upload(b.ctx, func() error { begun(); return cut }); !errors.Is(err, cut) || errors.Is(err, loom.Unavailable) {
		t.Errorf("broken off: %v", err)
	}
	if got := b.stored(t, server); got != "0 versions, 0 objects, 0 in parts" {
		t.Errorf("after an upload that broke off: %s", got)
	}
	err = upload(b.ctx, func() error { begun(); server.Stop(); return nil })
	if !errors.Is(err, loom.Unavailable) || !strings.Contains(loom.AsError(err).Message, "LOOM_RESOURCES_URL") {
		t.Errorf("in an outage: %v", err)
	}
	server.Start()
	if got := b.stored(t, server); got != "0 versions, 0 objects, 1 in parts" {
		t.Errorf("after an outage: %s", got)
	}
	if swept, err := b.SweepBucket(b.ctx, time.Hour); err != nil || swept != 0 {
		t.Errorf("an upload that may be under way was swept: %d, %v", swept, err)
	}
	if swept, err := b.SweepBucket(b.ctx, -time.Hour); err != nil || swept != 1 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if err := upload(b.ctx, nil); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	if got := b.stored(t, server); got != "1 versions, 1 objects, 0 in parts" {
		t.Errorf("in the end: %s", got)
	}
}

// TestS3BrokenDownload: a store that goes away while it is read is no short file.
func TestS3BrokenDownload(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	b := setupAt(t, server.URL())
	b.plugins(t)
	r, err := b.Upload(b.ctx, b.admin, script, &halfway{left: large}, 0)
	if err != nil {
		t.Fatal(err)
	}
	content, err := b.Open(b.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if _, err := io.CopyN(io.Discard, content, oneMB); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if n, err := io.Copy(io.Discard, content); !errors.Is(err, loom.Unavailable) {
		t.Errorf("%d bytes more, then %v", n, err)
	}
	server.Start()
	server.Delete(r.Object)
	if _, err := b.Open(b.ctx, r); !errors.Is(err, loom.NotFound) || !strings.Contains(err.Error(), "Version 1 of “web.sh” is no longer in the file store") {
		t.Errorf("deleted behind Loom's back: %v", err)
	}
}

// TestS3Silent: a store that takes requests and does not answer holds up nobody who has a
// limit, and is no bucket without files.
func TestS3Silent(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	b := setupAt(t, server.URL())
	server.Freeze()
	ctx, cancel := context.WithTimeout(b.ctx, 200*time.Millisecond)
	defer cancel()
	if err := b.CheckBucket(ctx); !errors.Is(err, loom.Unavailable) || !strings.Contains(err.Error(), "The file store does not work: it does not answer in time.") {
		t.Error(err)
	}
}

// TestS3Sweep: a sweep that cannot see all of the bucket deletes nothing, and none deletes
// what is in use.
func TestS3Sweep(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	target, err := url.Parse("http://" + server.Address)
	if err != nil {
		t.Fatal(err)
	}
	// The second page of the list fails until the store is mended.
	broken := make(chan bool, 1)
	broken <- true
	store := &httputil.ReverseProxy{Director: func(r *http.Request) { r.URL.Scheme, r.URL.Host = target.Scheme, target.Host }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		down := <-broken
		broken <- down
		if down && r.URL.Query().Has("continuation-token") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b := setupAt(t, s3test.URL(front.URL, s3test.Bucket))
	b.plugins(t)
	used := b.upload(t, script, "in use")
	server.Fill("a-left/", 1001)
	if swept, err := b.SweepBucket(b.ctx, -time.Hour); !errors.Is(err, loom.Unavailable) || swept != 0 {
		t.Errorf("half of a list: swept %d, %v", swept, err)
	}
	if n := len(server.Objects()); n != 1002 {
		t.Errorf("%d objects", n)
	}
	<-broken
	broken <- false
	if swept, err := b.SweepBucket(b.ctx, time.Hour); err != nil || swept != 0 {
		t.Errorf("young objects: swept %d, %v", swept, err)
	}
	if swept, err := b.SweepBucket(b.ctx, -time.Hour); err != nil || swept != 1001 {
		t.Errorf("swept %d, %v", swept, err)
	}
	if left := server.Objects(); !slices.Equal(left, []string{used.Object}) || b.content(t, used) != "in use" {
		t.Errorf("left: %v", left)
	}
}

// TestS3Reseal: sealed files that cannot be read are not passed over as if they were gone,
// or a key would be thrown away that they need.
func TestS3Reseal(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	b := setupAt(t, server.URL())
	b.plugins(t)
	b.upload(t, key, "the secret key")
	elsewhere, err := catalog.New(b.db.DB, b.ring, s3test.URL("http://"+server.Address, "another"))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	if _, err := elsewhere.Reseal(b.ctx); !errors.Is(err, loom.Unavailable) {
		t.Errorf("reseal in another bucket: %v", err)
	}
	if _, err := elsewhere.KeyUses(b.ctx); !errors.Is(err, loom.Unavailable) {
		t.Errorf("uses in another bucket: %v", err)
	}
	if done, err := b.Reseal(b.ctx); err != nil || done.Left() || len(done.Lost) > 0 {
		t.Errorf("reseal: %+v, %v", done, err)
	}
}
