package loom

import "time"

// The load of a machine is kept for LoadPoints steps of LoadStep, which is a day.
const (
	LoadStep   = 5 * time.Minute
	LoadPoints = 288
)

// Load is what a machine has in use of its processors, memory and disk, in percent; -1: not
// known.
type Load struct {
	CPU, Memory, Disk int
}

// NoLoad is that of a machine that says nothing.
var NoLoad = Load{-1, -1, -1}

// LoadPoint is the load of a machine over one step.
type LoadPoint struct {
	Node        NodeID
	Incarnation int
	Load
}

// unknownShare is how a share that is not known is stored.
const unknownShare = 255

// Bytes returns the point as it is stored.
func (l Load) Bytes() []byte {
	out := make([]byte, 0, 3)
	for _, share := range []int{l.CPU, l.Memory, l.Disk} {
		if share < 0 {
			share = unknownShare
		} else {
			share = min(share, 100)
		}
		out = append(out, byte(share))
	}
	return out
}

// NodeLoad is the load of a machine over the last day: a value for each step from Start, -1
// where it is not known. It is empty where nothing was recorded.
type NodeLoad struct {
	Start             time.Time
	CPU, Memory, Disk []int
}

// ReadLoad reads points as they are stored, the last of which is that of a slot, as of a
// later slot. The point of the slot before now may still be on its way and is not missed.
func ReadLoad(points []byte, slot, now int64) NodeLoad {
	count := int64(len(points) / 3)
	last := max(slot, now-2)
	first := max(slot-count+1, now-LoadPoints, last-LoadPoints+1)
	if count == 0 || first > slot {
		return NodeLoad{}
	}
	load := NodeLoad{Start: time.Unix(first*int64(LoadStep.Seconds()), 0)}
	for s := first; s <= last; s++ {
		point := NoLoad
		if at := 3 * (s - slot + count - 1); s <= slot {
			point = Load{readShare(points[at]), readShare(points[at+1]), readShare(points[at+2])}
		}
		load.CPU, load.Memory, load.Disk = append(load.CPU, point.CPU), append(load.Memory, point.Memory), append(load.Disk, point.Disk)
	}
	return load
}

func readShare(b byte) int {
	if b > 100 {
		return -1
	}
	return int(b)
}

// LoadSlot returns the slot of a time.
func LoadSlot(at time.Time) int64 { return at.Unix() / int64(LoadStep.Seconds()) }

// LoadSum adds up the loads that were seen within a step.
type LoadSum struct {
	sum, count [3]int
}

// Add adds a load; shares that are not known add nothing.
func (s *LoadSum) Add(l Load) {
	for i, share := range []int{l.CPU, l.Memory, l.Disk} {
		if share >= 0 {
			s.sum[i] += share
			s.count[i]++
		}
	}
}

// Mean returns the mean of the loads, and whether anything is known.
func (s *LoadSum) Mean() (Load, bool) {
	mean := [3]int{-1, -1, -1}
	for i, n := range s.count {
		if n > 0 {
			mean[i] = (s.sum[i] + n/2) / n
		}
	}
	load := Load{mean[0], mean[1], mean[2]}
	return load, load != NoLoad
}
