package local

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// baseFormat is part of every base root's name: change it when machines need
// something else in their base root, and new ones are built.
const baseFormat = "1"

// baseSize is about what the smallest base root takes.
const baseSize = 256 << 20

// buildLimit ends a build that hangs, on a mirror that does not answer.
const buildLimit = 20 * time.Minute

// builds are the base roots that this process is building, by hash. A build
// belongs to nobody's task: when the task that wanted it is cancelled, it goes
// on for the next one. It ends with the Local.
type builds struct {
	mu      sync.Mutex
	running map[string]*build
	closed  bool
}

// errClosed is why builds end when the Local is closed.
var errClosed = loom.NewError(loom.Unavailable, "The base root of local machines is not built because Loom ends; it is built after the next start.")

type build struct {
	image  image
	tenant loom.TenantID // who asked first, "" for Loom itself
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // once done is closed

	mu   sync.Mutex
	last string
	logs map[*func(string)]bool
}

// of returns the build of a tenant, nil for none; mu is held.
func (b *builds) of(tenant loom.TenantID) *build {
	for _, one := range b.running {
		if one.tenant == tenant && tenant != "" {
			return one
		}
	}
	return nil
}

func (b *build) say(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = line
	for log := range b.logs {
		(*log)(line)
	}
}

// normalize sorts package names, drops doubles and those of the base list.
func normalize(packages []string) []string {
	packages = slices.DeleteFunc(slices.Clone(packages), func(name string) bool { return slices.Contains(basePackages, name) })
	slices.Sort(packages)
	return slices.Compact(packages)
}

// hash names the base root of an image.
func (im image) hash() string {
	parts := append([]string{baseFormat, im.Suite}, basePackages...)
	sum := sha256.Sum256([]byte(strings.Join(append(parts, im.Packages...), "\n")))
	return im.Suite + "-" + hex.EncodeToString(sum[:])[:12]
}

// baseRoot is where the root file system of an image is, built or not.
func (l *Local) baseRoot(im image) string { return filepath.Join(l.baseDir, im.hash(), "root") }

// BaseRoot returns where the base root of an image is, built or not.
func (l *Local) BaseRoot(text string) (string, error) {
	im, err := parseImage(text)
	if err != nil {
		return "", err
	}
	return l.baseRoot(im), nil
}

// Prepare builds the base roots of images that have none yet, one after the
// other, and reports progress line by line; log may be nil. A text that is no
// image is an Invalid error; a failed build is Unavailable and carries the end
// of the output of the tool.
func (l *Local) Prepare(ctx context.Context, images []string, log func(string)) error {
	if err := l.Ready(); err != nil {
		return err
	}
	if log == nil {
		log = func(string) {}
	}
	for _, text := range images {
		im, err := parseImage(text)
		if err != nil {
			return loom.InvalidFields([]loom.FieldError{{Field: "image", Message: fmt.Sprintf("An image of the local provider is “<suite>[:<package>,…]”: %v.", err)}})
		}
		if err := l.ensureBase(ctx, "", im, log); err != nil {
			return err
		}
	}
	return nil
}

// ensureBase waits until the base root of an image exists. A tenant has one built at a
// time; what another tenant has built serves all.
func (l *Local) ensureBase(ctx context.Context, tenant loom.TenantID, im image, log func(string)) error {
	if exists(l.baseRoot(im)) {
		l.used(im)
		return nil
	}
	l.builds.mu.Lock()
	b := l.builds.running[im.hash()]
	for b == nil {
		if l.builds.closed {
			l.builds.mu.Unlock()
			return errClosed
		}
		before := l.builds.of(tenant)
		if before == nil {
			b = l.beginBuild(ctx, tenant, im)
			break
		}
		l.builds.mu.Unlock()
		log(fmt.Sprintf("Image %s is prepared after %s, which is being prepared for this tenant.", im, before.image))
		select {
		case <-before.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if exists(l.baseRoot(im)) {
			return nil
		}
		l.builds.mu.Lock()
		b = l.builds.running[im.hash()]
	}
	log(fmt.Sprintf("Preparing image %s for its first use on this host, which takes a minute or two.", im))
	b.mu.Lock()
	if b.last != "" {
		log(b.last)
	}
	b.logs[&log] = true
	b.mu.Unlock()
	l.builds.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.logs, &log)
		b.mu.Unlock()
	}()
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beginBuild starts a build that goes on after ctx; l.builds.mu is held.
func (l *Local) beginBuild(ctx context.Context, tenant loom.TenantID, im image) *build {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	b := &build{image: im, tenant: tenant, cancel: cancel, done: make(chan struct{}), logs: map[*func(string)]bool{}}
	if l.builds.running == nil {
		l.builds.running = map[string]*build{}
	}
	l.builds.running[im.hash()] = b
	go func() {
		defer cancel(nil)
		ctx, stop := context.WithTimeoutCause(ctx, buildLimit, fmt.Errorf("the build took longer than %v", buildLimit))
		defer stop()
		b.err = l.buildBase(ctx, tenant, im, b.say)
		l.builds.mu.Lock()
		delete(l.builds.running, im.hash())
		l.builds.mu.Unlock()
		close(b.done)
	}()
	return b
}

// Close ends the builds of base roots that l has begun, and returns when none of their
// processes and files is left; it begins no others. Machines go on.
func (l *Local) Close() {
	defer l.ids.close()
	l.builds.mu.Lock()
	l.builds.closed = true
	running := slices.Collect(maps.Values(l.builds.running))
	l.builds.mu.Unlock()
	for _, b := range running {
		b.cancel(errClosed)
	}
	for _, b := range running {
		<-b.done
	}
}

// buildBase makes a base root beside its place and renames it there.
func (l *Local) buildBase(ctx context.Context, tenant loom.TenantID, im image, log func(string)) error {
	place := filepath.Join(l.baseDir, im.hash())
	if err := os.MkdirAll(l.baseDir, 0o700); err != nil {
		return fmt.Errorf("make the directory of base roots: %w", err)
	}
	held, err := lockFile(ctx, place+".lock")
	if err != nil {
		return err
	}
	defer held.Close()
	if _, err := os.Stat(l.baseRoot(im)); err == nil {
		return nil // another process built it
	}
	refused := fmt.Sprintf("The base root of image %s is not built", im)
	if err := l.reserve.Check(l.baseDir, refused, baseSize); err != nil {
		return err
	}
	start := time.Now()
	temp := filepath.Join(l.baseDir, "."+im.hash()+".tmp")
	defer os.RemoveAll(temp)
	root := filepath.Join(temp, "root")
	if err := os.RemoveAll(temp); err != nil { // of a build that was killed
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	ctx, stop := l.withinRoom(ctx, root, refused, tenant)
	defer stop()
	if err := l.runMmdebstrap(ctx, im, root, held, log); err != nil {
		return err
	}
	if err := finishBase(root); err != nil {
		return fmt.Errorf("finish the base root of %s: %w", im, err)
	}
	if err := l.noteBuilt(temp, tenant); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, "image"), []byte(im.String()+"\n"), 0o600); err != nil {
		return err
	}
	// The rename must not reach the disk before the files: an empty library in
	// every machine would be hard to explain.
	if err := syncDir(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, place); err != nil {
		return err
	}
	log(fmt.Sprintf("The base root of %s is ready after %d s.", im, int(time.Since(start).Seconds())))
	return nil
}

// runMmdebstrap fills root. The tool is the first process of a process namespace:
// the kernel ends all others with it, those in sessions of their own (apt's dpkg)
// too, before Wait returns. A killed Loom takes it along; the held lock is handed to
// the tool, so that the next build waits for the last process of this one. The tool
// itself keeps services from starting (policy-rc.d and start-stop-daemon).
func (l *Local) runMmdebstrap(ctx context.Context, im image, root string, held *os.File, log func(string)) error {
	tool, err := findTool(l.builder)
	if err != nil {
		return err
	}
	args := []string{
		"--mode=root", "--variant=minbase", "--format=directory",
		// INSTALL can then find packages without an update of its own.
		"--skip=cleanup/apt/lists",
		"--include=" + strings.Join(append(slices.Clone(basePackages), im.Packages...), ","),
	}
	for _, option := range hostAptOptions(ctx) {
		args = append(args, "--aptopt="+option)
	}
	args = append(args, im.Suite, root)
	sources := hostSources("/etc/os-release", "/etc/apt", im.Suite)
	if len(sources) > 0 {
		args = append(args, "-")
	}
	fewer, err := findTool("setpriv")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, fewer, append([]string{"--bounding-set", buildRights, tool}, args...)...)
	cmd.Env = buildEnvironment(os.Environ())
	cmd.Stdin = strings.NewReader(strings.Join(sources, "\n") + "\n")
	cmd.ExtraFiles = []*os.File{held}
	// Mounts of the build stay out of the host's table, even when it is killed.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWUTS, Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	// The tool dies with the thread that started it, not with the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		writer.Close()
		return fmt.Errorf("start mmdebstrap: %w", err)
	}
	writer.Close()
	tail := readProgress(reader, log)
	if err := cmd.Wait(); err != nil {
		cause := context.Cause(ctx)
		if errors.Is(cause, errClosed) || errors.Is(cause, loom.Exhausted) {
			return cause
		}
		if cause != nil {
			err = cause
		}
		return &loom.Error{Kind: loom.Unavailable, Err: err,
			Message: fmt.Sprintf("Building the base root “%s” with mmdebstrap did not work: %v. Its last words:\n%s", im, err, strings.Join(tail, "\n"))}
	}
	return nil
}

// readProgress passes the tool's own lines on and keeps the last 25 of all.
func readProgress(r io.Reader, log func(string)) (tail []string) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	scanner.Split(scanLines)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		if text, ok := strings.CutPrefix(line, "I: "); ok {
			log("Preparing the image: " + text)
		}
		if tail = append(tail, line); len(tail) > 25 {
			tail = tail[1:]
		}
	}
	_, _ = io.Copy(io.Discard, r) // never block the tool, whatever it prints
	return tail
}

// scanLines splits at line ends and at the carriage returns of progress bars.
func scanLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}

// buildRights are the capabilities of a build: files of all owners, device nodes and mounts
// of the root, users and processes. Scripts of packages, which tenants choose, are not to
// read or change the packet filter of the host, nor its modules, clock and logs.
const buildRights = "-all,+chown,+dac_override,+dac_read_search,+fowner,+fsetid,+setfcap,+mknod,+sys_admin,+sys_chroot,+kill,+setuid,+setgid,+setpcap,+audit_write"

// buildEnvironment is what scripts of packages see while a base root is built: how the host
// reaches the archive, and nothing else of this process, whose environment may hold keys.
func buildEnvironment(own []string) []string {
	env := []string{"LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	for _, v := range own {
		name, _, _ := strings.Cut(v, "=")
		switch strings.ToLower(name) {
		case "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "apt_config", "tmpdir", "ssl_cert_file", "ssl_cert_dir":
			env = append(env, v)
		}
	}
	return env
}
