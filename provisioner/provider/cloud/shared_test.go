package cloud

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
)

// TestShared: one of all who ask the same asks the cloud, and all get its answer;
// nobody else does, and what failed is asked again.
func TestShared(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	fields := map[string]any{"endpoint_url": "https://shared.example"}
	get := func(ctx context.Context, s *Session, ask func(context.Context) (*int, time.Time, error), about ...string) (*int, error) {
		return Shared(ctx, s, about, ask)
	}
	token := func(context.Context) (*int, time.Time, error) {
		n := int(asked.Add(1))
		return &n, time.Time{}, nil
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if n, err := get(t.Context(), at("a", fields), token, "one"); err != nil || *n != 1 {
				t.Errorf("%v, %v", n, err)
			}
		})
	}
	all.Wait()
	for what, other := range map[string]struct {
		s     *Session
		about string
	}{
		"another tenant": {at("b", fields), "one"}, "other credentials": {at("a", fields), "two"},
		"another authority": {at("a", map[string]any{"api_ca": "x"}), "one"},
		"another reach":     {Options{Insecure: true}.Begin(gatedType, &loom.TaskSpec{Tenant: "a"}, nil, FromNetwork), "one"},
	} {
		before := asked.Load()
		if n, err := get(t.Context(), other.s, token, other.about); err != nil || *n == 1 || asked.Load() != before+1 {
			t.Errorf("%s got %v, %v", what, n, err)
		}
	}
	// A probe hears what is so now, and keeps it to itself.
	probe := Options{Insecure: true}.Ask(gatedType, &loom.ProviderCall{Tenant: "a", Provider: loom.Provider{Fields: fields}, Reach: loom.Anywhere()}, FromNetwork)
	fresh, err := get(t.Context(), probe, token, "one")
	known, _ := get(t.Context(), at("a", fields), token, "one")
	if err != nil || known == fresh || *known != 1 {
		t.Errorf("a probe got %v, %v, later %v", *fresh, err, *known)
	}
	fresh = known
	// What does not hold any longer is dropped once.
	Forget(at("a", fields), []string{"one"}, fresh)
	renewed, _ := get(t.Context(), at("a", fields), token, "one")
	Forget(at("a", fields), []string{"one"}, fresh)
	if kept, _ := get(t.Context(), at("a", fields), token, "one"); kept != renewed || kept == fresh {
		t.Errorf("%d after %d", *kept, *renewed)
	}
	// What ends soon is not kept.
	short := func(context.Context) (*int, time.Time, error) {
		n := int(asked.Add(1))
		return &n, time.Now().Add(30 * time.Second), nil
	}
	one, _ := get(t.Context(), at("a", fields), short, "short")
	if two, _ := get(t.Context(), at("a", fields), short, "short"); one == two {
		t.Error("a token that runs out is used")
	}
}

// TestSharedFailures: those who wait hear why it failed, and who comes later asks again.
// That somebody had to stop is no answer for others.
func TestSharedFailures(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"endpoint_url": "https://failing.example"}
	about := []string{"failing"}
	refused := errors.New("refused")
	var asked atomic.Int32
	asking, answer := make(chan bool), make(chan bool)
	leader := make(chan error)
	go func() {
		_, err := Shared(t.Context(), at("a", fields), about, func(context.Context) (string, time.Time, error) {
			asked.Add(1)
			close(asking)
			<-answer
			return "", time.Time{}, refused
		})
		leader <- err
	}()
	<-asking
	waiter := make(chan error)
	go func() {
		_, err := Shared(t.Context(), at("a", fields), about, func(context.Context) (string, time.Time, error) {
			asked.Add(1)
			return "late", time.Time{}, nil
		})
		waiter <- err
	}()
	ended, stop := context.WithCancelCause(t.Context())
	stop(refused)
	if _, err := Shared(ended, at("a", fields), about, func(context.Context) (string, time.Time, error) { return "", time.Time{}, nil }); !errors.Is(err, refused) {
		t.Errorf("whoever had to stop waits on: %v", err)
	}
	close(answer)
	if err := <-leader; !errors.Is(err, refused) {
		t.Error(err)
	}
	// The waiter came before or after the end, by chance.
	if err := <-waiter; err != nil && !errors.Is(err, refused) {
		t.Error(err)
	}
	if got, err := Shared(t.Context(), at("a", fields), about, func(context.Context) (string, time.Time, error) { return "again", time.Time{}, nil }); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}

	stopped, stop := context.WithCancelCause(t.Context())
	asking = make(chan bool)
	about = []string{"stopped"}
	go func() {
		_, err := Shared(stopped, at("a", fields), about, func(ctx context.Context) (string, time.Time, error) {
			close(asking)
			<-ctx.Done()
			return "", time.Time{}, ctx.Err()
		})
		leader <- err
	}()
	<-asking
	go func() {
		_, err := Shared(t.Context(), at("a", fields), about, func(context.Context) (string, time.Time, error) { return "mine", time.Time{}, nil })
		waiter <- err
	}()
	stop(refused)
	if err := errors.Join(<-waiter); err != nil {
		t.Errorf("another one had to stop, and %v", err)
	}
	<-leader
}
