package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider/local"
)

// localFigures are those of one cluster of local machines.
type localFigures struct {
	nodes, tasks int
	// answered is the time until the request was answered: solved, planned, stored.
	answered time.Duration
	// active and serving count from the request, too.
	active, serving time.Duration
	// path sums up the tasks of the critical path by action; between is the time
	// from the end of one to the begin of the next.
	path    map[loom.TaskAction]time.Duration
	between time.Duration
	deleted time.Duration
}

// benchLocal measures from "create" to "serving" for each size, on one instance.
func (e *environment) benchLocal(ctx context.Context, sizes []int) (err error) {
	machines, err := local.New(local.Options{DataDir: os.TempDir()}) // only asked, makes nothing
	if err != nil {
		return err
	}
	if err := machines.Ready(); err != nil {
		fmt.Fprintf(e.Out, "No figures of local machines: %v\n\n", err)
		return nil
	}
	b, err := e.startBench(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	images, err := b.StarterImages(ctx)
	if err != nil {
		return err
	}
	if err := b.plugins.Local.Prepare(ctx, images, func(line string) { fmt.Fprintln(e.ErrOut, line) }); err != nil {
		return err
	}
	idle, _ := b.memory()

	fmt.Fprintln(e.Out, "From “create” to “serving”: web-cluster on local machines; serving = every web server has answered through the balancer.")
	fmt.Fprintln(e.Out, "The columns from machine to start are the tasks on the critical path, between is the time between them.")
	fmt.Fprintln(e.Out)
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "nodes\ttasks\tserving\trequest\tmachine\tSSH\tinstall\tconfigure\tinitialize\tstart\tbetween\tfirst pages\tdelete\t")
	for _, n := range sizes {
		f, err := b.measureLocal(ctx, n)
		if err != nil {
			return fmt.Errorf("%d machines: %w", n, err)
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", f.nodes, f.tasks, seconds(f.serving), seconds(f.answered),
			seconds(f.path[loom.ActionCreate]+f.path[loom.ActionConfirm]), seconds(f.path[loom.ActionBootstrap]), seconds(f.path[loom.ActionInstall]),
			seconds(f.path[loom.ActionConfigure]), seconds(f.path[loom.ActionInitialize]), seconds(f.path[loom.ActionStart]),
			seconds(f.between), seconds(f.serving-f.active), seconds(f.deleted))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	now, peak := b.memory()
	fmt.Fprintf(e.Out, "\nMemory of each process (resident, MB)\n\n")
	t = tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "process\tidle\tafter %d nodes\tpeak\t\n", slices.Max(sizes))
	for i, p := range b.processes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", p.name, idle[i], now[i], peak[i])
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// measureLocal makes a web cluster, uses it and deletes it.
func (b *benchInstance) measureLocal(ctx context.Context, nodes int) (localFigures, error) {
	f := localFigures{nodes: nodes}
	began := time.Now()
	id, err := b.create(ctx, "web-cluster", nodes)
	if err != nil {
		return f, err
	}
	f.answered = time.Since(began)
	if err := b.until(ctx, id, 1); err != nil {
		return f, err
	}
	f.active = time.Since(began)
	if err := b.serves(ctx, id); err != nil {
		return f, err
	}
	f.serving = time.Since(began)
	plan, times, err := b.times(ctx, loom.OperationRef{Cluster: id, Number: 1})
	if err != nil {
		return f, err
	}
	f.tasks, f.path = len(plan.Tasks), map[loom.TaskAction]time.Duration{}
	var previous time.Time
	for i, t := range criticalPath(plan, times) {
		f.path[t.Action] += times[t.Number].ended.Sub(times[t.Number].started)
		if i > 0 {
			f.between += times[t.Number].started.Sub(previous)
		}
		previous = times[t.Number].ended
	}
	began = time.Now()
	if _, err := b.request(ctx, http.MethodDelete, "/v2/clusters/"+id.String(), ""); err != nil {
		return f, err
	}
	err = b.until(ctx, id, 2)
	f.deleted = time.Since(began)
	return f, err
}

// create asks for a cluster over REST.
func (b *benchInstance) create(ctx context.Context, template string, nodes int) (loom.ClusterID, error) {
	body := fmt.Sprintf(`{"name": "bench", "clusterTemplate": %q, "numMachines": %d}`, template, nodes)
	data, err := b.request(ctx, http.MethodPost, "/v2/clusters", body)
	if err != nil {
		return 0, err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(data, &made); err != nil {
		return 0, fmt.Errorf("answer to create: %w", err)
	}
	id, ok := loom.ParseClusterID(made.ID)
	if !ok {
		return 0, fmt.Errorf("answer to create: %q is no cluster id", made.ID)
	}
	return id, nil
}

// until waits for the good end of an operation.
func (b *benchInstance) until(ctx context.Context, id loom.ClusterID, number int) error {
	return b.wait(ctx, "the end of the operation", func() (bool, error) {
		op, err := b.Clusters.Operation(ctx, b.actor, loom.OperationRef{Cluster: id, Number: number})
		switch {
		case err != nil:
			return false, err
		case op.Status == loom.OperationComplete:
			return true, nil
		case !op.Ended.IsZero():
			return false, fmt.Errorf("the operation is %s: %s", op.Status, op.Message)
		}
		return false, nil
	})
}

// serves fetches the page until every web server has answered.
func (b *benchInstance) serves(ctx context.Context, id loom.ClusterID) error {
	view, err := b.Clusters.Cluster(ctx, b.actor, id)
	if err != nil {
		return err
	}
	missing, address := map[string]bool{}, ""
	for _, n := range view.Nodes {
		if slices.Contains(n.Services, "nginx") {
			missing[n.Hostname] = true
		} else {
			address = n.Addresses[loom.AccessV4]
		}
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return b.wait(ctx, "an answer of every web server", func() (bool, error) {
		for range len(missing) {
			answer, err := client.Get("http://" + address + "/")
			if err != nil {
				return false, fmt.Errorf("fetch the page: %w", err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK {
				return false, fmt.Errorf("fetch the page: %s, %w", answer.Status, err)
			}
			for name := range missing {
				if strings.Contains(string(body), "<code>"+name+"</code>") {
					delete(missing, name)
				}
			}
		}
		return len(missing) == 0, nil
	})
}

// times reads when each task of an operation ran, by the clock of the database.
func (b *benchInstance) times(ctx context.Context, ref loom.OperationRef) (loom.Plan, map[int]vertexTimes, error) {
	plan, tasks, err := b.Clusters.PlanOf(ctx, b.actor, ref)
	if err != nil {
		return plan, nil, err
	}
	times := map[int]vertexTimes{}
	for n, t := range tasks {
		if t.Started.IsZero() || t.Ended.IsZero() {
			return plan, nil, fmt.Errorf("task %d of operation %s has no times", n, ref)
		}
		times[n] = vertexTimes{t.Started, t.Ended}
	}
	return plan, times, nil
}

// seconds prints a duration in a column.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
