package cloud

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
)

var gatedType = loom.PluginType{Base: loom.Base{Name: "gated"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
	"endpoint_url": {Type: "text", Format: loom.FormatURL}, "api_password": {Type: "password"},
}}}}

// at opens the session of a task of a tenant.
func at(tenant loom.TenantID, fields map[string]any) *Session {
	return Options{Insecure: true}.Begin(gatedType, &loom.TaskSpec{Tenant: tenant, Provider: loom.Provider{Fields: fields}, Reach: loom.Anywhere()}, nil, FromNetwork)
}

// TestCallsInFlight: as many calls as the field says are in flight at a cloud, whichever
// task they are of; what a call asks on its way needs no turn; others do not wait for them.
func TestCallsInFlight(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"endpoint_url": "https://in-flight.example/v3", "max_calls": "3"}
	begun, end := make(chan bool, 20), make(chan bool)
	var tasks sync.WaitGroup
	for range 7 {
		s := at("a", fields)
		tasks.Go(func() {
			if err := s.Call(t.Context(), func(ctx context.Context) error {
				return s.Call(ctx, func(context.Context) error {
					begun <- true
					<-end
					return nil
				})
			}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 3 {
		<-begun
	}
	key := at("a", fields).gate
	waiting := func() (n int) {
		inFlight.mu.Lock()
		defer inFlight.mu.Unlock()
		return len(inFlight.at[key].queue)
	}
	for waiting() != 4 {
		select {
		case <-begun:
			t.Fatal("a fourth call began")
		case <-time.After(time.Millisecond):
		}
	}
	// Whoever has to stop leaves the row.
	gone, stop := context.WithCancelCause(t.Context())
	why := errors.New("somebody aborted")
	ended := make(chan error)
	go func() { ended <- at("a", fields).Call(gone, func(context.Context) error { return nil }) }()
	for waiting() != 5 {
		time.Sleep(time.Millisecond)
	}
	stop(why)
	if err := <-ended; !errors.Is(err, why) || waiting() != 4 {
		t.Errorf("%v, %d wait", err, waiting())
	}
	for what, other := range map[string]*Session{
		"another tenant": at("b", fields), "another cloud": at("a", map[string]any{"endpoint_url": "https://other.example"}),
		"a question": Options{}.Sweep(gatedType, &loom.ProviderCall{Tenant: "a", Provider: loom.Provider{Fields: fields}}, FromNetwork),
	} {
		if err := other.Call(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	close(end)
	tasks.Wait()
	inFlight.mu.Lock()
	defer inFlight.mu.Unlock()
	if left := inFlight.at[key]; left != nil {
		t.Errorf("left: %+v", left)
	}
}

// TestWaitingGivesTheTurnBack: a call that the cloud answers when something is done
// keeps nobody else from asking.
func TestWaitingGivesTheTurnBack(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"endpoint_url": "https://waiting.example", "max_calls": 1.0}
	if err := at("a", fields).Call(t.Context(), func(ctx context.Context) error {
		Waiting(ctx)
		Waiting(ctx)
		return at("a", fields).Call(t.Context(), func(context.Context) error { return nil })
	}); err != nil {
		t.Error(err)
	}
}

// TestTurnsComeInOrder: nobody comes before the first who waits, also when there would be
// room for a later one by his own limit.
func TestTurnsComeInOrder(t *testing.T) {
	t.Parallel()
	g := gates{at: map[string]*gate{}}
	first, err := g.enter(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	for n, most := range []int{1, 5, 1} {
		all.Go(func() {
			leave, err := g.enter(t.Context(), "k", most)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, n)
			mu.Unlock()
			leave()
			leave()
		})
		for {
			g.mu.Lock()
			in := len(g.at["k"].queue)
			g.mu.Unlock()
			if in == n+1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	first()
	all.Wait()
	if slices.Sort(order); !slices.Equal(order, []int{0, 1, 2}) || len(g.at) != 0 {
		t.Errorf("%v came, left %v", order, g.at)
	}
}

// TestLimitOfCalls: the field counts, the usual number where it says nothing of use.
func TestLimitOfCalls(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]int{nil: 8, "": 8, "0": 8, "many": 8, "12": 12, 3.0: 3, "101": 8} {
		if got := at("a", map[string]any{"max_calls": value}).most; got != want {
			t.Errorf("%v gives %d", value, got)
		}
	}
}
