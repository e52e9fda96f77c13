package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// readPage reads the paging of a list. Without a limit an old list answers
// everything, a new one a page of the usual size. Invalid.
func readPage(r *http.Request, fresh bool) (loom.Page, error) {
	q := r.URL.Query()
	page := loom.Page{Sort: q.Get("sort"), After: q.Get("after"), Before: q.Get("before")}
	if !fresh {
		page.Limit = -1
	}
	var errs []loom.FieldError
	if q.Has("limit") {
		n, err := strconv.Atoi(q.Get("limit"))
		if err != nil || n < 1 || n > loom.MaxPageLimit {
			errs = append(errs, loom.FieldError{Field: "limit", Message: fmt.Sprintf("The limit is a whole number from 1 to %d.", loom.MaxPageLimit)})
		}
		page.Limit = n
	}
	if page.After != "" && page.Before != "" {
		errs = append(errs, loom.FieldError{Field: "before", Message: "Set either after or before, not both."})
	}
	return page, loom.InvalidFields(errs)
}

// linkPages names the neighboring pages in the header Link (RFC 8288).
func linkPages(w http.ResponseWriter, r *http.Request, next, prev string) {
	var links []string
	for _, l := range []struct{ rel, name, cursor string }{{"next", "after", next}, {"prev", "before", prev}} {
		if l.cursor == "" {
			continue
		}
		q := r.URL.Query()
		q.Del("after")
		q.Del("before")
		q.Set(l.name, l.cursor)
		u := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode()}
		links = append(links, fmt.Sprintf("<%s>; rel=%q", u.String(), l.rel))
	}
	if len(links) > 0 {
		w.Header().Set("Link", strings.Join(links, ", "))
	}
}

// order is something a list can be sorted by: its name, with "-" before it for
// descending, and a text per item that sorts like the field and is unique.
type order[T any] struct {
	name string
	key  func(T) string
}

// byNumber makes keys of numbers that sort as the numbers do.
func byNumber(n int) string { return fmt.Sprintf("%015d", n) }

// answerList answers a list that is in memory as a whole with the page asked for.
// The first order is the default.
func answerList[T, W any](w http.ResponseWriter, r *http.Request, fresh bool, items []T, shown func(T) W, orders ...order[T]) error {
	page, err := readPage(r, fresh)
	if err != nil {
		return err
	}
	part, next, prev, err := cutPage(items, page, filterOf(r), orders)
	if err != nil {
		return err
	}
	linkPages(w, r, next, prev)
	out := make([]W, len(part))
	for i, item := range part {
		out[i] = shown(item)
	}
	return answer(w, r, out)
}

// filterOf is all of a query but paging; a cursor belongs to it.
func filterOf(r *http.Request) string {
	q := r.URL.Query()
	for _, p := range pagingParams {
		q.Del(p.name)
	}
	return q.Encode()
}

func cutPage[T any](items []T, page loom.Page, filter string, orders []order[T]) (part []T, next, prev string, err error) {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.name
	}
	cursor, err := page.Check(2, names...)
	if err != nil {
		return nil, "", "", err
	}
	back := page.Before != ""
	if cursor != nil && cursor.Keys[1] != filter {
		field := "after"
		if back {
			field = "before"
		}
		return nil, "", "", loom.InvalidFields([]loom.FieldError{{Field: field,
			Message: "This cursor belongs to another filter; start from the first page."}})
	}
	by := orders[slices.Index(names, page.Sort)]
	compare := cmp.Compare[string]
	if strings.HasPrefix(by.name, "-") {
		compare = func(a, b string) int { return cmp.Compare(b, a) }
	}
	part = slices.Clone(items)
	slices.SortStableFunc(part, func(a, b T) int { return compare(by.key(a), by.key(b)) })
	low, high := 0, len(part)
	if cursor != nil {
		for i, item := range part {
			switch c := compare(by.key(item), cursor.Keys[0]); {
			case !back && c <= 0:
				low = i + 1
			case back && c >= 0:
				high = min(high, i)
			}
		}
	}
	if page.Limit > 0 {
		if back {
			low = max(low, high-page.Limit)
		} else {
			high = min(high, low+page.Limit)
		}
	}
	at := func(i int) string {
		return loom.Cursor{Sort: page.Sort, Keys: []string{by.key(part[i]), filter}}.Encode()
	}
	if low < high {
		if high < len(part) {
			next = at(high - 1)
		}
		if low > 0 {
			prev = at(low)
		}
	}
	return part[low:high], next, prev, nil
}

// words splits a comma-separated parameter.
func words(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}
