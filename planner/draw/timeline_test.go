package draw

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestAxisHasRoundTicks(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 9, 10, 0, 3, 0, time.UTC)
	for length, want := range map[time.Duration]struct {
		step  time.Duration
		ticks int
	}{
		0:                     {200 * time.Millisecond, 6},
		90 * time.Second:      {15 * time.Second, 7},
		4 * time.Minute:       {time.Minute, 5},
		59 * time.Minute:      {10 * time.Minute, 6},
		26 * time.Hour:        {6 * time.Hour, 5},
		40 * 24 * time.Hour:   {8 * 24 * time.Hour, 6},
		2500 * 24 * time.Hour: {512 * 24 * time.Hour, 5},
	} {
		a := NewAxis(start, start.Add(length))
		if len(a.Ticks) != want.ticks || len(a.Ticks) > MostTicks || a.Ticks[1].After != want.step || a.Ticks[0].X != 0 {
			t.Errorf("%s: ticks %v, want %d at %s", length, a.Ticks, want.ticks, want.step)
		}
	}
}

func TestBarsStayOnTheAxisAndApart(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		length := time.Duration(1+r.IntN(1_000_000)) * time.Millisecond
		a := NewAxis(start, start.Add(length))
		var spans []Span
		for at := time.Duration(0); at < length && len(spans) < 40; {
			took := time.Duration(r.Int64N(int64(length)/10 + 1))
			spans = append(spans, Span{start.Add(at), start.Add(min(at+took, length))})
			at += took + time.Duration(r.Int64N(int64(length)/20+1))
		}
		last := 0
		for i, p := range a.Place(spans) {
			if p.X < 0 || p.Width < 1 || p.X+p.Width > whole {
				t.Fatalf("seed %d: bar %d is off the axis: %+v", seed, i, p)
			}
			if p.X < last-1 {
				t.Fatalf("seed %d: bar %d begins at %d, the one before ends at %d", seed, i, p.X, last)
			}
			last = p.X + p.Width
		}
	}
}

func TestWhatEndedBeforeItBeganIsStillABar(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC)
	a := NewAxis(start, start.Add(time.Minute))
	p := a.Place([]Span{{start.Add(30 * time.Second), start.Add(29 * time.Second)}, {start.Add(time.Hour), start.Add(2 * time.Hour)}})
	if p[0].X != 50_000 || p[0].Width != leastWidth || p[1].X+p[1].Width > whole {
		t.Errorf("got %+v", p)
	}
}
