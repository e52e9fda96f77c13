//go:build e2e

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// What one of these machines may have: little, so that its bombs leave the processors to
// the tests beside this one.
const smallMachine = "mem=256m,pids=200,disk=200m,cores=0.25"

const forkBomb = `cat > /root/bomb <<'END'
#!/bin/sh
/root/bomb & /root/bomb &
while :; do :; done
END
chmod 755 /root/bomb
setsid /root/bomb > /dev/null 2>&1 < /dev/null &`

// TestBombsBesideLoom: two machines take all the memory, processes and disk that they can
// get, while the service of a third one and Loom answer. The limits hold, and the cluster
// can be deleted. Only outcomes count, however long a busy host takes.
func TestBombsBesideLoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	h, user := w.hostMachines(), w.user()
	w.client("demo", "user", "admin").call("PATCH", "/v2/users/user", map[string]any{"sshKeys": []string{h.key.Authorized}}, nil)
	w.client("demo", "admin", "admin").offers("local", "local-small", smallMachine, "debian12", starterImage)
	id := user.create("web-cluster", 3, nil)
	user.waitActive(id)
	cluster := user.cluster(id)
	at := map[string]machine{}
	for _, m := range w.machines() {
		at[m.Address] = m
	}
	webs := addresses(t, cluster, "nginx")
	if len(webs) != 2 {
		t.Fatalf("web servers: %v", webs)
	}
	serves, busy, full := webs[0], at[address(t, cluster, "haproxy")], at[webs[1]]
	for want, names := range map[string][]string{
		"200": {"pids.max"}, strconv.Itoa(256 << 20): {"memory.max", "memory.limit_in_bytes"}, "25000": {"cpu.max", "cpu.cfs_quota_us"},
	} {
		if got, _, _ := strings.Cut(groupFile(t, busy, names...), " "); got != want {
			sshtest.SkipHere(t, "this host does not limit machines: %s is %q", names[0], got)
		}
	}
	answer := func(during string) {
		t.Helper()
		for url, want := range map[string]string{"http://" + serves + "/": "Hello from Loom", w.url + "/login": "Sign in"} {
			w.eventually(url+" "+during, func() error {
				status, body, err := fetch(url)
				if err == nil && (status != 200 || !strings.Contains(body, want)) {
					err = fmt.Errorf("answers %d: %.200q", status, body)
				}
				return err
			})
		}
		w.eventually("the REST API "+during, func() error {
			status, body, err := user.try("GET", "/v2/clusters/"+id, nil)
			if err == nil && status != 200 {
				err = fmt.Errorf("answers %d: %s", status, body)
			}
			return err
		})
	}
	run := func(m machine, command string) (string, error) {
		conn, err := h.connect(m)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		out, err := conn.Run(ctx, "bomb", remote.Command{Text: command, Root: true, Tail: 1 << 10})
		return out.Stdout, err
	}
	answer("before anything happens")

	ended := make(chan error, 1)
	go func() {
		_, err := run(busy, "python3 -c 'x = bytearray(800 << 20)'")
		ended <- err
	}()
	answer("while a program takes 800 MiB")
	if err := <-ended; err == nil {
		t.Error("a program got 800 MiB in a machine of 256 MiB")
	}

	if out, err := run(full, "setsid dd if=/dev/zero of=/root/full bs=1M count=600 > /root/dd 2>&1 < /dev/null &"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := run(busy, forkBomb); err != nil {
		t.Fatal(out, err)
	}
	w.eventually("the fork bomb at its limit", func() error {
		if n, err := strconv.Atoi(groupFile(t, busy, "pids.current")); err != nil || n < 180 || n > 200 {
			return fmt.Errorf("%d processes, %v", n, err)
		}
		return nil
	})
	answer("beside a fork bomb")
	root := fmt.Sprintf("/proc/%d/root/root/", full.PID)
	w.eventually("a full disk", func() error {
		if startTime(strconv.Itoa(full.PID)) != full.StartTime {
			return nil // where the kernel does not refuse more, the machine is stopped
		}
		said, err := os.ReadFile(root + "dd")
		if err == nil && !strings.Contains(string(said), "No space left") && !strings.Contains(string(said), "quota exceeded") {
			err = fmt.Errorf("the machine runs, and dd says %q", said)
		}
		return err
	})
	answer("beside a full disk")
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
