//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/api/wire"
	"loom/app/loom"
)

// client calls the REST API with a token.
type client struct {
	t          *testing.T
	url, token string
	// world, if any, takes note of the machines of clusters that become active.
	world *world
}

// rest keeps connections, as programs do.
var rest = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// client returns one for a user of a tenant.
func (w *world) client(tenant, user, scope string) *client {
	w.t.Helper()
	return &client{w.t, w.url, w.token(tenant, user, scope), w}
}

// user returns a client for the user of demo who makes clusters.
func (w *world) user() *client { return w.client("demo", "user", "clusters:write") }

// try sends one request. A body that is text goes out as it is, anything else as JSON.
func (c *client) try(method, path string, body any) (int, []byte, error) {
	var content []byte
	switch b := body.(type) {
	case nil:
	case string:
		content = []byte(b)
	default:
		var err error
		if content, err = json.Marshal(b); err != nil {
			return 0, nil, err
		}
	}
	r, err := http.NewRequest(method, c.url+path, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := rest.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, data, err
}

// call sends a request that must succeed and reads the answer into out, if any.
func (c *client) call(method, path string, body, out any) {
	c.t.Helper()
	status, data, err := c.try(method, path, body)
	if err != nil || status/100 != 2 {
		c.t.Fatalf("%s %s: %d %s %v", method, path, status, data, err)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(data, out); err != nil {
		c.t.Fatalf("%s %s: %v in %s", method, path, err, data)
	}
}

// create asks for a cluster of the starter catalog and gives its id.
func (c *client) create(template string, machines int, more map[string]any) string {
	c.t.Helper()
	body := map[string]any{"name": "shop", "clusterTemplate": template, "numMachines": machines}
	for key, value := range more {
		body[key] = value
	}
	var made struct{ ID string }
	c.call("POST", "/v2/clusters", body, &made)
	if made.ID == "" {
		c.t.Fatal("the answer to a create has no id")
	}
	return made.ID
}

func (c *client) cluster(id string) (cluster wire.Cluster) {
	c.t.Helper()
	c.call("GET", "/v2/clusters/"+id, nil, &cluster)
	return cluster
}

// waitStatus polls until the cluster has one of the statuses. Any other one but
// pending fails the test with what the operation says.
func (c *client) waitStatus(id string, wanted ...loom.ClusterStatus) {
	c.t.Helper()
	poll(c.t, patience, "cluster "+id+" to be "+fmt.Sprint(wanted), func() error {
		code, data, err := c.try("GET", "/v2/clusters/"+id+"/status", nil)
		if err != nil {
			return err
		}
		var status wire.ClusterStatus
		if err := json.Unmarshal(data, &status); err != nil || code != http.StatusOK {
			return fmt.Errorf("status %d: %s", code, data)
		}
		if slices.Contains(wanted, status.Status) {
			return nil
		}
		if status.Status != loom.ClusterPending {
			_, operations, _ := c.try("GET", "/v2/clusters/"+id+"/operations", nil)
			c.t.Fatalf("cluster %s is %s: %s", id, status.Status, operations)
		}
		return fmt.Errorf("%s: %d of %d tasks", status.Status, status.Completed, status.Total)
	})
}

func (c *client) waitActive(id string) {
	c.t.Helper()
	c.waitStatus(id, loom.ClusterActive)
	if c.world != nil {
		c.world.note()
	}
}

// remove deletes a cluster and waits for its end.
func (c *client) remove(id string) {
	c.t.Helper()
	c.call("DELETE", "/v2/clusters/"+id, nil, nil)
	c.waitStatus(id, loom.ClusterTerminated)
}

// tasks reads the tasks of an operation with their tries.
func (c *client) tasks(id string, n int) []wire.Task {
	c.t.Helper()
	base := fmt.Sprintf("/v2/clusters/%s/operations/%d/tasks", id, n)
	var tasks []wire.Task
	for after := base + "?limit=200"; after != ""; {
		r, err := http.NewRequest("GET", c.url+after, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		answer, err := rest.Do(r)
		if err != nil {
			c.t.Fatal(err)
		}
		var page []wire.Task
		err = errors.Join(json.NewDecoder(answer.Body).Decode(&page), answer.Body.Close())
		if err != nil || answer.StatusCode != http.StatusOK {
			c.t.Fatalf("tasks of %s: %d %v", id, answer.StatusCode, err)
		}
		tasks = append(tasks, page...)
		after = ""
		if m := nextLink.FindStringSubmatch(answer.Header.Get("Link")); m != nil {
			after = strings.TrimPrefix(m[1], c.url)
		}
	}
	for i := range tasks {
		c.call("GET", fmt.Sprintf("%s/%d", base, tasks[i].Number), nil, &tasks[i])
	}
	return tasks
}

var nextLink = regexp.MustCompile(`<([^>]*)>; rel="next"`)

// address returns the address of the first node with a service.
func address(t *testing.T, c wire.Cluster, service string) string {
	t.Helper()
	return addresses(t, c, service)[0]
}

// addresses returns those of all nodes with a service.
func addresses(t *testing.T, c wire.Cluster, service string) []string {
	t.Helper()
	var found []string
	for _, n := range c.Nodes {
		if slices.ContainsFunc(n.Services, func(s loom.Service) bool { return s.Name == service }) {
			found = append(found, n.Properties.Addresses[loom.AccessV4])
		}
	}
	if len(found) == 0 {
		t.Fatalf("cluster %s has no node with %s", c.ID, service)
	}
	return found
}

// hostnames returns the names of all nodes with a service, sorted.
func hostnames(c wire.Cluster, service string) []string {
	var found []string
	for _, n := range c.Nodes {
		if slices.ContainsFunc(n.Services, func(s loom.Service) bool { return s.Name == service }) {
			found = append(found, n.Properties.Hostname)
		}
	}
	slices.Sort(found)
	return found
}

var servedBy = regexp.MustCompile(`<code>([^<]+)</code>`)

// servesFromAll fetches the page of a web cluster through its balancer until
// every web server has answered, and never gets a bad answer. A host so busy that
// a health check took too long gets the time to see the next one.
func (w *world) servesFromAll(c wire.Cluster) {
	w.t.Helper()
	url, wanted, seen := "http://"+address(w.t, c, "haproxy")+"/", hostnames(c, "nginx"), map[string]bool{}
	poll(w.t, patience/3, "answers of all web servers", func() error {
		for range wanted {
			status, body, err := fetch(url)
			m := servedBy.FindStringSubmatch(body)
			if err != nil || status != http.StatusOK || m == nil {
				w.t.Fatalf("%s: %d %v %s", url, status, err, body)
			}
			seen[m[1]] = true
		}
		for _, name := range wanted {
			if !seen[name] {
				return fmt.Errorf("%s never answered through the balancer; those that did: %v", name, seen)
			}
		}
		return nil
	})
}
