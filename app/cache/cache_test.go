package cache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"
)

func TestCacheKeepsForAMoment(t *testing.T) {
	t.Parallel()
	r := Cache[string, int]{Age: time.Second, Most: 100}
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	readings, wrong := 0, errors.New("no answer")
	var fails error
	read := func(context.Context) (int, error) {
		readings++
		clock = clock.Add(300 * time.Millisecond) // a reading takes its time, and is as old as its beginning
		return readings, fails
	}
	get := func(key string) (int, error) { return r.Get(t.Context(), key, now, read) }
	is := func(what string, want int, wantErr error) func(int, error) {
		return func(got int, err error) {
			t.Helper()
			if got != want || !errors.Is(err, wantErr) {
				t.Errorf("%s: %d, %v; want %d, %v", what, got, err, want, wantErr)
			}
		}
	}
	is("the first", 1, nil)(get("a"))
	clock = clock.Add(600 * time.Millisecond)
	is("a moment later", 1, nil)(get("a"))
	is("another", 2, nil)(get("b"))
	clock = clock.Add(200 * time.Millisecond)
	is("when it is old", 3, nil)(get("a"))
	is("not good enough", 4, nil)(r.Renew(t.Context(), "a", now, read))
	is("after that", 4, nil)(get("a"))
	clock = clock.Add(time.Hour)
	fails = wrong
	is("an error", 5, wrong)(get("a"))
	fails = nil
	is("after an error", 6, nil)(get("a"))
	if len(r.kept) != 1 {
		t.Errorf("%d are kept, of which one is recent", len(r.kept))
	}
	for i := range 150 {
		r.keep(time.Duration(i).String(), entry[int]{i, clock})
	}
	if len(r.kept) != 100 {
		t.Errorf("%d are kept", len(r.kept))
	}
}

// TestCacheBoundsWeights: the oldest go first, what is too heavy is not kept, and without
// an age values are kept as long as there is room.
func TestCacheBoundsWeights(t *testing.T) {
	t.Parallel()
	c := Cache[int, string]{Most: 10, Weight: func(key int) int { return key }}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	keep := func(keys ...int) {
		for _, key := range keys {
			at = at.Add(time.Hour)
			c.keep(key, entry[string]{"value", at})
		}
	}
	for _, step := range []struct{ keep, kept []int }{
		{[]int{3, 4}, []int{3, 4}},
		{[]int{5}, []int{4, 5}},
		{[]int{4, 1}, []int{1, 4, 5}},
		{[]int{2}, []int{1, 2, 4}},
		{[]int{11}, nil},
	} {
		keep(step.keep...)
		sum := 0
		for key := range c.kept {
			sum += key
		}
		if kept := slices.Sorted(maps.Keys(c.kept)); !slices.Equal(kept, step.kept) || sum != c.sum {
			t.Errorf("after %v: %v with the weight %d, want %v", step.keep, kept, c.sum, step.kept)
		}
	}
}

// TestCacheReadsOnce: all who ask at once get what one read; who waits may leave.
func TestCacheReadsOnce(t *testing.T) {
	t.Parallel()
	c := Cache[string, int]{Age: time.Hour, Most: 10}
	begun, answer := make(chan struct{}), make(chan struct{})
	readings := 0
	read := func(context.Context) (int, error) {
		readings++
		close(begun)
		<-answer
		return 7, nil
	}
	got := make(chan int, 2)
	get := func() {
		v, err := c.Get(t.Context(), "a", time.Now, read)
		if err != nil {
			t.Error(err)
		}
		got <- v
	}
	go get()
	<-begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.Get(gone, "a", time.Now, read); !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	go get()
	close(answer)
	if a, b := <-got, <-got; a != 7 || b != 7 || readings != 1 {
		t.Errorf("%d and %d after %d readings", a, b, readings)
	}
}
