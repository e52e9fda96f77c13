//go:build e2e

package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"loom/app/api/wire"
	"loom/app/loom"
)

// journal is an open stream of the journal of a service, in lines.
type journal struct {
	c     *client
	lines chan string
	end   func()
}

func (c *client) journal(path string) *journal {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %v, %v", path, answer, err)
	}
	j := &journal{c, make(chan string, 10_000), cancel}
	go func() {
		defer close(j.lines)
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				j.lines <- data
			}
		}
	}()
	return j
}

// want waits for a line that holds a text.
func (j *journal) want(text string) string {
	j.c.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, open := <-j.lines:
			if strings.Contains(line, text) {
				return line
			}
			if !open {
				j.c.t.Fatalf("the journal ends before %q", text)
			}
		case <-limit:
			j.c.t.Fatalf("no line with %q", text)
		}
	}
}

// journalOfNginx follows the journal of a web server on a real machine while it is restarted.
// A secret of the config that comes into it is not shown, and nothing is left on the machine.
func (w *world) journalOfNginx(user *client, id string, web wire.Node, secret string) {
	w.t.Helper()
	pid := w.machines()[loom.IdempotencyKey(web.ID, web.Incarnation)].PID
	tails := func() string {
		out, _ := exec.CommandContext(w.t.Context(), "nsenter", "-t", strconv.Itoa(pid), "-U", "-m", "-p", "pidof", "tail", "timeout").CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	missing := func(name string) {
		w.t.Helper()
		if status, _, err := fetch("http://" + web.Properties.Addresses[loom.AccessV4] + "/" + name); err != nil || status != http.StatusNotFound {
			w.t.Fatalf("/%s: %d, %v", name, status, err)
		}
	}
	path := fmt.Sprintf("/v2/clusters/%s/nodes/%s/services/nginx/journal", id, web.ID)
	missing("before-it-is-read")
	j := user.journal(path)
	j.want("before-it-is-read")
	if tails() == "" {
		w.t.Error("nothing follows the log on the machine")
	}
	missing("file-named-" + secret)
	if line := j.want("file-named-"); strings.Contains(line, secret) || !strings.Contains(line, loom.Redacted) {
		w.t.Errorf("a secret is shown: %s", line)
	}
	user.change(id, "repair", map[string]any{"nodes": []loom.NodeID{web.ID}, "how": loom.RepairByRestart, "services": []string{"nginx"}})
	missing("after-the-restart")
	j.want("after-the-restart")
	j.end()
	w.eventually("the end on the machine", func() error {
		if left := tails(); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
	var last wire.Journal
	user.call("GET", path+"?lines=1", nil, &last)
	if len(last.Lines) != 1 || !strings.Contains(last.Lines[0].Text, "after-the-restart") {
		w.t.Errorf("the last line: %+v", last)
	}
}
