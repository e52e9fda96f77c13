//go:build browser

// Package browser drives Chromium in tests, by Debian's headless shell of it: a fresh
// profile per test, no sandbox when root, everything the browser complains about
// collected, a picture when a test fails.
//
// Imported by _test.go files only. Conditions are polled with a deadline; nothing
// sleeps.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"loom/app/testkit"
)

// Patience is how long a condition may take; real machines are behind the pages.
const Patience = 3 * time.Minute

// Options of a browser.
type Options struct {
	// NoScript turns JavaScript off.
	NoScript bool
	// Width of the window, 1280 when 0.
	Width int
}

// Browser is one window of a browser of its own.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	refused    []string
}

// New starts a browser for the test and ends it with the test.
func New(t testing.TB, o Options) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		testkit.Skip(t, "chromium-headless-shell is not installed: apt-get install -y chromium-headless-shell")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	width := o.Width
	if width == 0 {
		width = 1280
	}
	// Chromium still writes to its profile while it ends, so the directory is
	// removed here, after it has.
	profile, err := os.MkdirTemp("", "loom-browser-")
	if err != nil {
		t.Fatal(err)
	}
	// Chromium leaves the directory of its lock in the place for temporary files.
	temp := filepath.Join(profile, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	// Optimizing compilers cost more than they save on pages that live for seconds, and so do
	// processes for the pixels and for forking others. Icons that turn would have the page
	// painted sixty times a second.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Env("TMPDIR="+temp, blindEnv+"="+path),
		chromedp.ExecPath(self), chromedp.NoSandbox, chromedp.UserDataDir(profile), chromedp.WindowSize(width, 1000),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("in-process-gpu", true), chromedp.Flag("no-zygote", true),
		chromedp.Flag("force-prefers-reduced-motion", true), chromedp.Flag("js-flags", "--no-maglev --no-turbofan"))
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(alloc)
	b := &Browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		for _, r := range b.Refused() {
			t.Errorf("the content security policy refused something: %s", r)
		}
		if t.Failed() {
			b.picture()
		}
		end()
		endAlloc()
		os.RemoveAll(profile)
	})
	if err := b.start(o); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return b
}

// start opens the window and begins to listen.
func (b *Browser) start(o Options) error {
	if err := chromedp.Listen(b.ctx, b.listen); err != nil {
		return err
	}
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(b.ctx, log.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(b.ctx, audits.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(b.ctx, runtime.Enable, cdp.Empty{}); return err },
		func() error {
			_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: o.NoScript})
			return err
		},
	} {
		if err := enable(); err != nil {
			return err
		}
	}
	return nil
}

// listen collects errors of scripts, refused content and failed loads.
func (b *Browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := refusal(event); r != "" {
		b.refused = append(b.refused, r)
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !harmless(e.Entry.Text) {
			b.complaints = append(b.complaints, string(e.Entry.Source)+": "+e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// harmless tells errors of loading that are no faults of a page: a refused form (422,
// 409) and a missing page are answers.
func harmless(text string) bool {
	return strings.Contains(text, "the server responded with a status of 4")
}

// Complaints returns what the browser complained about so far: exceptions, content
// that the policy refused, files that did not load.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.complaints...)
}

// Do runs actions, bounded by Patience, and fails the test naming what was tried.
func (b *Browser) Do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	err := chromedp.Do(ctx, actions...)
	for replaced(err) {
		err = chromedp.Do(ctx, actions...)
	}
	if err != nil {
		b.t.Fatalf("%s: %v (at %s)", what, err, b.URL())
	}
}

// replaced tells an element that gave way to another between being found and being used,
// because the page went on: whoever looks at it tries again.
func replaced(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Could not find node with given id")
}

// Get runs an action that gives something, bounded by Patience.
func Get[T any](b *Browser, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v (at %s)", what, err, b.URL())
	}
	return value
}

// URL returns the address of the page.
func (b *Browser) URL() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	url, err := chromedp.Run(ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	return url
}

// Text returns the visible text of the page, "" while one page gives way to
// another.
func (b *Browser) Text() string {
	return look[string](b, `document.body === null ? "" : document.body.innerText`)
}

// look evaluates an expression on the page and gives the zero value while there
// is none: it may be about to change.
func look[T any](b *Browser, expression string) T {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		var zero T
		return zero
	}
	return value
}

// WaitLoaded waits until the page and its scripts have loaded: what is pressed before
// that does what it does without scripts.
func (b *Browser) WaitLoaded() {
	b.t.Helper()
	b.Wait("the end of loading", func() bool { return look[bool](b, `document.readyState === "complete"`) })
}

// WaitText waits until the page shows a text; scripts or not.
func (b *Browser) WaitText(wanted string) {
	b.t.Helper()
	b.Wait(fmt.Sprintf("the text %q", wanted), func() bool { return strings.Contains(b.Text(), wanted) })
}

// Wait polls a condition, often at first: most are met at once or soon.
func (b *Browser) Wait(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(Patience)
	for pause := 10 * time.Millisecond; !ok(); pause = min(pause*3/2, 100*time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited %s for %s; the page %s says:\n%s", Patience, what, b.URL(), b.Text())
		}
		select {
		case <-b.ctx.Done():
			b.t.Fatal("the browser ended")
		case <-time.After(pause):
		}
	}
}

// WaitTrue waits until an expression is true on the page. That it fails while one page gives way
// to another does not count.
func (b *Browser) WaitTrue(what, expression string) {
	b.t.Helper()
	b.Wait(what, func() bool { return look[bool](b, expression) })
}

// Reload loads the page again, as people without scripts do.
func (b *Browser) Reload() {
	b.t.Helper()
	b.Do("reload", chromedp.Reload())
}

// Picture stores what the window shows.
func (b *Browser) Picture(path string) {
	b.t.Helper()
	if err := os.WriteFile(path, Get(b, "take a picture", chromedp.FullScreenshot(100)), 0o644); err != nil {
		b.t.Error(err)
	}
}

// picture keeps a picture of a failed test outside its temporary directory.
func (b *Browser) picture() {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Logf("no picture of the failure: %v", err)
		return
	}
	path := filepath.Join(os.TempDir(), "loom-"+strings.ReplaceAll(b.t.Name(), "/", "-")+".png")
	if err := os.WriteFile(path, png, 0o644); err == nil {
		b.t.Logf("picture of the failure: %s", path)
	}
}
