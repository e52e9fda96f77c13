package solver

import "math/bits"

// maxGroups is how many groups of constrained services, and how many distinct
// types, the search can tell apart: far above any real template.
const maxGroups = 256

// bitset is a set of small numbers (groups or types), comparable and copied by value.
type bitset [maxGroups / 64]uint64

func (s bitset) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

func (s *bitset) add(i int) { s[i>>6] |= 1 << (i & 63) }

func (s *bitset) drop(i int) { s[i>>6] &^= 1 << (i & 63) }

func (s bitset) with(i int) bitset { s.add(i); return s }

func (s bitset) and(t bitset) bitset {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

func (s bitset) or(t bitset) bitset {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

func (s bitset) minus(t bitset) bitset {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

func (s bitset) empty() bool { return s == bitset{} }

func (s bitset) meets(t bitset) bool {
	return s[0]&t[0]|s[1]&t[1]|s[2]&t[2]|s[3]&t[3] != 0
}

func (s bitset) within(t bitset) bool {
	return s[0]&^t[0]|s[1]&^t[1]|s[2]&^t[2]|s[3]&^t[3] == 0
}

func (s bitset) count() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2]) + bits.OnesCount64(s[3])
}

// first is the smallest member, -1 when there is none.
func (s bitset) first() int {
	for i, w := range s {
		if w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// pop removes and returns the smallest member, -1 when there is none.
func (s *bitset) pop() int {
	for i, w := range s {
		if w != 0 {
			s[i] = w & (w - 1)
			return i<<6 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// upTo is the set of 0 to n-1.
func upTo(n int) bitset {
	var s bitset
	for i := 0; i < n; i++ {
		s.add(i)
	}
	return s
}
