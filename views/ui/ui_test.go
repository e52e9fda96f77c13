package ui_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/ui"
)

func TestEveryStatusHasWordIconAndTone(t *testing.T) {
	t.Parallel()
	var states []ui.State
	for _, s := range loom.ClusterStatuses {
		states = append(states, ui.ClusterState(s))
	}
	for _, s := range loom.OperationStatuses {
		states = append(states, ui.OperationState(s, true))
	}
	for _, s := range loom.TaskStatuses {
		states = append(states, ui.TaskState(s))
	}
	for _, s := range states {
		if s.Tone == "" || s.Icon == "" || s.Word == "" || unicode.IsLower(rune(s.Word[0])) || strings.Contains(s.Word, "_") {
			t.Errorf("%+v is not a state for people", s)
		}
	}
	if got := ui.OperationState(loom.OperationFailing, true).Word; got != "Aborting" {
		t.Errorf("an aborted operation that fails shows as %q", got)
	}
	if got := ui.TaskState("odd"); got.Word != "odd" {
		t.Errorf("an unknown status must be seen, got %+v", got)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 400 * time.Millisecond: "0.4 s", 9990 * time.Millisecond: "9.9 s", 12 * time.Second: "12 s",
		252 * time.Second: "4 min 12 s", 240 * time.Second: "4 min", 3900 * time.Second: "1 h 5 min", 76 * time.Hour: "3 d 4 h",
	} {
		if got := ui.Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	now := time.Date(2026, 6, 12, 14, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		{}: "never", now.Add(-3 * time.Second): "just now", now.Add(-30 * time.Second): "30 s ago",
		now.Add(-time.Minute): "1 min ago", now.Add(30 * time.Hour): "in 30 h", now.Add(72 * time.Hour): "in 3 d",
		now.Add(2*time.Hour - time.Second): "in 2 h", now.Add(89 * time.Minute): "in 1 h", now.Add(-89 * time.Minute): "1 h ago",
		now.Add(3599 * time.Second): "in 1 h", now.Add(6*24*time.Hour + 23*time.Hour): "in 7 d", now.AddDate(-3, 0, 0): "3 y ago", now.AddDate(0, 0, -90): "3 mo ago",
	} {
		if got := ui.Relative(at, now); got != want {
			t.Errorf("Relative(%v) = %q, want %q", at, got, want)
		}
	}
	if got := golden.Render(t, ui.Time(now.Add(-time.Hour), now)); got != `<time datetime="2026-06-12T13:00:00Z" title="Fri 12 Jun 2026, 13:00:00 UTC" data-age="3600">1 h ago</time>` {
		t.Errorf("got %s", got)
	}
}

func TestMiddleEllipsis(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"web-1": "web-1", "0123456789ab": "01234…89ab", "äöüäöüäöüäöü": "äöüäö…üäöü"} {
		if got := ui.MiddleEllipsis(in, 10); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestSecretsAreNotSentBack(t *testing.T) {
	t.Parallel()
	html := golden.Render(t, ui.Field(ui.FieldModel{Name: "password", Label: "Password", Kind: ui.FieldPassword, Value: "hunter2"}))
	if strings.Contains(html, "hunter2") {
		t.Errorf("a password came back: %s", html)
	}
}

func TestUnsafeLinksAreDefused(t *testing.T) {
	t.Parallel()
	html := golden.Render(t, ui.Button(ui.ButtonModel{Label: "x", Href: "javascript:alert(1)"}))
	if strings.Contains(html, "javascript:") {
		t.Errorf("a script link got through: %s", html)
	}
}

func TestFormErrors(t *testing.T) {
	t.Parallel()
	errs := ui.NewFormErrors("Not saved.", []loom.FieldError{{Field: "constraints.size.min", Message: "Too small."}, {Message: "Whole form."}})
	if got := errs.For("constraints.size.min"); got != "Too small." {
		t.Errorf("got %q", got)
	}
	html := golden.Render(t, ui.ErrorSummary(errs))
	field := golden.Render(t, ui.Field(ui.FieldModel{Name: "constraints.size.min", Label: "Least", Error: "Too small."}))
	if !strings.Contains(html, `href="#f-constraints-size-min"`) || !strings.Contains(field, `id="f-constraints-size-min"`) {
		t.Errorf("the summary does not lead to the field:\n%s\n%s", html, field)
	}
	if got := golden.Render(t, ui.ErrorSummary(ui.FormErrors{})); got != "" {
		t.Errorf("no errors gave %q", got)
	}
}

// A block of 200 lines and more must keep every line once, in order.
func TestLogBlocksKeepLines(t *testing.T) {
	t.Parallel()
	var lines []ui.LogLine
	for i := range 450 {
		lines = append(lines, ui.LogLine{Seq: i + 1, Stream: "stdout", Text: "x"})
	}
	html := golden.Render(t, ui.LogLines(lines))
	if got := strings.Count(html, "c-log-block"); got != 3 {
		t.Errorf("%d blocks, want 3", got)
	}
	if got := strings.Count(html, `class="c-log-row"`); got != 450 {
		t.Errorf("%d rows, want 450", got)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]ui.Span{
		"plain":                       {{Text: "plain"}},
		"\x1b[1;31mred\x1b[0m x":      {{Class: "a-red a-bold", Text: "red"}, {Text: " x"}},
		"\x1b[38;5;2mg\x1b[39mn":      {{Class: "a-green", Text: "g"}, {Text: "n"}},
		"\x1b[38;2;1;2;3mrgb\x1b[m":   {{Text: "rgb"}},
		"\x1b[48;5;1;32mg":            {{Class: "a-green", Text: "g"}},
		"\x1b]0;title\x07after":       {{Text: "after"}},
		"\x1b]8;;http://x\x1b\\l":     {{Text: "l"}},
		"\x1b[2K\x1b[1Gup\x1b(B":      {{Text: "up"}},
		"10%\r50%\r100%":              {{Text: "100%"}},
		"tab\there\x00\x08\u202eevil": {{Text: "tab\thereevil"}},
		"\x1b[":                       nil,
		"\x1b":                        nil,
		"\u009b31mred":                {{Class: "a-red", Text: "red"}},
		"\xffbad":                     {{Text: "\ufffdbad"}},
	} {
		got := ui.Spans(in)
		if len(got) != len(want) {
			t.Errorf("%q gave %q, want %q", in, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q gave %q, want %q", in, got, want)
			}
		}
	}
}

var span = regexp.MustCompile(`<span class="a-[a-z]+( a-[a-z]+)*">|</span>`)

// Whatever a machine prints, a log row holds text and our own spans only.
func FuzzLogLine(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[31m<b>\x1b[0m", "\x1b]8;;x\x1b\\", "\x1b[38;5;300mx", "\x1b[\xff", "\u009b", "\r\r", "\x1bP+q\x1b", "a\u202eb", "\xc2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, s := range ui.Spans(line) {
			if s.Text == "" {
				t.Errorf("%q gave an empty span", line)
			}
			for _, r := range s.Text {
				if r != '\t' && unicode.IsControl(r) {
					t.Errorf("%q kept the control character %U", line, r)
				}
			}
		}
		html := golden.Render(t, ui.LogLines([]ui.LogLine{{Seq: 1, Stream: "stdout", Text: line}}))
		_, text, ok := strings.Cut(html, `<span class="c-log-text">`)
		if !ok {
			t.Fatalf("no text in %s", html)
		}
		text = strings.TrimSuffix(text, "</span></div></div>")
		if rest := span.ReplaceAllString(text, ""); strings.ContainsAny(rest, "<>") {
			t.Errorf("%q left markup: %s", line, rest)
		}
	})
}

// TestClusterBadge: what runs comes first, then how the last operation ended, then the health.
func TestClusterBadge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	began := func(action loom.ClusterAction, status loom.OperationStatus, done, total int) loom.Progress {
		return loom.Progress{Action: action, Status: status, Done: done, Total: total, Started: now}
	}
	refused := loom.Progress{Action: loom.ClusterCreate, Status: loom.OperationFailed}
	healthy := loom.ClusterHealth{Status: loom.HealthHealthy, CheckedAt: now}
	maintained := healthy
	maintained.Maintenance = []loom.Maintenance{{}}
	ended := func(action loom.ClusterAction, ago time.Duration) loom.Progress {
		p := began(action, loom.OperationComplete, 2, 2)
		p.Ended = now.Add(-ago)
		return p
	}
	failing := loom.ClusterHealth{Status: loom.HealthFailing, CheckedAt: now.Add(-time.Minute)}
	for want, c := range map[string]struct {
		status loom.ClusterStatus
		p      loom.Progress
		h      loom.ClusterHealth
	}{
		"Scaling up 62 % run":          {loom.ClusterPending, began(loom.ClusterExpand, loom.OperationRunning, 62, 100), healthy},
		"Creating run":                 {loom.ClusterPending, began(loom.ClusterCreate, loom.OperationNotSubmitted, 0, 0), healthy},
		"Creating paused hold":         {loom.ClusterPending, began(loom.ClusterCreate, loom.OperationPaused, 1, 2), healthy},
		"Create failed bad":            {loom.ClusterIncomplete, began(loom.ClusterCreate, loom.OperationFailed, 1, 2), healthy},
		"Update services aborted warn": {loom.ClusterInconsistent, began(loom.ClusterUpgrade, loom.OperationAborted, 1, 2), healthy},
		"Refused idle":                 {loom.ClusterIncomplete, refused, healthy},
		"Healthy ok":                   {loom.ClusterActive, began(loom.ClusterCreate, loom.OperationComplete, 2, 2), healthy},
		"Healthy idle":                 {loom.ClusterActive, began(loom.ClusterCreate, loom.OperationComplete, 2, 2), maintained},
		"Active idle":                  {loom.ClusterActive, began(loom.ClusterCreate, loom.OperationComplete, 2, 2), loom.ClusterHealth{}},
		"Terminated idle":              {loom.ClusterTerminated, began(loom.ClusterDelete, loom.OperationComplete, 2, 2), healthy},
		"Inconsistent warn":            {loom.ClusterInconsistent, began(loom.ClusterExpand, loom.OperationComplete, 2, 2), healthy},
		"Adding keys 50 % run":         {loom.ClusterActive, began(loom.ClusterAuthorize, loom.OperationRunning, 1, 2), healthy},
		"Deleting 0 % run":             {loom.ClusterPending, began(loom.ClusterDelete, loom.OperationRunning, 0, 9), healthy},
		"Checking… idle":               {loom.ClusterActive, ended(loom.RepairRestart, time.Second), failing},
		"Failing bad":                  {loom.ClusterActive, ended(loom.ClusterAuthorize, time.Second), failing},
		"Unknown warn":                 {loom.ClusterActive, ended(loom.ClusterCreate, time.Hour), loom.ClusterHealth{Status: loom.HealthUnknown}},
		"Stopped idle":                 {loom.ClusterActive, ended(loom.StopServices, time.Hour), loom.ClusterHealth{Status: loom.HealthStopped, CheckedAt: now}},
		"Not checked idle":             {loom.ClusterActive, ended(loom.ClusterCreate, time.Hour), loom.ClusterHealth{Status: loom.HealthUnchecked, CheckedAt: now}},
		"Restarting services run":      {loom.ClusterPending, began(loom.RepairRestart, loom.OperationRunning, 0, 0), healthy},
	} {
		s := ui.ClusterBadge(c.status, c.p, c.h, now)
		got := s.Word
		if s.Detail != "" {
			got += " " + s.Detail
		}
		if got += " " + string(s.Tone); got != want {
			t.Errorf("%s, %+v: %q, want %q", c.status, c.p, got, want)
		}
	}
}
