package loom_test

import (
	"slices"
	"strconv"
	"testing"

	"loom/app/loom"
)

func TestCutPage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		page       loom.Page
		read       []int
		further    bool
		want       []int
		next, prev bool
	}{
		{"the only one", loom.Page{Limit: 3}, []int{1, 2}, false, []int{1, 2}, false, false},
		{"the first", loom.Page{Limit: 2}, []int{1, 2, 3}, false, []int{1, 2}, true, false},
		{"the last", loom.Page{Limit: 2, After: "c"}, []int{3}, false, []int{3}, false, true},
		{"in between", loom.Page{Limit: 2, After: "c"}, []int{3, 4, 5}, false, []int{3, 4}, true, true},
		{"backwards", loom.Page{Limit: 2, Before: "c"}, []int{4, 3, 2}, false, []int{3, 4}, true, true},
		{"backwards to the first", loom.Page{Limit: 2, Before: "c"}, []int{2, 1}, false, []int{1, 2}, true, false},
		{"shorter than its limit", loom.Page{Limit: 9}, []int{1}, true, []int{1}, true, false},
		{"all", loom.Page{Limit: -1}, []int{1, 2, 3}, false, []int{1, 2, 3}, false, false},
		{"none", loom.Page{Limit: 2, After: "c"}, nil, false, nil, false, false},
	} {
		got, next, prev := loom.CutPage(test.page, slices.Clone(test.read), test.further, func(n int) []string { return []string{strconv.Itoa(n)} })
		if !slices.Equal(got, test.want) || (next != "") != test.next || (prev != "") != test.prev {
			t.Errorf("%s: %v, next %q, prev %q", test.name, got, next, prev)
		}
	}
}
