package solver

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"loom/app/loom"
)

// nodeRemover chooses how many nodes of each column go, the last column first.
type nodeRemover struct {
	s        *search
	total    []int64 // of each column
	counts   []int64 // that may go at most
	gone     []int64
	rules    []removalRule
	optional *optionalServices
	has      []bitset // per column: what stays with a node of it
	lacks    []bitset // and what then has to vanish
	// slack is how many fewer than asked for may go.
	slack int64
	dead  map[string]bool
	// bound says that some nodes have to go, or some services.
	bound bool
}

// removalRule bounds how many nodes with a service may, and must, go.
type removalRule struct {
	on        []bool // per column
	low, high int64
}

func newNodeRemover(ctx context.Context, p Problem, all []shrinkRule) *nodeRemover {
	n := len(p.Nodes)
	t := &nodeRemover{s: &search{ctx: ctx}, total: make([]int64, n), counts: make([]int64, n), gone: make([]int64, n),
		has: make([]bitset, n), lacks: make([]bitset, n)}
	t.s.check()
	var err error
	if t.optional, err = newOptionalServices(p, all); err != nil {
		t.s.err = err
		return t
	}
	t.bound = t.optional.impossible || !t.optional.absent.empty() || len(t.optional.needs)+len(t.optional.clash) > 0
	alone := p
	alone.Must = nil // optional looks at these
	for i, col := range p.Nodes {
		t.total[i] = int64(col.Count)
		if !slices.ContainsFunc(all, func(b shrinkRule) bool { return b.kind == mustStay && slices.Contains(col.Services, b.service) }) {
			t.counts[i] = t.total[i]
		}
		var hard bool
		t.has[i], t.lacks[i], hard = t.optional.column(p, col)
		// Nodes that break a rule by themselves all have to go.
		alone.Nodes = []Column{col}
		if st, err := newClusterModel(alone, true); hard || err != nil || st.kindBreaks {
			r := removalRule{on: make([]bool, n), low: t.total[i], high: t.total[i]}
			r.on[i] = true
			t.rules = append(t.rules, r)
		}
		t.bound = t.bound || hard || !t.lacks[i].empty()
	}
	for _, s := range p.Services {
		t.limit(p, s)
	}
	for _, r := range t.rules {
		t.bound = t.bound || r.low > 0
	}
	return t
}

// solve reports whether exactly less nodes can go, and sets gone.
func (t *nodeRemover) solve(less int64) bool { return t.within(less, less) }

// within reports whether a number of nodes from low to high can go.
func (t *nodeRemover) within(low, high int64) bool {
	if low > high || t.s.err != nil {
		return false
	}
	t.dead, t.slack = map[string]bool{}, high-low
	now := presence{absent: t.optional.absent}
	for i, n := range t.counts {
		if n < t.total[i] { // some of them stay
			now = t.keep(i, now)
		}
	}
	return t.remove(len(t.counts)-1, high, now)
}

func (t *nodeRemover) keep(i int, now presence) presence {
	return presence{now.present.or(t.has[i]), now.absent.or(t.lacks[i])}
}

// limit adds the rule of a service.
func (t *nodeRemover) limit(p Problem, s Service) {
	r := removalRule{on: make([]bool, len(p.Nodes))}
	var have, free int64
	for i, col := range p.Nodes {
		if slices.Contains(col.Services, s.Name) {
			r.on[i] = true
			have += int64(col.Count)
			free += t.counts[i]
		}
	}
	r.high = have - int64(s.Min)
	if s.Max < loom.Unlimited {
		r.low = max(have-int64(s.Max), 0)
	}
	if r.low == 0 && r.high >= free {
		return // nothing to watch
	}
	t.rules = append(t.rules, r)
}

// remove decides column i and those before it; left nodes, or slack fewer, have to
// go yet.
func (t *nodeRemover) remove(i int, left int64, now presence) bool {
	if t.s.tick() || !t.optional.open(now, i < 0) {
		return false
	}
	if i < 0 {
		return left <= t.slack && !slices.ContainsFunc(t.rules, func(r removalRule) bool { return r.low > 0 })
	}
	var room, forced int64
	for j := 0; j <= i; j++ {
		n := t.most(j)
		room += n
		if t.mustRemove(j, now) {
			if n < t.total[j] {
				return false
			}
			forced += n
		}
	}
	if room < left-t.slack || forced > left {
		return false
	}
	key, ok := t.key(i, left, now)
	if !ok || t.dead[key] {
		return false
	}
	var least int64
	if t.mustRemove(i, now) {
		least = t.total[i]
	}
	for n := min(left, t.most(i)); n >= least; n-- {
		next := now
		if n < t.total[i] {
			next = t.keep(i, now)
		}
		t.applyRules(i, n)
		ok := t.remove(i-1, left-n, next)
		t.applyRules(i, -n)
		if ok {
			t.gone[i] = n
			return true
		}
		if t.s.err != nil {
			return false
		}
	}
	t.dead[key] = true
	return false
}

// mustRemove reports that no node of the column can stay beside what is decided.
func (t *nodeRemover) mustRemove(i int, now presence) bool {
	return t.has[i].meets(now.absent) || t.lacks[i].meets(now.present)
}

// key tells apart what matters of a state; it reports false where a rule cannot be
// kept any longer.
func (t *nodeRemover) key(i int, left int64, now presence) (string, bool) {
	key := strconv.AppendInt(strconv.AppendInt(nil, int64(i), 36), left, 36)
	put := func(n uint64) { key = strconv.AppendUint(append(key, ' '), n, 36) }
	for _, r := range t.rules {
		var here int64
		for j := 0; j <= i; j++ {
			if r.on[j] {
				here += t.counts[j]
			}
		}
		if r.high < 0 || here < r.low {
			return "", false
		}
		// What cannot matter any longer does not tell states apart.
		put(uint64(min(r.high, here)))
		put(uint64(max(r.low, 0)))
	}
	for k := 0; k*64 < len(t.optional.at); k++ {
		put(now.present[k])
		put(now.absent[k])
	}
	return string(key), true
}

// most is how many nodes of the column the rules let go.
func (t *nodeRemover) most(i int) int64 {
	n := t.counts[i]
	for _, r := range t.rules {
		if r.on[i] {
			n = min(n, r.high)
		}
	}
	return max(n, 0)
}

func (t *nodeRemover) applyRules(i int, n int64) {
	for k := range t.rules {
		if r := &t.rules[k]; r.on[i] {
			r.high -= n
			r.low -= n
		}
	}
}

// greatest is the greatest number of nodes from low to high that can go, least the
// smallest; they report false when there is none.
func (t *nodeRemover) greatest(low, high int64) (int64, bool) {
	if !t.within(low, high) {
		return 0, false
	}
	for low < high && t.s.err == nil {
		if mid := high - (high-low)/2; t.within(mid, high) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, t.s.err == nil
}

func (t *nodeRemover) least(low, high int64) (int64, bool) {
	if !t.within(low, high) {
		return 0, false
	}
	for low < high && t.s.err == nil {
		if mid := low + (high-low)/2; t.within(low, mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low, t.s.err == nil
}

// manyTotals is up to how many totals are tried one by one.
const manyTotals = 200

// totals returns the sizes within bounds that the cluster can shrink to when they are
// a range; nil when they are none, have gaps, or take too long to find.
func (t *nodeRemover) totals(bounds loom.SizeRange) (*loom.SizeRange, error) {
	var have int64
	for _, n := range t.total {
		have += n
	}
	t.s.limit = t.s.steps + questionSteps
	least, most := max(have-int64(bounds.Max), 1), have-int64(max(bounds.Min, 1))
	low, ok := t.least(least, most)
	high, also := t.greatest(low, most)
	ok = ok && also
	// Where nothing has to go, any of the nodes that go can stay as well.
	if ok && t.bound && high-low > manyTotals {
		ok = false
	}
	for n := low + 1; ok && t.bound && n < high; n++ {
		ok = t.solve(n)
	}
	if t.s.err != nil && !errors.Is(t.s.err, errLimit) {
		return nil, t.s.err
	}
	if !ok || t.s.err != nil {
		return nil, nil
	}
	return &loom.SizeRange{Min: int(have - high), Max: int(have - low)}, nil
}
