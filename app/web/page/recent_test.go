package page

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestRecentKeepsForAMoment(t *testing.T) {
	t.Parallel()
	var r Recent[string, int]
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	readings, wrong := 0, errors.New("no answer")
	var fails error
	read := func(context.Context) (int, error) {
		readings++
		clock = clock.Add(300 * time.Millisecond) // a reading takes its time, and is as old as its beginning
		return readings, fails
	}
	get := func(key string) (int, error) { return r.Of(t.Context(), key, now, read) }
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
	for i := range recentMost + 1 {
		r.keep(time.Duration(i).String(), recentValue[int]{i, clock})
	}
	if len(r.kept) > recentMost {
		t.Errorf("%d are kept", len(r.kept))
	}
}
