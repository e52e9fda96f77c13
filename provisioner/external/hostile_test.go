package external

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
)

const good = `echo '{"t":"result","status":0,"result":{"providerid":"m-1"}}'`

// TestOutcomes: what a plugin says and how it exits, against what comes of it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		name, script string
		status       int
		message      string
		retryable    *bool
		id           any
	}{
		{"success", good, 0, "", nil, "m-1"},
		{"no newline at the end", `printf '%s' '{"t":"result","status":"0","result":{"providerid":42}}'`, 0, "", nil, "42"},
		{"success and exit 1", good + "; exit 1", 1, "the plugin exited with 1 after reporting success", nil, "m-1"},
		{"a failure that was reported", `echo '{"t":"result","status":202,"message":"quota","retryable":false,"retry_after":2.5}'; exit 1`, 202, "quota", &no, nil},
		{"nothing", `exit 0`, 1, "exited with 0 and gave no result", nil, nil},
		{"exit 1", `echo first >&2; echo last words >&2; echo >&2; exit 1`, 1, "last words", nil, nil},
		{"exit 64", `exit 64`, 1, "does not support the action create of lab-provider", &no, nil},
		{"exit 65", `echo bad site >&2; exit 65`, 1, "bad site", &no, nil},
		{"exit 69", `exit 69`, 1, "unavailable", &yes, nil},
		{"exit 75", `exit 75`, 1, "unavailable", &yes, nil},
		{"exit 77", `exit 77`, 201, "credentials were refused", &no, nil},
		{"exit 77 with a machine", `echo '{"t":"state","result":{"providerid":"m-7"}}'; exit 77`, 1, "credentials were refused", &no, "m-7"},
		{"exit 3", `echo what >&2; exit 3`, 1, "the plugin exited with 3: what", nil, nil},
		{"killed", `kill -SEGV $$`, 1, "killed by SIGSEGV", nil, nil},
		{"killed from outside", `kill -TERM $$`, 1, "killed by SIGTERM", nil, nil},
		{"crash after state", `echo '{"t":"state","result":{"providerid":"m-9","zone":"a"}}'; kill -KILL $$`, 1, "killed by SIGKILL", nil, "m-9"},
		{"201 with a machine", `echo '{"t":"result","status":201,"message":"no","result":{"providerid":"m-2"}}'`, 1, "no", nil, "m-2"},
		{"no providerid", `echo '{"t":"result","status":0,"result":{}}'`, 1, "without its providerid", nil, nil},
		{"two results", good + `; echo '{"t":"result","status":1}'`, 0, "", nil, "m-1"},
		{"no status", `echo '{"t":"result","message":"x"}'`, 1, "no usable result: “status” has to be a whole number", nil, nil},
		{"a status of half", `echo '{"t":"result","status":0.5}'`, 1, "no usable result", nil, nil},
		{"addresses of numbers", `echo '{"t":"result","status":0,"ipaddresses":{"access_v4":1}}'`, 1, "“ipaddresses.access_v4” has to be a text", nil, nil},
		{"a machine that is a list", `echo '{"t":"result","status":0,"result":{"providerid":["a"]}}'`, 1, "“providerid” has to be a text", nil, nil},
		{"a number that no database takes", `echo '{"t":"result","status":0,"result":{"providerid":"x","n":1e99999}}'`, 1, "out of range", nil, nil},
		{"nothing said about a failure", `echo '{"t":"result","status":5}'`, 5, "failed without saying why", nil, nil},
		{"a NUL", `printf '{"t":"result","status":0,"result":{"providerid":"m\\u00001"}}\n'`, 0, "", nil, "m1"},
		{"secrets in the message", `echo '{"t":"result","status":1,"message":"refused s3cr3t-t0ken","stderr":"s3cr3t-t0ken"}'`, 1, "refused [redacted]", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &record{}
			got := create(t, t.Context(), host(t), "cat >/dev/null\n"+c.script, r)
			if got.Status != c.status || !strings.Contains(got.Message, c.message) || got.Result["providerid"] != c.id {
				t.Errorf("got %+v\n%s", got, r.text())
			}
			if (got.Retryable == nil) != (c.retryable == nil) || got.Retryable != nil && *got.Retryable != *c.retryable {
				t.Errorf("retryable: %v", got.Retryable)
			}
			if strings.Contains(fmt.Sprint(got)+r.text(), "s3cr3t-t0ken") {
				t.Errorf("a secret came through: %+v\n%s", got, r.text())
			}
		})
	}
}

// TestHostile: plugins that misbehave harm neither the host nor the facts.
func TestHostile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ name, script, log string }{
		{"does not read its input", good, ""},
		{"closes its input", "exec <&-\n" + good, ""},
		{"prints hundreds of megabytes", `dd if=/dev/zero bs=1M count=300 2>/dev/null; echo; ` + good, "313524224 bytes are lost"},
		{"a line of 2 MiB", `head -c 2097152 /dev/zero | tr '\0' x; echo; ` + good, "1048576 bytes are lost"},
		{"a line of half a MiB", `head -c 524288 /dev/zero | tr '\0' y; echo; ` + good, "stdout: yyyy"},
		{"bad UTF-8", `printf 'caf\351 \000 end\n'; ` + good, "caf\uFFFD  end"},
		{"bad JSON", `echo '{"t":"log",'; echo '{"t":1}'; echo '[1]'; echo '{}'; ` + good, `stdout: {"t":"log",`},
		{"unknown messages", `echo '{"t":"dance"}'; echo '{"t":"dance"}'; ` + good, "messages of type “dance” are not known"},
		{"endless nesting", `awk 'BEGIN{printf "{\"t\":\"state\",\"result\":";for(i=0;i<200;i++)printf "{\"a\":";printf "1";for(i=0;i<200;i++)printf "}";print "}"}'; ` + good, "levels deep"},
		{"a state that is not its", `echo '{"t":"state","result":{"cluster":"mine","providerid":"m-1"}}'; ` + good, "“cluster” is refused"},
		{"a child keeps the pipe", `sleep 300 & ` + good, ""},
		{"a child in a session of its own", `setsid sleep 300 & ` + good, ""},
		{"a daemon", `(setsid sh -c 'trap "" TERM HUP; sleep 300 & sleep 300' &) ; ` + good, ""},
		{"unreadable scratch", `mkdir -p "$TMPDIR/a/b"; chmod 000 "$TMPDIR/a"; ` + good, ""},
		{"secrets on stderr", `printf 'token s3cr3t-t0ken %s\n' "$(printf s3cr3t-t0ken | base64)" >&2; ` + good, "stderr: token [redacted] [redacted]"},
		{"a secret that is made up", `echo '{"t":"secret","value":"Kx8#initial"}'; echo 'it is Kx8#initial'; ` + good, "stdout: it is [redacted]"},
		{"a secret across lines of " + long, `head -c 8190 /dev/zero | tr '\0' z; echo 's3cr3t-t0ken'; ` + good, "[redacted]"},
		{"levels", `printf '%s\n' '{"t":"log","level":"error","msg":"e\nf"}'; echo '{"t":"log","level":"debug","msg":"hush"}'; echo '{"t":"progress","msg":"half","percent":50,"phase":"boot"}';` + good, "loom: error: e\nloom: f\nloom: boot: half (50 %)"},
	} {
		t.Run(c.name[:min(len(c.name), 40)], func(t *testing.T) {
			t.Parallel()
			r := &record{}
			got := create(t, t.Context(), host(t), c.script, r)
			if got.Status != 0 || got.Result["providerid"] != "m-1" {
				t.Errorf("got %+v", got)
			}
			text := r.text()
			if whole := strings.ReplaceAll(text, "\nstdout: ", ""); !strings.Contains(text, c.log) && !strings.Contains(whole, c.log) {
				t.Errorf("the log lacks %q: %.2000s", c.log, text)
			}
			if strings.Contains(text, "s3cr3t-t0ken") || strings.Contains(text, "Kx8#initial") || strings.Contains(text, "hush") {
				t.Errorf("the log shows what is hidden: %.2000s", text)
			}
			if r.bytes > 3*MaxLine {
				t.Errorf("the log has %d bytes", r.bytes)
			}
			for _, line := range r.lines {
				if len(line) > remote.MaxLine {
					t.Errorf("a line of %d bytes", len(line))
				}
			}
		})
	}
}

// TestCancelled: SIGTERM reaches the whole group; who ignores it is killed; what
// was said until then is kept.
func TestCancelled(t *testing.T) {
	t.Parallel()
	stubborn := errors.New("aborted by ann")
	for _, c := range []struct {
		name, script string
		status       int
		message      string
	}{
		{"obeys", `echo '{"t":"state","result":{"providerid":"m-1"}}'; echo ready; sleep 300`, -1, "cancelled: aborted by ann"},
		{"cleans up", `trap 'echo "{\"t\":\"state\",\"result\":{\"providerid\":\"m-1\"}}"; exit 143' TERM; echo ready; sleep 300 & wait`, -1, "cancelled"},
		{"says what it came to", `trap 'echo "{\"t\":\"result\",\"status\":-1,\"result\":{\"providerid\":\"m-1\"}}"; exit 130' TERM; echo ready; sleep 300 & wait`, -1, "cancelled"},
		{"is done all the same", `trap 'echo "{\"t\":\"result\",\"status\":0,\"result\":{\"providerid\":\"m-1\"}}"; exit 0' TERM; echo ready; sleep 300 & wait`, 0, ""},
		{"ignores SIGTERM", `trap '' TERM; echo '{"t":"state","result":{"providerid":"m-1"}}'; echo ready; while :; do sleep 300; done`, -1, "cancelled"},
		{"stops itself", `echo '{"t":"state","result":{"providerid":"m-1"}}'; echo ready; kill -STOP $$`, -1, "cancelled"},
		{"writes without end", `trap '' TERM; echo '{"t":"state","result":{"providerid":"m-1"}}'; echo ready; yes`, -1, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			r := &record{on: func(line string) {
				if line == "ready" {
					cancel(stubborn)
				}
			}}
			got := create(t, ctx, host(t), c.script, r)
			if got.Status != c.status || !strings.Contains(got.Message, c.message) || got.Result["providerid"] != "m-1" {
				t.Errorf("got %+v\n%.1000s", got, r.text())
			}
		})
	}
}

// TestLimits: the manifest's time limit, silence, a context that has ended, and a
// sink that cannot store.
func TestLimits(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.silence = 300 * time.Millisecond
	if got := create(t, t.Context(), h, `echo a; exec sleep 300`, &record{}); got.Status != -1 || !strings.Contains(got.Message, "no sign of life for 300ms") {
		t.Errorf("a silent plugin: %+v", got)
	}
	h = host(t)
	p := load(t, h, plant(t, KindProvider, `exec sleep 300`, func(m map[string]any) { m["timeouts"] = map[string]int{"create": 1} }))
	got, err := h.Provider(p, "lab-provider").Create(t.Context(), task(loom.ActionCreate), &record{})
	if err != nil || got.Status != -1 || got.Message != "timed out after 1 s, the limit that the plugin sets itself" {
		t.Errorf("the plugin's own limit: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone already"))
	marker := filepath.Join(t.TempDir(), "ran")
	if got := create(t, ctx, h, "touch "+marker, &record{}); got.Status != -1 || got.Message != "gone already" {
		t.Errorf("a context that has ended: %+v", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the plugin ran although its context had ended")
	}
	broken := errors.New("the database is away")
	p = load(t, h, plant(t, KindProvider, `echo '{"t":"state","result":{"providerid":"m-1"}}'; exec sleep 300`, nil))
	got, err = h.Provider(p, "lab-provider").Create(t.Context(), task(loom.ActionCreate), &record{refuse: broken})
	if !errors.Is(err, broken) || got.Result["providerid"] != "m-1" {
		t.Errorf("a sink that cannot store: %+v, %v", got, err)
	}
	nothingLeft(t, h)
}

// TestStateIsStoredAtOnce: while the plugin still runs.
func TestStateIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	r := &record{}
	release := filepath.Join(t.TempDir(), "release")
	r.on = func(line string) {
		if line != "ready" {
			return
		}
		r.mu.Lock()
		id := r.facts["providerid"]
		r.mu.Unlock()
		if id != "m-1" {
			t.Errorf("not stored while the plugin runs: %v", id)
		}
		if err := os.WriteFile(release, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	got := create(t, t.Context(), host(t), fmt.Sprintf(`echo '{"t":"state","result":{"providerid":"m-1"}}'; echo ready; while [ ! -e %s ]; do sleep 0.02; done; %s`, release, good), r)
	if got.Status != 0 {
		t.Errorf("%+v", got)
	}
}
