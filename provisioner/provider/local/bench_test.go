package local

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
)

// BenchmarkCreate measures from CREATE to the banner of sshd, for machines
// asked for at once, and their removal:
//
//	go test ./provisioner/provider/local -run '^$' -bench Create -benchtime 3x
func BenchmarkCreate(b *testing.B) {
	for _, c := range []struct {
		n        int
		internet bool
	}{{1, false}, {3, false}, {10, false}, {50, false}, {10, true}, {50, true}} {
		n := c.n
		b.Run(fmt.Sprintf("machines=%d/internet=%v", n, c.internet), func(bench *testing.B) {
			l := setUpLocal(bench)
			l.delete(bench, l.warm(bench)) // the tenant's bridge and rules are there
			var each, gone []time.Duration
			var memory int64
			for bench.Loop() {
				start := time.Now()
				times := l.many(n, func(i int) {
					spec := l.spec("acme", i)
					spec.Provider.Fields["internet"] = c.internet
					if result, err := l.Create(l.ctx, spec, &sink{t: bench}); err != nil || result.Status != 0 {
						bench.Errorf("create: %+v, %v", result, err)
						return
					}
					if err := banner(l.machine(bench, spec).Address); err != nil {
						bench.Error(err)
					}
				})
				bench.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-all-up")
				each = append(each, times...)
				memory = l.memoryOf(bench)
				start = time.Now()
				l.many(n, func(i int) { l.delete(bench, l.spec("acme", i)) })
				gone = append(gone, time.Since(start))
			}
			slices.Sort(each)
			slices.Sort(gone)
			bench.ReportMetric(float64(each[len(each)/2].Milliseconds()), "ms-median")
			bench.ReportMetric(float64(each[len(each)-1].Milliseconds()), "ms-slowest")
			bench.ReportMetric(float64(gone[len(gone)/2].Milliseconds()), "ms-all-gone")
			bench.ReportMetric(float64(memory)/float64(n)/1e6, "MB-each")
		})
	}
}

func (b *bundle) warm(t testing.TB) *loom.TaskSpec {
	spec := b.spec("acme", 0)
	b.create(t, spec)
	return spec
}

// many runs f for 0 to n-1 at once and gives the time that each took.
func (b *bundle) many(n int, f func(int)) []time.Duration {
	times := make([]time.Duration, n)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		wg.Go(func() { f(i); times[i] = time.Since(start) })
	}
	wg.Wait()
	return times
}

// banner waits for sshd's first line.
func banner(address string) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := net.DialTimeout("tcp", address+":22", 200*time.Millisecond)
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			var line string
			line, err = bufio.NewReader(conn).ReadString('\n')
			conn.Close()
			if strings.HasPrefix(line, "SSH-2.0-") {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no banner from %s: %w", address, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// memoryOf sums the proportional memory, in bytes, of the machines' first
// processes.
func (b *bundle) memoryOf(t testing.TB) (sum int64) {
	t.Helper()
	machines, err := b.Machines()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", m.PID))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			var kib int64
			if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
				sum += kib << 10
			}
		}
	}
	return sum
}
