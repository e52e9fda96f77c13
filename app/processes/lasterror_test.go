package processes_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

// TestTroubleIsTold: the list of processes shows the last error of each, also of the one
// before under another id.
func TestTroubleIsTold(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	f := processes.New(db.DB, processes.Options{Lease: time.Minute, RenewEvery: 20 * time.Millisecond})
	trouble := &processes.LastError{}
	log := trouble.Log(slog.New(slog.DiscardHandler)).With("process_id", "p").WithGroup("g")
	live := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		id, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessScheduler, LastError: trouble})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- f.HoldLease(ctx, id, nil, func() bool { return false }, func(processes.Renewal) {}) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := f.Deregister(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
	}
	shows := func(want string) {
		t.Helper()
		waitFor(t, "the error "+want, func() bool {
			all, err := f.List(t.Context(), superadmin, "")
			return err == nil && len(all) == 1 && strings.HasPrefix(all[0].Trouble, want) && !all[0].TroubleAt.IsZero() && len([]rune(all[0].Trouble)) <= 501
		})
	}
	log.Info("all is well")
	log.Warn("not so well", "error", errors.New("odd"))
	stop := live()
	log.Error("it broke", "error", errors.New("no route to host"), "task", 7)
	shows("it broke: no route to host")
	log.Warn("not so well again")
	log.Error(strings.Repeat("long ", 300) + "\x00")
	shows("long long")
	stop()
	stop = live()
	shows("long long")
	stop()
}
