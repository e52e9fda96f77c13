package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/wiring"
	"loom/provisioner/simcloud"
)

// What is asked for at once: so many clusters of so many simulated machines.
const (
	hundredClusters = 100
	hundredNodes    = 100
	// hundredAsking is how many requests are under way at once.
	hundredAsking = 8
)

// benchHundred makes many clusters at once and deletes them at once, and says how
// long that took and whether any machine was made twice. It runs only when it is
// asked for: it takes minutes.
func (e *environment) benchHundred(ctx context.Context) (err error) {
	b, err := e.startBench(ctx, "LOOM_MOCK=true", "LOOM_PROVISIONER_CAPACITY=500")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata"), nil); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%d clusters of %d simulated nodes at once, one provisioner\n\n", hundredClusters, hundredNodes)
	ids := make([]loom.ClusterID, hundredClusters)
	err = b.hundred(ctx, "create", 1, ids, func(i int) (err error) {
		ids[i], err = b.create(ctx, "mock", hundredNodes)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.booked(hundredClusters * hundredNodes); err != nil {
		return err
	}
	err = b.hundred(ctx, "delete", 2, ids, func(i int) error {
		_, err := b.request(ctx, "DELETE", "/v2/clusters/"+ids[i].String(), "")
		return err
	})
	if err != nil {
		return err
	}
	return b.booked(0)
}

// hundred begins an operation on each cluster and waits for the end of all.
func (b *benchInstance) hundred(ctx context.Context, what string, number int, ids []loom.ClusterID, begin func(i int) error) error {
	began := time.Now()
	var asking sync.WaitGroup
	next := make(chan int)
	errs := make([]error, len(ids))
	for range hundredAsking {
		asking.Go(func() {
			for i := range next {
				errs[i] = begin(i)
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	asking.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	answered := time.Since(began)
	tasks, again := 0, 0
	for _, id := range ids {
		if err := b.until(ctx, id, number); err != nil {
			return err
		}
	}
	took := time.Since(began)
	for _, id := range ids {
		op, err := b.Clusters.Operation(ctx, b.actor, loom.OperationRef{Cluster: id, Number: number})
		if err != nil {
			return err
		}
		tries, err := store.TaskTriesAllTenants(ctx, b.System.DB, op.Row)
		if err != nil {
			return err
		}
		tasks += len(tries)
		for _, t := range tries {
			again += t.Begun - 1
		}
	}
	fmt.Fprintf(b.Out, "  %s             %s, of that %s until the last request was answered\n", what, seconds(took), seconds(answered))
	fmt.Fprintf(b.Out, "  tasks              %d, %.0f a second; %d attempts beside the first\n", tasks, float64(tasks)/took.Seconds(), again)
	return nil
}

// booked looks into the books of the cloud.
func (b *benchInstance) booked(live int) error {
	books, err := simcloud.Open(filepath.Join(b.dir, "var", wiring.InventedFile))
	if err != nil {
		return err
	}
	defer books.Close()
	r := books.Report()
	fmt.Fprintf(b.Out, "  machines           %d live, %d ever made, %d double creates\n\n", len(r.Live), r.Made, len(r.Doubled))
	if len(r.Doubled) > 0 || len(r.Live) != live {
		return fmt.Errorf("%d machines live, not %d, and %d keys have more than one", len(r.Live), live, len(r.Doubled))
	}
	return nil
}
