package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
)

// fleetNodes is how many nodes each cluster of a measured fleet has.
const fleetNodes = 20

// benchFleet measures how long a fleet preview of an edited service takes over few and over many
// clusters.
func (e *environment) benchFleet(ctx context.Context, scale benchScale) (err error) {
	b, err := e.startBench(ctx, "LOOM_MOCK=true")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata"), nil); err != nil {
		return err
	}
	id, err := b.create(ctx, "mock", fleetNodes)
	if err != nil {
		return err
	}
	if err := b.until(ctx, id, 1); err != nil {
		return err
	}
	if err := b.benchRollout(ctx); err != nil {
		return err
	}
	body, err := b.editedService(ctx, "mock-app")
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "\nFleet preview of an edited service, clusters of %d nodes\n\n  %8s %10s %10s %8s\n", fleetNodes, "clusters", "seconds", "ms each", "changed")
	for _, clusters := range []int{max(scale.clusters/20, fewClusters), scale.clusters} {
		if err := b.fillClusters(ctx, clusters); err != nil {
			return fmt.Errorf("store %d clusters: %w", clusters, err)
		}
		began := time.Now()
		answer, err := b.request(ctx, http.MethodPost, "/v2/fleet-previews", body)
		if err != nil {
			return err
		}
		took := time.Since(began)
		var p struct {
			Clusters int
			Counts   struct {
				InPlace int `json:"in_place"`
				Restart int
			}
		}
		if err := json.Unmarshal(answer, &p); err != nil {
			return fmt.Errorf("answer to a fleet preview: %w", err)
		}
		fmt.Fprintf(e.Out, "  %8d %10.2f %10.2f %8d\n", p.Clusters, took.Seconds(), took.Seconds()*1000/float64(max(p.Clusters, 1)), p.Counts.InPlace+p.Counts.Restart)
	}
	return nil
}

// editedService is the request for a fleet preview of a service that does other work.
func (b *benchInstance) editedService(ctx context.Context, name string) (string, error) {
	data, err := b.request(ctx, http.MethodGet, "/v2/services/"+name, "")
	if err != nil {
		return "", err
	}
	var service struct {
		Provisioner struct {
			Actions map[string]struct{ Fields map[string]string }
		}
	}
	var entry map[string]any
	if err := errors.Join(json.Unmarshal(data, &service), json.Unmarshal(data, &entry)); err != nil {
		return "", fmt.Errorf("read service %s: %w", name, err)
	}
	actions := entry["provisioner"].(map[string]any)["actions"].(map[string]any)
	for action := range service.Provisioner.Actions {
		fields, _ := actions[action].(map[string]any)["fields"].(map[string]any)
		if fields == nil {
			fields = map[string]any{}
		}
		fields["edited"] = "true"
		actions[action].(map[string]any)["fields"] = fields
	}
	body, err := json.Marshal(map[string]any{"kind": "update", "entries": []any{map[string]any{"kind": "services", "entry": entry}}})
	return string(body), err
}

// rolloutClusters is how many clusters of 3 nodes a rollout restarts, rolloutAtOnce how many at
// the same time.
const (
	rolloutClusters = 30
	rolloutAtOnce   = 5
)

// slotsBetween are, of the operations of a rollout, the times between the end of one and the
// beginning of the next in its slot, in seconds.
const slotsBetween = `
WITH o AS (SELECT created_at, ended_at, row_number() OVER (ORDER BY created_at) AS begun, row_number() OVER (ORDER BY ended_at) AS over
	FROM operations WHERE action = 'restart_services')
SELECT extract(epoch FROM next.created_at - before.ended_at)::float8 FROM o AS next JOIN o AS before ON before.over = next.begun - $1 ORDER BY 1`

// benchRollout measures for how long a rollout leaves a slot free between two operations.
func (b *benchInstance) benchRollout(ctx context.Context) error {
	for range rolloutClusters {
		id, err := b.create(ctx, "mock", 3)
		if err != nil {
			return err
		}
		if err := b.until(ctx, id, 1); err != nil {
			return err
		}
	}
	data, err := b.request(ctx, http.MethodPost, "/v2/rollouts", fmt.Sprintf(`{"kind": "restart", "waves": [{"rest": true}], "settings": {"concurrency": %d}}`, rolloutAtOnce))
	if err != nil {
		return err
	}
	var made struct {
		Number int
		Hash   string
	}
	if err := json.Unmarshal(data, &made); err != nil {
		return fmt.Errorf("answer to a rollout: %w", err)
	}
	path := fmt.Sprintf("/v2/rollouts/%d", made.Number)
	if _, err := b.request(ctx, http.MethodPost, path+"/start", fmt.Sprintf(`{"hash": %q}`, made.Hash)); err != nil {
		return err
	}
	err = b.wait(ctx, "the end of the rollout", func() (bool, error) {
		v, err := b.Clusters.Rollout(ctx, b.actor, made.Number)
		if err == nil && v.Status == loom.RolloutStopped {
			err = fmt.Errorf("the rollout stopped: %s", v.Why)
		}
		return v.Status == loom.RolloutComplete, err
	})
	if err != nil {
		return err
	}
	var gaps []float64
	if err := b.System.DB.SelectContext(ctx, &gaps, slotsBetween, rolloutAtOnce); err != nil {
		return err
	}
	times := make([]time.Duration, len(gaps))
	for i, gap := range gaps {
		times[i] = time.Duration(gap * float64(time.Second))
	}
	fmt.Fprintf(b.Out, "\nRollout over %d clusters of 3 nodes, %d at the same time: a slot is free for p50 %.2f s, p95 %.2f s (aim: p50 1.5 s)\n",
		rolloutClusters, rolloutAtOnce, percentile(times, 50).Seconds(), percentile(times, 95).Seconds())
	return nil
}
