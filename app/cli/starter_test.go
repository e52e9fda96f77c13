//go:build e2e

package cli

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redis sends one command without spaces in its words and gives the answer.
func redis(host string, words ...string) (string, error) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(host, "6379"), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // reading will tell
	if _, err := fmt.Fprintf(c, "%s\r\n", strings.Join(words, " ")); err != nil {
		return "", err
	}
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "$") && line != "$-1\r\n" { // a text: its length came first
		line, err = r.ReadString('\n')
	}
	return strings.TrimSpace(line), err
}

// TestRedisReplicated writes on the primary and reads on the replicas.
func TestRedisReplicated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	user := w.user()
	id := user.create("redis-replicated", 3, nil)
	user.waitActive(id)
	cluster := user.cluster(id)
	primary, replicas := address(t, cluster, "redis-primary"), addresses(t, cluster, "redis-replica")
	if len(replicas) != 2 {
		t.Fatalf("replicas at %v", replicas)
	}
	if got, err := redis(primary, "SET", "colour", "green"); got != "+OK" {
		t.Fatalf("write on the primary: %q, %v", got, err)
	}
	for _, replica := range replicas {
		w.eventually("the value on "+replica, func() error {
			got, err := redis(replica, "GET", "colour")
			if err == nil && got != "green" {
				err = fmt.Errorf("got %q", got)
			}
			return err
		})
		if got, err := redis(replica, "SET", "colour", "red"); !strings.HasPrefix(got, "-READONLY") {
			t.Errorf("write on a replica: %q, %v", got, err)
		}
	}
	user.remove(id)
	w.noMachines()
}

var counted = regexp.MustCompile(`<strong>([0-9]+)</strong>`)

// TestVisitCounter counts visits through every front of the cluster.
func TestVisitCounter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	user := w.user()
	id := user.create("visit-counter", 3, nil)
	user.waitActive(id)
	cluster := user.cluster(id)
	if len(cluster.Links) == 0 {
		t.Fatal("the cluster shows no link")
	}
	urls := []string{cluster.Links[0].URL}
	for _, front := range addresses(t, cluster, "counter-front") {
		urls = append(urls, "http://"+front+"/")
	}
	for i, url := range urls {
		status, body, err := fetch(url)
		m := counted.FindStringSubmatch(body)
		if err != nil || m == nil {
			t.Fatalf("%s: %d %v %s", url, status, err, body)
		}
		if n, _ := strconv.Atoi(m[1]); n != i+1 {
			t.Errorf("visit %d, at %s, is counted as %d", i+1, url, n)
		}
	}
	user.remove(id)
	w.noMachines()
}

// TestBareImage installs the packages of services on plain Debian.
func TestBareImage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fetchOne := exec.CommandContext(ctx, "apt-get", "-qq", "download", "hello")
	fetchOne.Dir = t.TempDir()
	if out, err := fetchOne.CombinedOutput(); err != nil {
		t.Skipf("this host reaches no Debian mirror: %v\n%s", err, out)
	}
	w := newWorld(t)
	w.up()
	user := w.user()
	id := user.create("redis-replicated", 2, map[string]any{"imagetype": "debian12-bare"})
	// Both machines fetch and install packages, after the base root they share was built.
	poll(t, 2*patience, "the cluster on plain Debian", func() error {
		if status := user.cluster(id).Status; status != "active" {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
	installs := 0
	for _, task := range user.tasks(id, 1) {
		if task.Action != "install" {
			continue
		}
		installs++
		_, log, err := user.try("GET", fmt.Sprintf("/v2/clusters/%s/operations/1/tasks/%d/log?limit=500", id, task.Number), nil)
		if err != nil || !strings.Contains(string(log), "Setting up redis-server") {
			t.Errorf("install on %s fetched nothing: %v %s", task.Node, err, log)
		}
	}
	if installs != 2 {
		t.Errorf("%d installs, want 2", installs)
	}
	user.remove(id)
	w.noMachines()
}
