package api

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"loom/app/loom"
)

var linkForm = regexp.MustCompile(`<([^>]*)>; rel="(\w+)"`)

// link gives the address of a neighboring page, "" when there is none.
func (a reply) link(rel string) string {
	for _, m := range linkForm.FindAllStringSubmatch(a.header.Get("Link"), -1) {
		if m[2] == rel {
			return m[1]
		}
	}
	return ""
}

// TestPagesCoverTheList walks lists forwards and back by their links: every row
// comes once, in the order of the whole list.
func TestPagesCoverTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 7 {
		w.cluster(w.user, fmt.Sprintf("c%d", (i*3)%7))
	}
	for _, path := range []string{
		"/v2/clusters?x=1", "/v2/clusters?sort=name", "/v2/clusters?sort=-name&q=c", "/v2/clusters?sort=expireTime", "/v2/clusters?sort=status",
		"/v2/hardwaretypes?x=1", "/v2/services?x=1", "/v2/services?sort=-updateTime", "/v2/plugins/providertypes?x=1",
		"/v2/clusters/1/operations/1/tasks?sort=number", "/v2/clusters/1/operations/1/tasks?sort=-number", "/v2/clusters/1/plans?x=1",
	} {
		whole := texts(w.call(w.user, get, path+"&limit=500", ""))
		for _, limit := range []int{1, 2, 3, 50} {
			var forwards, back []string
			last := ""
			for next := fmt.Sprintf("%s&limit=%d", path, limit); next != ""; {
				a := w.call(w.user, get, next, "").want(200)
				rows := texts(a)
				if len(rows) > limit {
					t.Fatalf("%s: %d rows on a page of %d", next, len(rows), limit)
				}
				forwards = append(forwards, rows...)
				last, next = next, a.link("next")
			}
			for prev := last; prev != ""; {
				a := w.call(w.user, get, prev, "").want(200)
				back = append(texts(a), back...)
				prev = a.link("prev")
			}
			if !slices.Equal(forwards, whole) || !slices.Equal(back, whole) {
				t.Errorf("%s by %d: %v, back %v, whole %v", path, limit, forwards, back, whole)
			}
		}
	}
	for path, field := range map[string]string{
		"limit=0": "limit", "limit=501": "limit", "limit=x": "limit", "sort=colour": "sort", "after=a&before=b": "before", "after=nonsense": "after",
	} {
		for _, list := range []string{"/v2/clusters?", "/v2/services?", "/v2/tokens?", "/v2/clusters/1/operations?"} {
			w.call(w.user, get, list+path, "").fails(400, field, "")
		}
	}
	// A cursor belongs to its order and its filter.
	next, err := url.Parse(w.call(w.user, get, "/v2/clusters/1/operations/1/tasks?limit=1", "").link("next"))
	w.must(err)
	w.call(w.user, get, next.Path+"?"+next.RawQuery+"&action=create", "").fails(400, "after", "filter")
	w.call(w.user, get, next.Path+"?"+next.RawQuery+"&sort=-number", "").fails(400, "after", "order")
}

// texts gives what tells rows of any list apart.
func texts(a reply) []string {
	var out []string
	for _, row := range a.array() {
		out = append(out, fmt.Sprint(row["id"], row["name"]))
	}
	return out
}

// FuzzCutPage cuts lists of any size at any limit, also while rows vanish.
func FuzzCutPage(f *testing.F) {
	f.Add(uint64(1), 10, 3, false)
	f.Add(uint64(2), 1, 1, true)
	f.Fuzz(func(t *testing.T, seed uint64, size, limit int, descending bool) {
		size, limit = abs(size%60), abs(limit%10)+1
		random := rand.New(rand.NewPCG(seed, 1))
		items := random.Perm(size)
		orders := []order[int]{{"n", byNumber}, {"-n", byNumber}}
		page := loom.Page{Limit: limit, Sort: orders[map[bool]int{false: 0, true: 1}[descending]].name}
		gone := map[int]bool{}
		var seen []int
		for {
			left := slices.DeleteFunc(slices.Clone(items), func(i int) bool { return gone[i] })
			part, next, _, err := cutPage(left, page, "f", orders)
			if err != nil {
				t.Fatal(err)
			}
			if len(part) > limit {
				t.Fatalf("%d rows on a page of %d", len(part), limit)
			}
			seen = append(seen, part...)
			if next == "" {
				break
			}
			page.After = next
			gone[part[len(part)-1]] = true // the row that the cursor stands at
		}
		want := slices.Sorted(slices.Values(items))
		if descending {
			slices.Reverse(want)
		}
		if !slices.Equal(seen, want) {
			t.Fatalf("saw %v, want %v", seen, want)
		}
	})
}

func abs(n int) int { return max(n, -n) }
