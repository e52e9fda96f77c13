package loom

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestReadLoad: points are read up to now, and no older ones than of a day.
func TestReadLoad(t *testing.T) {
	t.Parallel()
	point := func(cpu, memory, disk int) []byte { return Load{cpu, memory, disk}.Bytes() }
	two := slices.Concat(point(1, 2, 3), point(100, -1, 400))
	full := slices.Repeat(point(7, 7, 7), LoadPoints)
	for name, c := range map[string]struct {
		points    []byte
		slot, now int64
		start     int64 // slot
		cpu       []int
	}{
		"nothing":               {nil, 0, 1000, 0, nil},
		"two":                   {two, 999, 1000, 998, []int{1, 100}},
		"one is on its way":     {two, 998, 1000, 997, []int{1, 100}},
		"one is missing":        {two, 997, 1000, 996, []int{1, 100, -1}},
		"the clock is behind":   {two, 1003, 1000, 1002, []int{1, 100}},
		"of the day before":     {two, 700, 1000, 0, nil},
		"the last of a day":     {two, 712, 1000, 712, append([]int{100}, slices.Repeat([]int{-1}, 286)...)},
		"a day":                 {full, 999, 1000, 712, slices.Repeat([]int{7}, LoadPoints)},
		"a day, a while ago":    {full, 712, 1000, 712, append([]int{7}, slices.Repeat([]int{-1}, 286)...)},
		"more than a day":       {append(slices.Clone(full), full...), 999, 1000, 712, slices.Repeat([]int{7}, LoadPoints)},
		"half a point too many": {append([]byte{1, 2, 3}, 9), 999, 1000, 999, []int{1}},
	} {
		got := ReadLoad(c.points, c.slot, c.now)
		if !slices.Equal(got.CPU, c.cpu) || len(got.CPU) != len(got.Memory) || len(got.CPU) != len(got.Disk) {
			t.Errorf("%s: %v, want %v", name, got.CPU, c.cpu)
		}
		if len(c.cpu) > 0 && LoadSlot(got.Start) != c.start {
			t.Errorf("%s: from slot %d, want %d", name, LoadSlot(got.Start), c.start)
		}
	}
	got := ReadLoad(two, 999, 1000)
	if !slices.Equal(got.Memory, []int{2, -1}) || !slices.Equal(got.Disk, []int{3, 100}) {
		t.Errorf("memory %v, disk %v", got.Memory, got.Disk)
	}
}

// TestReadLoadAnything: whatever is stored, a day at most is read, of shares.
func TestReadLoadAnything(t *testing.T) {
	t.Parallel()
	for range 2000 {
		points := make([]byte, rand.IntN(1000))
		for i := range points {
			points[i] = byte(rand.IntN(256))
		}
		slot := rand.Int64N(2000)
		now := slot + rand.Int64N(600) - 2
		got := ReadLoad(points, slot, now)
		if len(got.CPU) > LoadPoints || len(got.CPU) != len(got.Memory) || len(got.CPU) != len(got.Disk) {
			t.Fatalf("%d bytes at %d, now %d: %d, %d and %d values", len(points), slot, now, len(got.CPU), len(got.Memory), len(got.Disk))
		}
		for _, share := range slices.Concat(got.CPU, got.Memory, got.Disk) {
			if share < -1 || share > 100 {
				t.Fatalf("a share of %d", share)
			}
		}
		if len(got.CPU) > 0 && got.Start.Before(time.Unix((now-LoadPoints)*300, 0)) {
			t.Fatalf("it begins at %s", got.Start)
		}
	}
}

func TestLoadSum(t *testing.T) {
	t.Parallel()
	var s LoadSum
	if _, known := s.Mean(); known {
		t.Error("of nothing, something is known")
	}
	s.Add(NoLoad)
	if _, known := s.Mean(); known {
		t.Error("of nothing known, something is known")
	}
	s.Add(Load{10, -1, 0})
	s.Add(Load{21, -1, 0})
	s.Add(Load{-1, -1, 1})
	if mean, known := s.Mean(); !known || mean != (Load{16, -1, 0}) {
		t.Errorf("%+v, %t", mean, known)
	}
}
