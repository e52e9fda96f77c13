//go:build browser

package web_test

import (
	"context"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
)

// TestJournalIsFollowed: lines come to an open page by themselves, and so does the end.
func TestJournalIsFollowed(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	_, _, at := w.journalPage("nginx")
	more, end := make(chan string), make(chan struct{})
	w.follower(func(ctx context.Context, _ *loom.JournalTarget, sink loom.Sink) string {
		sink.Log("stdout", "the first line")
		for {
			select {
			case <-ctx.Done():
				return ""
			case <-end:
				return "The machine does not answer."
			case text := <-more:
				sink.Log("stdout", text)
			}
		}
	})
	b, url := w.browse(t, "ana", browser.Options{})
	b.Open(url + at)
	b.WaitText("the first line")
	b.Inspect("the journal of a service", 320)
	more <- "nginx stops"
	b.WaitText("nginx stops")
	more <- "nginx starts"
	b.WaitText("nginx starts")
	close(end)
	b.WaitText("The machine does not answer.")
	b.WaitGone(".c-log[data-more]")
	if rows := b.TextOf(".c-log"); b.Has("#L5") || !b.Has("#L4") {
		t.Errorf("the page has %q", rows)
	}
}
