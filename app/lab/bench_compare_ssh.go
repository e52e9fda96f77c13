package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// sshUpload is how many bytes go to one machine.
const sshUpload = 64 << 20

// measureSSH connects to all machines, keeps the connections, runs commands over
// them and sends one large file.
func (b *benchInstance) measureSSH(ctx context.Context, key loom.Secret, addresses []string) (err error) {
	conns := make([]*remote.Conn, len(addresses))
	defer func() {
		for _, c := range conns {
			if c != nil {
				err = errors.Join(err, c.Close())
			}
		}
	}()
	memory := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	var dialer remote.Dialer
	before, cpu, began := memory(), ownCPU(), time.Now()
	if err := each(len(addresses), compareWorkers, func(i int) (err error) {
		conns[i], err = dialer.Dial(ctx, remote.Target{Reach: loom.Anywhere(), Address: addresses[i], User: loom.DefaultSSHUser, Keys: []loom.Secret{key}})
		return err
	}); err != nil {
		return err
	}
	connected, connectCPU := time.Since(began), ownCPU()-cpu
	held := memory() - before
	const rounds = 10
	took := make([]time.Duration, rounds*len(conns))
	cpu, began = ownCPU(), time.Now()
	if err := each(len(took), compareWorkers, func(i int) error {
		sent := time.Now()
		_, err := conns[i%len(conns)].Run(ctx, "true", remote.Command{Text: "true"})
		took[i] = time.Since(sent)
		return err
	}); err != nil {
		return err
	}
	ran, runCPU := time.Since(began), ownCPU()-cpu
	slices.Sort(took)
	began = time.Now()
	if err := conns[0].Upload(ctx, remote.File{Path: "/var/tmp/bench", Content: bytes.NewReader(make([]byte, sshUpload))}); err != nil {
		return err
	}
	uploaded := time.Since(began)
	n := float64(len(conns))
	fmt.Fprintf(b.Out, "\nSSH to the same machines, whose servers run on the same host; %d at once\n\n", compareWorkers)
	fmt.Fprintf(b.Out, "  connects per second               %.0f, each %.1f ms of CPU in the client\n", n/connected.Seconds(), milliseconds(connectCPU)/n)
	fmt.Fprintf(b.Out, "  memory per kept connection        %.0f KB\n", float64(held)/n/1000)
	fmt.Fprintf(b.Out, "  commands per second on kept ones  %.0f, p50 %.1f ms, p99 %.1f ms, each %.2f ms of CPU in the client\n", float64(len(took))/ran.Seconds(),
		milliseconds(percentile(took, 50)), milliseconds(percentile(took, 99)), milliseconds(runCPU)/float64(len(took)))
	fmt.Fprintf(b.Out, "  upload of %d MB to one            %.0f MB/s\n", sshUpload>>20, float64(sshUpload)/1e6/uploaded.Seconds())
	return nil
}

// each calls f for 0 to n-1, so many at once.
func each(n, atOnce int, f func(i int) error) error {
	next, errs := make(chan int), make([]error, n)
	var lanes sync.WaitGroup
	for range atOnce {
		lanes.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	lanes.Wait()
	return errors.Join(errs...)
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
