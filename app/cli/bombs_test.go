//go:build e2e

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// bombs are what a machine is given: a fork bomb, and something that fills the disk once
// somebody writes into a pipe. The latter needs no process more, of which there are none
// then.
const bombs = `cat > /root/bomb <<'END'
#!/bin/sh
/root/bomb & /root/bomb &
while :; do :; done
END
cat > /root/fill <<'END'
#!/bin/sh
read go < /root/go
i=0
while [ $i -lt 6400 ] && printf '%65536s' x; do i=$((i+1)); done > /root/full
END
chmod 755 /root/bomb /root/fill
mkfifo /root/go
setsid /root/fill > /dev/null 2>&1 < /dev/null &`

// TestBombsBesideLoom lets a machine take all the memory, processes and disk that it can
// get. The service of another machine and Loom itself answer meanwhile, and the cluster
// can be deleted.
func TestBombsBesideLoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	h, user := w.hostMachines(), w.user()
	w.client("demo", "user", "admin").call("PATCH", "/v2/users/user", map[string]any{"sshKeys": []string{h.key.Authorized}}, nil)
	w.client("demo", "admin", "admin").offers("local", "local-small", "mem=160m,pids=100,disk=64m", "debian12", starterImage)
	id := user.create("web-cluster", 2, nil)
	user.waitActive(id)
	cluster := user.cluster(id)
	pages := map[string]string{"http://" + address(t, cluster, "nginx") + "/": "Hello from Loom", w.url + "/login": "Sign in"}
	answers := func(during string) {
		t.Helper()
		for url, want := range pages {
			answer, err := rest.Get(url)
			if err != nil {
				t.Errorf("%s: %v", during, err)
				continue
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != 200 || !strings.Contains(string(body), want) {
				t.Errorf("%s: %s answers %d, %v, %s", during, url, answer.StatusCode, err, body)
			}
		}
		var clusters []struct{ ID string }
		if user.call("GET", "/v2/clusters", nil, &clusters); len(clusters) != 1 || clusters[0].ID != id {
			t.Errorf("%s: clusters %+v", during, clusters)
		}
	}
	var bombed machine
	for _, n := range cluster.Nodes {
		if n.Properties.Addresses[loom.AccessV4] == address(t, cluster, "haproxy") {
			bombed = w.machines()[loom.IdempotencyKey(n.ID, n.Incarnation)]
		}
	}
	if pids, memory := groupFile(t, bombed, "pids.max"), groupFile(t, bombed, "memory.max", "memory.limit_in_bytes"); pids != "100" || memory != strconv.Itoa(160<<20) {
		sshtest.SkipHere(t, "this host does not limit processes and memory of machines: %q and %q", pids, memory)
	}
	conn, err := h.connect(bombed)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run := func(command string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		out, err := conn.Run(ctx, "bomb", remote.Command{Text: command, Root: true, Tail: 1 << 10})
		return out.Stdout, err
	}
	if out, err := run(bombs); err != nil {
		t.Fatal(out, err)
	}
	answers("before anything happens")

	ended := make(chan error)
	go func() {
		_, err := run("python3 -c 'x = bytearray(800 << 20)'")
		ended <- err
	}()
	answers("while a program takes 800 MiB")
	if err := <-ended; err == nil {
		t.Error("a program got 800 MiB in a machine of 160 MiB")
	}

	if out, err := run("setsid /root/bomb > /dev/null 2>&1 < /dev/null &"); err != nil {
		t.Fatal(out, err)
	}
	w.eventually("the fork bomb at its limit", func() error {
		if n, err := strconv.Atoi(groupFile(t, bombed, "pids.current")); err != nil || n < 90 {
			return fmt.Errorf("%d processes, %v", n, err)
		}
		return nil
	})
	answers("beside a fork bomb")

	root := fmt.Sprintf("/proc/%d/root/root/", bombed.PID)
	if err := os.WriteFile(root+"go", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	w.eventually("a full disk", func() error {
		answers("while a disk is filled")
		if startTime(strconv.Itoa(bombed.PID)) != bombed.StartTime {
			return nil // where the kernel does not refuse more, the machine is stopped
		}
		full, err := os.Stat(root + "full")
		if err != nil {
			return err
		}
		before := size
		if size = full.Size(); size != before || size < 56<<20 || size > 64<<20 {
			return fmt.Errorf("the machine runs and has written %d bytes", size)
		}
		return nil
	})
	answers("beside a full disk")
	user.remove(id)
	w.noMachines()
}

// groupFile reads the first of some files that one of the control groups of a machine has,
// "" where none has any.
func groupFile(t *testing.T, m machine, names ...string) string {
	t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", m.PID))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(groups)) {
		tree, path, _ := strings.Cut(line[strings.Index(line, ":")+1:], ":")
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", tree, strings.TrimSpace(path), name)); err == nil {
				return strings.TrimSpace(string(text))
			}
		}
	}
	return ""
}
