package api

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/testkit/golden"
)

// answerMark divides a recorded request from its answer.
const answerMark = "=== answer\n"

// TestConformance replays recorded requests of the predecessor's clients
// in the order of their names, each against the same world, and
// compares the answers. A line "!finish ID" first ends that cluster's operation, and
// "!fail ID" fails its create before anything is made, "!provisioner ID" lets a provisioner begin.
func TestConformance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.TrustedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	files, err := filepath.Glob("testdata/conformance/*.http")
	w.must(err)
	slices.Sort(files)
	if len(files) < 60 {
		t.Fatalf("only %d recordings", len(files))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		w.must(err)
		request, want, _ := strings.Cut(string(data), answerMark)
		got := w.replay(request)
		if *golden.Update {
			w.must(os.WriteFile(file, []byte(request+answerMark+got), 0o644))
		} else if got != want {
			t.Errorf("%s: answered\n%s\nrecorded is\n%s", file, got, want)
		}
	}
}

// replay sends a recorded request and gives its answer without what differs each time.
func (w *world) replay(request string) string {
	w.t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	if id, finish := strings.CutPrefix(lines[0], "!finish "); finish {
		w.finish(id)
		lines = lines[1:]
	}
	if id, fail := strings.CutPrefix(lines[0], "!fail "); fail {
		w.failCreate(id)
		lines = lines[1:]
	}
	if id, provisioner := strings.CutPrefix(lines[0], "!provisioner "); provisioner {
		w.exec(`INSERT INTO processes (id, kind, host, port, capacity, expires_at) VALUES ($1, 'provisioner', 'host.example', 9100, 10, now() + interval '1 hour')`, id)
		w.exec(`INSERT INTO worker_assignments (tenant_id, process_id, workers) VALUES ('superadmin', $1, 4)`, id)
		lines = lines[1:]
	}
	method, path, _ := strings.Cut(lines[0], " ")
	var headers []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		headers = append(headers, name, strings.TrimSpace(strings.ReplaceAll(value, "$SUPER", w.super)))
	}
	body = strings.TrimSuffix(body, "\n")
	body = strings.ReplaceAll(body, "$SOON", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
	a := w.send(method, path, body, headers...)
	out := strconv.Itoa(a.status) + "\n"
	for _, name := range []string{"Allow", "Connection", "Content-Type", "Link", "WWW-Authenticate"} {
		if value := a.header.Get(name); value != "" {
			out += name + ": " + value + "\n"
		}
	}
	if a.body == "" {
		return out + "Content-Length: " + a.header.Get("Content-Length") + "\n"
	}
	return out + "\n" + steady(a.body)
}

var unsteady = []struct {
	form *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`"instance":"[0-9a-f]{16}"`), `"instance":"REQUEST"`},
	{regexp.MustCompile(`\b1[0-9]{12}\b`), "1111111111111"},
}

func steady(body string) string {
	for _, u := range unsteady {
		body = u.form.ReplaceAllString(body, u.text)
	}
	return body
}
