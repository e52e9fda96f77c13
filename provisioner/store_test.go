package provisioner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jmoiron/sqlx"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
	"loom/app/testkit/s3test"
	"loom/planner"
	"loom/provisioner/remote/sshtest"
)

// files is a tenant with a catalog whose files are in S3.
type files struct {
	*catalog.Catalog
	t     *testing.T
	admin loom.Actor
}

var webScript = loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "web.sh"}

func newFiles(t *testing.T, server *s3test.Server) files {
	t.Helper()
	ctx, db := context.Background(), testkit.NewDatabase(t)
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(db.DB, ring, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	err = store.Exec(ctx, db.DB, func(tx *sqlx.Tx) error {
		if err := store.EnsureSuperTenant(ctx, tx); err != nil {
			return err
		}
		_, err := store.InsertTenantAllTenants(ctx, tx, loom.Tenant{ID: "t-1", Name: "one", MaxClusters: 5, MaxNodes: 5})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shell := loom.PluginType{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file", Permissions: "755"}}}
	if err := c.RegisterTypes(ctx, nil, []loom.PluginType{shell}); err != nil {
		t.Fatal(err)
	}
	return files{c, t, loom.Actor{Tenant: "t-1", TenantName: "one", User: "admin", Role: loom.RoleAdmin, Via: "session"}}
}

// release uploads a version and puts it in use.
func (f files) release(content []byte) loom.Resource {
	f.t.Helper()
	ctx := context.Background()
	r, err := f.Upload(ctx, f.admin, webScript, bytes.NewReader(content), 0)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := errors.Join(f.Stage(ctx, f.admin, webScript, r.Version), f.Sync(ctx, f.admin)); err != nil {
		f.t.Fatal(err)
	}
	return r
}

// host is a provisioner with a data directory of its own.
type host struct {
	*Runner
	t   *testing.T
	dir string
}

func newHost(t *testing.T, source Source) host {
	t.Helper()
	r := runner(t, func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
		return loom.TaskResult{Result: map[string]any{"providerid": "i-1"}}, nil
	})
	h := host{r, t, t.TempDir()}
	r.Cache = &Cache{Dir: h.dir, Source: source}
	return h
}

// task carries out a task that needs a set of files, and returns what follows it, its
// message and its log.
func (h host) task(set int) (verdict planner.Decision, message, log string) {
	h.t.Helper()
	spec, record := createSpec(), &sshtest.Record{}
	spec.Tenant, spec.ResourceSet = "t-1", set
	result := h.Run(context.Background(), spec, record)
	return planner.Decide(planner.DecideInput{Action: spec.Action, Result: result, MaxAttempts: 3}), result.Message, record.Text()
}

func (h host) has(set, content string) bool {
	return read(h.t, filepath.Join(h.dir, "work/t-1/.sets", set, "automatortypes/shell/scripts/web.sh")) == content
}

// TestStoreAway: while the store is away tasks wait and say for what; then they go on, on
// each host with files of its own. What a host has, it needs no store for.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	f := newFiles(t, server)
	f.release([]byte("echo 1"))
	one, two := newHost(t, f), newHost(t, f)
	server.Stop()
	const why = "waits for files: The file store does not work: connection refused. Check it and LOOM_RESOURCES_URL, then try again."
	var tasks sync.WaitGroup
	for range 5 {
		tasks.Go(func() {
			if next, message, log := one.task(1); next.Verdict != planner.Retry || next.Delay < 10e9 || message != why || !strings.Contains(log, "loom: "+why) {
				t.Errorf("%+v after %q, log %q", next, message, log)
			}
		})
	}
	tasks.Wait()
	server.Start()
	for _, h := range []host{one, two} {
		if next, message, _ := h.task(1); next.Verdict != planner.Complete || !h.has("1", "echo 1") {
			t.Errorf("%+v after %q", next, message)
		}
	}
	server.Stop()
	if next, message, _ := one.task(1); next.Verdict != planner.Complete {
		t.Errorf("%+v after %q", next, message)
	}
}

// stopping is a source that stops the store when a part of a file was read.
type stopping struct {
	files
	stop func()
}

func (s stopping) Open(ctx context.Context, r loom.Resource) (io.ReadCloser, error) {
	content, err := s.files.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	begin := make([]byte, 1<<20)
	if _, err := io.ReadFull(content, begin); err != nil {
		return nil, err
	}
	s.stop()
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), content), content}, nil
}

// TestStoreGoesAway: a store that goes away while a file is fetched leaves nothing of it.
func TestStoreGoesAway(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	f := newFiles(t, server)
	whole := bytes.Repeat([]byte("0123456789abcdef"), 2<<20)
	f.release(whole)
	h := newHost(t, stopping{f, server.Stop})
	if next, message, _ := h.task(1); next.Verdict != planner.Retry || !strings.HasPrefix(message, "waits for files: The file store does not work: ") {
		t.Errorf("%+v after %q", next, message)
	}
	left, err := filepath.Glob(filepath.Join(h.dir, "data/t-1/automatortypes/shell/scripts/web.sh/*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	server.Start()
	h.Cache.Source = f
	if next, message, _ := h.task(1); next.Verdict != planner.Complete || !h.has("1", string(whole)) {
		t.Errorf("%+v after %q", next, message)
	}
}

// TestFileLost: a version that was deleted or changed behind Loom's back fails its tasks at
// once, with its name and the remedy, which works.
func TestFileLost(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	f := newFiles(t, server)
	h := newHost(t, f)
	const remedy = "upload the file again and release it, or withdraw it; then retry the operation"
	for set, c := range []struct {
		spoil func(key string)
		want  string
	}{
		{server.Delete, "the file scripts/web.sh of shell, version 1: it is no longer in the file store; " + remedy},
		{func(key string) { replace(t, server, key, "") }, "the file scripts/web.sh of shell, version 2: its size is not the 5 bytes that were uploaded; " + remedy},
		{func(key string) { replace(t, server, key, "tampered with") }, "the file scripts/web.sh of shell, version 3: its size is not the 5 bytes that were uploaded; " + remedy},
		{func(key string) { replace(t, server, key, "evil!") }, "the file scripts/web.sh of shell, version 4: its SHA-256 is not that of the upload; " + remedy},
	} {
		c.spoil(f.release([]byte("echo" + string(rune('a'+set)))).Object)
		if next, message, _ := h.task(set + 1); next.Verdict != planner.Fail || message != c.want {
			t.Errorf("%+v after %q, want %q", next, message, c.want)
		}
	}
	f.release([]byte("mended"))
	if next, message, _ := h.task(5); next.Verdict != planner.Complete || !h.has("5", "mended") {
		t.Errorf("%+v after %q", next, message)
	}
}

func replace(t *testing.T, server *s3test.Server, key, content string) {
	t.Helper()
	_, err := server.Client.PutObject(context.Background(), &s3.PutObjectInput{Bucket: sdk.String(s3test.Bucket), Key: &key, Body: strings.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
}

// slow is a source that says when it is asked, and fails when it is let.
type slow struct {
	*source
	asked chan struct{}
	fail  chan error
}

func (s slow) Open(context.Context, loom.Resource) (io.ReadCloser, error) {
	s.asked <- struct{}{}
	return nil, <-s.fail
}

// TestTurns: who waits for the fetch of another task fails with it instead of asking a store
// that does not answer once more, and does not wait beyond its own end.
func TestTurns(t *testing.T) {
	t.Parallel()
	src := slow{newSource(t), make(chan struct{}, 9), make(chan error)}
	src.add(t, 1, file("automatortypes", "shell", "scripts", "a.sh", 1), []byte("one"))
	cache := &Cache{Dir: t.TempDir(), Source: src}
	set := func(ctx context.Context) error {
		_, _, _, err := cache.Set(ctx, "t1", 1)
		return err
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- set(context.Background()) }()
	<-src.asked
	over, cancel := context.WithCancelCause(context.Background())
	cancel(ErrAborted)
	if err := set(over); !errors.Is(err, ErrAborted) {
		t.Errorf("a task that is aborted while it waits: %v", err)
	}
	waits := make(chan struct{})
	go func() { second <- set(waiting{context.Background(), waits}) }()
	<-waits
	away := loom.NewError(loom.Unavailable, "away")
	src.fail <- away
	for _, err := range []error{<-first, <-second} {
		if !errors.Is(err, loom.Unavailable) {
			t.Error(err)
		}
	}
	if n := len(src.asked); n != 0 {
		t.Errorf("the store was asked %d more times", n)
	}
	third := make(chan error, 1)
	go func() { third <- set(context.Background()) }()
	<-src.asked // who comes later asks again
	src.fail <- errors.New("broken")
	if err := <-third; err == nil || errors.Is(err, loom.Unavailable) {
		t.Error(err)
	}
}

// waiting says when somebody waits for its end.
type waiting struct {
	context.Context
	waits chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	close(w.waits)
	return nil
}
