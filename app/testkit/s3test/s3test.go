// Package s3test runs a real S3 server, versitygw, for tests: a process of its own on a
// port of the loopback address, with its objects in a temporary directory, that a test may
// stop and start again.
//
// The server is built once from its Go module, at the version below, and kept in the cache
// directory of the user. Only _test files import the package.
package s3test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"loom/app/testkit"
)

const (
	module  = "github.com/versity/versitygw/cmd/versitygw"
	version = "v1.8.0"
	// patience is how long a start may take on a busy machine.
	patience = time.Minute
)

// The credentials that all servers take, unless a test changes them, and Bucket, which each
// of them has.
const (
	Key    = "loom-test"
	Secret = "not-to-be-shown-5f1c"
	Bucket = "loom"
	Region = "us-east-1"
)

// Environ is what a process needs to sign in.
var Environ = []string{"AWS_ACCESS_KEY_ID=" + Key, "AWS_SECRET_ACCESS_KEY=" + Secret, "AWS_EC2_METADATA_DISABLED=true"}

// Server is a running server. It ends with its test.
type Server struct {
	// Address is its host and port, which stay the same after Stop and Start.
	Address string
	// Client signs in as the owner of the buckets.
	Client *s3.Client

	tb          testing.TB
	dir         string
	key, secret string
	stop        func()
	process     *os.Process
	output      *os.File
}

var signIn = sync.OnceFunc(func() {
	for _, pair := range Environ {
		name, value, _ := strings.Cut(pair, "=")
		os.Setenv(name, value) //nolint:errcheck // plain names
	}
})

// New starts a server with an empty bucket, which this process has the credentials for.
func New(tb testing.TB) *Server {
	tb.Helper()
	return NewFor(tb, Key, Secret)
}

// NewFor starts a server that takes other credentials than those of this process.
func NewFor(tb testing.TB, key, secret string) *Server {
	tb.Helper()
	signIn()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Address: l.Addr().String(), tb: tb, dir: tb.TempDir(), key: key, secret: secret}
	l.Close()
	for _, name := range []string{"objects", "sidecar"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	if s.output, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		tb.Fatal(err)
	}
	s.Client = s3.New(s3.Options{Region: Region, BaseEndpoint: sdk.String("http://" + s.Address), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")})
	tb.Cleanup(func() {
		s.Stop()
		if tb.Failed() {
			text, _ := os.ReadFile(s.output.Name())
			tb.Logf("output of versitygw:\n%s", text[max(0, len(text)-4000):])
		}
		s.output.Close()
	})
	s.Start()
	if _, err := s.Client.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: sdk.String(Bucket)}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// URL is the LOOM_RESOURCES_URL of the bucket.
func (s *Server) URL() string { return URL("http://"+s.Address, Bucket) }

// URL is that of a bucket at an endpoint.
func URL(endpoint, bucket string) string {
	return "s3://" + bucket + "?use_path_style=true&region=" + Region + "&endpoint=" + endpoint
}

// Start starts the server again, with what it had.
func (s *Server) Start() {
	s.tb.Helper()
	cmd := exec.Command(program(s.tb), "--port", s.Address, "--region", Region, "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "sidecar"), filepath.Join(s.dir, "objects"))
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + s.key, "ROOT_SECRET_KEY=" + s.secret, "PATH=" + os.Getenv("PATH")}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.output, s.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The signal at the death of the parent is sent when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() //nolint:errcheck // it is killed
		}
	}()
	if err := <-started; err != nil {
		s.tb.Fatal(err)
	}
	s.process = cmd.Process
	s.stop = sync.OnceFunc(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, err := s.Client.ListBuckets(ctx, &s3.ListBucketsInput{})
		if err == nil {
			return
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(s.output.Name())
			s.tb.Fatalf("versitygw ended: %s", text)
		case <-ctx.Done():
			s.tb.Fatalf("versitygw does not answer: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop kills the server: connections break, and new ones are refused.
func (s *Server) Stop() {
	if s.stop != nil {
		s.stop()
	}
}

// Freeze suspends the server: connections are taken, and nothing is answered.
func (s *Server) Freeze() {
	s.tb.Helper()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		s.tb.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !stopped(s.process.Pid); runtime.Gosched() {
		if time.Now().After(deadline) {
			s.tb.Fatal("versitygw does not stop")
		}
	}
}

// stopped reports whether all threads of a process have stopped.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return err == nil && len(threads) > 0
}

// Objects returns the keys in the bucket.
func (s *Server) Objects() []string {
	s.tb.Helper()
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.Client, &s3.ListObjectsV2Input{Bucket: sdk.String(Bucket)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			s.tb.Fatal(err)
		}
		for _, o := range page.Contents {
			keys = append(keys, sdk.ToString(o.Key))
		}
	}
	return keys
}

// Fill puts empty objects into the bucket.
func (s *Server) Fill(prefix string, n int) {
	s.tb.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			_, err := s.Client.PutObject(context.Background(), &s3.PutObjectInput{Bucket: sdk.String(Bucket), Key: sdk.String(fmt.Sprintf("%s%05d", prefix, i))})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.tb.Fatal(err)
	}
}

// Uploads returns the keys of uploads in parts that have not ended, and how many parts of
// them there are.
func (s *Server) Uploads() (keys []string, parts int) {
	s.tb.Helper()
	list, err := s.Client.ListMultipartUploads(context.Background(), &s3.ListMultipartUploadsInput{Bucket: sdk.String(Bucket)})
	if err != nil {
		s.tb.Fatal(err)
	}
	for _, u := range list.Uploads {
		keys = append(keys, sdk.ToString(u.Key))
		there, err := s.Client.ListParts(context.Background(), &s3.ListPartsInput{Bucket: sdk.String(Bucket), Key: u.Key, UploadId: u.UploadId})
		if err != nil {
			s.tb.Fatal(err)
		}
		parts += len(there.Parts)
	}
	return keys, parts
}

// Delete deletes an object.
func (s *Server) Delete(key string) {
	s.tb.Helper()
	if _, err := s.Client.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: sdk.String(Bucket), Key: sdk.String(key)}); err != nil {
		s.tb.Fatal(err)
	}
}

var build = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "loom-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	built := filepath.Join(dir, "versitygw-"+version)
	// Test programs of several packages build it together.
	lock, err := os.OpenFile(built+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(built); err == nil {
		return built, nil
	}
	bin, err := os.MkdirTemp(dir, "versitygw-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(bin)
	cmd := exec.Command("go", "install", "-ldflags=-s -w", module+"@"+version)
	cmd.Dir, cmd.Env = bin, append(os.Environ(), "GOBIN="+bin, "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out[max(0, len(out)-2000):])
	}
	return built, os.Rename(filepath.Join(bin, "versitygw"), built)
})

// program is the path of the server, which is built where it is not there.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		testkit.Skip(tb, "versitygw cannot be built: %v", err)
	}
	return path
}
