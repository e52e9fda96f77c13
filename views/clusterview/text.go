package clusterview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/ui"
)

// now is the time of the request.
func now(ctx context.Context) time.Time { return ui.ViewerOf(ctx).Now }

// TaskText is a task in words: "install nginx on 1001".
func TaskText(t loom.Task) string {
	return strings.TrimSpace(string(t.Action)+" "+t.Service) + " on " + ui.NodeNumber(t.NodeHostname)
}

// again numbers the attempt of a task that runs again.
func again(t loom.Task) string {
	if t.Status != loom.TaskRunning || t.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", t.Attempt)
}

// TryTime says which attempt comes when: "in 12 s (attempt 2)".
func TryTime(try clusters.NextTry, now time.Time) string {
	when := "now"
	if d := try.At.Sub(now).Round(time.Second); d > 0 {
		when = "in " + ui.Duration(d)
	}
	return fmt.Sprintf("%s (attempt %d)", when, try.Attempt+1)
}

// took is how long something took, or takes so far; "" before it began.
func took(started, ended, now time.Time) string {
	if started.IsZero() {
		return ""
	}
	if ended.IsZero() {
		ended = now
	}
	return ui.Duration(ended.Sub(started))
}
